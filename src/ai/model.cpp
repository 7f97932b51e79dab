#include "ai/model.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "ai/json_members.h"

namespace tau::ai {

namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

Rates rates_from_json(const json::object& o) {
  return {json::number_or(o, "input"), json::number_or(o, "output"), json::number_or(o, "cacheRead"),
          json::number_or(o, "cacheWrite")};
}

void put_rates(json::object& o, const Rates& rates) {
  o.emplace("input", json::number(rates.input));
  o.emplace("output", json::number(rates.output));
  o.emplace("cacheRead", json::number(rates.cache_read));
  o.emplace("cacheWrite", json::number(rates.cache_write));
}

}  // namespace

std::string_view to_string(ThinkingLevel level) {
  switch (level) {
    case ThinkingLevel::kOff:
      return "off";
    case ThinkingLevel::kMinimal:
      return "minimal";
    case ThinkingLevel::kLow:
      return "low";
    case ThinkingLevel::kMedium:
      return "medium";
    case ThinkingLevel::kHigh:
      return "high";
    case ThinkingLevel::kXhigh:
      return "xhigh";
    case ThinkingLevel::kMax:
      return "max";
  }
  std::unreachable();
}

std::optional<ThinkingLevel> thinking_level_from(std::string_view text) {
  for (const ThinkingLevel level : kThinkingLevels) {
    if (to_string(level) == text) return level;
  }
  return std::nullopt;
}

void merge_headers(Headers& into, const Headers& from) {
  for (const auto& [name, header] : from) {
    std::erase_if(into, [&](const auto& existing) { return same_name(existing.first, name); });
    into.emplace_back(name, header);
  }
}

json::object to_json(const Model& model) {
  json::object o{{"id", model.id},
                 {"name", model.name},
                 {"api", model.api},
                 {"provider", model.provider},
                 {"baseUrl", model.base_url},
                 {"reasoning", model.reasoning}};
  if (!model.thinking_level_map.empty()) {
    json::object map;
    for (const auto& [level, word] : model.thinking_level_map) {
      map.emplace(to_string(level), word ? json::value(*word) : json::value(nullptr));
    }
    o.emplace("thinkingLevelMap", std::move(map));
  }
  json::array input;
  if (model.text_input) input.emplace_back("text");
  if (model.image_input) input.emplace_back("image");
  o.emplace("input", std::move(input));
  json::object cost;
  put_rates(cost, model.cost);
  if (!model.tiers.empty()) {
    json::array tiers;
    for (const PriceTier& tier : model.tiers) {
      json::object t{{"inputTokensAbove", json::number(tier.input_tokens_above)}};
      put_rates(t, tier.rates);
      tiers.emplace_back(std::move(t));
    }
    cost.emplace("tiers", std::move(tiers));
  }
  o.emplace("cost", std::move(cost));
  o.emplace("contextWindow", json::number(model.context_window));
  o.emplace("maxTokens", json::number(model.max_tokens));
  if (!model.sampling_params.empty()) o.emplace("samplingParams", model.sampling_params);
  if (!model.headers.empty()) {
    json::object headers;
    for (const auto& [name, header] : model.headers) {
      headers.emplace(name, header ? json::value(*header) : json::value(nullptr));
    }
    o.emplace("headers", std::move(headers));
  }
  if (!model.compat.empty()) o.emplace("compat", model.compat);
  put_unknown(o, model.extra);
  return o;
}

std::expected<Model, Error> model_from_json(const json::object& o) {
  Model m;
  m.id = json::string_or(o, "id");
  m.api = json::string_or(o, "api");
  m.provider = json::string_or(o, "provider");
  if (m.id.empty()) return std::unexpected(error("a model needs an \"id\""));
  if (m.api.empty()) return std::unexpected(error("model \"" + m.id + "\" needs an \"api\""));
  if (m.provider.empty()) return std::unexpected(error("model \"" + m.id + "\" needs a \"provider\""));
  m.name = json::string_or(o, "name", m.id);
  m.base_url = json::string_or(o, "baseUrl");
  m.reasoning = json::bool_or(o, "reasoning");
  if (const json::object* map = json::find_object(o, "thinkingLevelMap")) {
    for (const auto& [key, word] : *map) {
      const auto level = thinking_level_from(std::string_view(key.data(), key.size()));
      if (!level) continue;
      m.thinking_level_map[*level] =
          word.is_string() ? std::optional<std::string>(json::view(word.get_string())) : std::nullopt;
    }
  }
  if (const json::array* input = json::find_array(o, "input")) {
    const auto takes = [&](std::string_view what) {
      return std::any_of(input->begin(), input->end(),
                         [&](const json::value& v) { return v.is_string() && json::view(v.get_string()) == what; });
    };
    m.text_input = takes("text");
    m.image_input = takes("image");
  }
  if (const json::object* cost = json::find_object(o, "cost")) {
    m.cost = rates_from_json(*cost);
    if (const json::array* tiers = json::find_array(*cost, "tiers")) {
      for (const json::value& tier : *tiers) {
        if (const json::object* t = tier.if_object()) {
          m.tiers.push_back({json::number_or(*t, "inputTokensAbove"), rates_from_json(*t)});
        }
      }
    }
  }
  m.context_window = json::number_or(o, "contextWindow");
  m.max_tokens = json::number_or(o, "maxTokens");
  if (const json::object* params = json::find_object(o, "samplingParams")) m.sampling_params = *params;
  if (const json::object* headers = json::find_object(o, "headers")) {
    for (const auto& [name, header] : *headers) {
      m.headers.emplace_back(std::string(name), header.is_string()
                                                    ? std::optional<std::string>(json::view(header.get_string()))
                                                    : std::nullopt);
    }
  }
  if (const json::object* compat = json::find_object(o, "compat")) m.compat = *compat;
  m.extra = unknown_members(o, {"id", "name", "api", "provider", "baseUrl", "reasoning", "thinkingLevelMap", "input",
                                "cost", "contextWindow", "maxTokens", "samplingParams", "headers", "compat"});
  return m;
}

std::vector<ThinkingLevel> supported_thinking_levels(const Model& model) {
  if (!model.reasoning) return {ThinkingLevel::kOff};
  std::vector<ThinkingLevel> levels;
  for (const ThinkingLevel level : kThinkingLevels) {
    const auto mapped = model.thinking_level_map.find(level);
    const bool known = mapped != model.thinking_level_map.end();
    if (known && !mapped->second) continue;
    if (level >= ThinkingLevel::kXhigh && !known) continue;
    levels.push_back(level);
  }
  return levels;
}

ThinkingLevel clamp_thinking_level(const Model& model, ThinkingLevel level) {
  const std::vector<ThinkingLevel> levels = supported_thinking_levels(model);
  if (levels.empty()) return ThinkingLevel::kOff;
  const auto above = std::lower_bound(levels.begin(), levels.end(), level);
  return above != levels.end() ? *above : levels.back();
}

void price(Usage& usage, const Model& model) {
  const double input_tokens = usage.input + usage.cache_read + usage.cache_write;
  const Rates* rates = &model.cost;
  double best = -1;
  for (const PriceTier& tier : model.tiers) {
    if (tier.input_tokens_above < input_tokens && tier.input_tokens_above > best) {
      best = tier.input_tokens_above;
      rates = &tier.rates;
    }
  }
  // The order of operations is pi's, so that both programs store the same doubles (AI-60).
  constexpr double kMillion = 1000000;
  const double long_lived = usage.cache_write_1h.value_or(0);
  const double short_lived = usage.cache_write - long_lived;
  Cost& cost = usage.cost;
  cost.input = (rates->input / kMillion) * usage.input;
  cost.output = (rates->output / kMillion) * usage.output;
  cost.cache_read = (rates->cache_read / kMillion) * usage.cache_read;
  cost.cache_write = (rates->cache_write * short_lived + rates->input * 2 * long_lived) / kMillion;
  cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
}

}  // namespace tau::ai
