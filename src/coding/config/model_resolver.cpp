#include "coding/config/model_resolver.h"

#include <algorithm>

#include <fmt/format.h>

#include "ai/catalog/providers.h"
#include "base/utf8.h"
#include "coding/config/collation.h"
#include "coding/config/glob.h"

namespace tau::coding {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && lower(a) == lower(b);
}

std::string reference_of(const ai::Model& model) {
  return model.provider + "/" + model.id;
}

/// "-20250101" at the end: a version of a certain day.
bool is_dated(std::string_view id) {
  if (id.ends_with("-latest")) return false;
  if (id.size() < 9) return false;
  const std::string_view tail = id.substr(id.size() - 9);
  return tail[0] == '-' && tail.substr(1).find_first_not_of("0123456789") == std::string_view::npos;
}

/// CA-192 without the exact step: an alias before a dated version, the greatest of each.
const ai::Model* find_partial(std::string_view pattern, const std::vector<ai::Model>& models) {
  const std::string wanted = lower(pattern);
  const ai::Model* best = nullptr;
  for (const ai::Model& model : models) {
    if (lower(model.id).find(wanted) == std::string::npos && lower(model.name).find(wanted) == std::string::npos)
      continue;
    if (best == nullptr) {
      best = &model;
      continue;
    }
    const bool dated = is_dated(model.id);
    const bool best_dated = is_dated(best->id);
    if (dated != best_dated ? !dated : collate(model.id, best->id) > 0) best = &model;
  }
  return best;
}

/// "pebble-2:high" -> {"pebble-2", "high"}; nothing without a colon.
std::optional<std::pair<std::string_view, std::string_view>> split_level(std::string_view pattern) {
  const std::size_t colon = pattern.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return std::pair(pattern.substr(0, colon), pattern.substr(colon + 1));
}

std::vector<ai::Model> all_models(const ModelCollection& collection) {
  std::vector<ai::Model> all;
  for (const std::string& provider : collection.providers()) {
    const auto& models = collection.models_of(provider);
    all.insert(all.end(), models.begin(), models.end());
  }
  return all;
}

std::vector<ai::Model> with_id(const std::vector<ai::Model>& models, std::string_view id) {
  std::vector<ai::Model> out;
  std::copy_if(models.begin(), models.end(), std::back_inserter(out),
               [&](const ai::Model& model) { return same(model.id, id); });
  return out;
}

/// Among models of one id: the only one, or the only one that can be used.
const ai::Model* single(const std::vector<ai::Model>& models, const ModelCollection& collection, bool must_have_auth) {
  if (models.size() == 1 && !must_have_auth) return &models.front();
  const ai::Model* found = nullptr;
  for (const ai::Model& model : models) {
    if (!collection.has_auth(model.provider)) continue;
    if (found != nullptr) return nullptr;
    found = &model;
  }
  return found;
}

ModelChoice chosen(const ai::Model& model) {
  return {model, std::nullopt, std::nullopt, std::nullopt};
}

ModelChoice failed(std::string message) {
  return {std::nullopt, std::nullopt, std::nullopt, std::move(message)};
}

/// An id that no catalogue knows, at a provider that is known: its default model under another name.
ModelChoice custom_model(std::string_view provider, std::string_view id, const std::vector<ai::Model>& models) {
  ModelChoice choice;
  std::string_view plain = id;
  if (const auto split = split_level(id)) {
    if (const auto level = ai::thinking_level_from(split->second); level && !split->first.empty()) {
      plain = split->first;
      choice.thinking_level = level;
    }
  }
  const std::string_view usual = ai::default_model(provider);
  const auto like = std::find_if(models.begin(), models.end(), [&](const ai::Model& m) { return m.id == usual; });
  ai::Model model = like != models.end() ? *like : models.front();
  model.id = plain;
  model.name = plain;
  if (choice.thinking_level.value_or(ai::ThinkingLevel::kOff) != ai::ThinkingLevel::kOff) model.reasoning = true;
  choice.model = std::move(model);
  choice.warning = fmt::format("Model \"{}\" not found for provider \"{}\". Using custom model id.", plain, provider);
  return choice;
}

}  // namespace

const ai::Model* find_exact(std::string_view reference, const std::vector<ai::Model>& models) {
  reference = utf8::trim(reference);
  const ai::Model* full = nullptr;
  const ai::Model* bare = nullptr;
  int bare_count = 0;
  for (const ai::Model& model : models) {
    if (full == nullptr && same(reference_of(model), reference)) full = &model;
    if (same(model.id, reference)) {
      bare = &model;
      ++bare_count;
    }
  }
  if (full != nullptr) return full;
  return bare_count == 1 ? bare : nullptr;
}

ModelChoice match_pattern(std::string_view pattern, const std::vector<ai::Model>& models, bool lenient) {
  const ai::Model* found = find_exact(pattern, models);
  if (found == nullptr) found = find_partial(pattern, models);
  if (found != nullptr) return chosen(*found);
  const auto split = split_level(pattern);
  if (!split) return {};
  const auto level = ai::thinking_level_from(split->second);
  if (!level && !lenient) return {};
  ModelChoice inner = match_pattern(split->first, models, lenient);
  if (!inner.model) return inner;
  if (!level) {
    inner.thinking_level.reset();
    inner.warning =
        fmt::format("Invalid thinking level \"{}\" in pattern \"{}\". Using default instead.", split->second, pattern);
  } else if (!inner.warning) {
    inner.thinking_level = level;
  }
  return inner;
}

ModelScope resolve_scope(const std::vector<std::string>& patterns, const std::vector<ai::Model>& models) {
  ModelScope scope;
  const auto add = [&](const ai::Model& model, std::optional<ai::ThinkingLevel> level) {
    const bool known = std::any_of(scope.models.begin(), scope.models.end(), [&](const ScopedModel& existing) {
      return existing.model.provider == model.provider && existing.model.id == model.id;
    });
    if (!known) scope.models.push_back({model, level});
  };
  for (const std::string& pattern : patterns) {
    bool matched = false;
    if (has_wildcards(pattern)) {
      std::string_view glob = pattern;
      std::optional<ai::ThinkingLevel> level;
      if (const auto split = split_level(pattern)) {
        level = ai::thinking_level_from(split->second);
        if (level) glob = split->first;
      }
      for (const ai::Model& model : models) {
        const GlobOptions options{.ignore_case = true};
        if (!glob_matches(glob, reference_of(model), options) && !glob_matches(glob, model.id, options)) continue;
        matched = true;
        add(model, level);
      }
    } else {
      const ModelChoice choice = match_pattern(pattern, models, true);
      matched = choice.model.has_value();
      if (choice.warning) scope.warnings.push_back(*choice.warning);
      if (matched) add(*choice.model, choice.thinking_level);
    }
    if (!matched) scope.warnings.push_back(fmt::format("No models match pattern \"{}\"", pattern));
  }
  return scope;
}

ModelChoice resolve_model(const ModelCollection& collection, std::optional<std::string> provider,
                          std::string_view model) {
  const auto known_provider = [&](std::string_view name) -> const std::string* {
    for (const std::string& id : collection.providers()) {
      if (same(id, name)) return &id;
    }
    return nullptr;
  };
  std::string_view pattern = model;
  const std::string* chosen_provider = nullptr;
  if (provider) {
    chosen_provider = known_provider(*provider);
    if (chosen_provider == nullptr) {
      return failed(
          fmt::format("Unknown provider \"{}\". Use --list-models to see available providers/models.", *provider));
    }
    const std::string prefix = *chosen_provider + "/";
    if (pattern.size() > prefix.size() && same(pattern.substr(0, prefix.size()), prefix)) {
      const auto& own = collection.models_of(*chosen_provider);
      if (with_id(own, pattern).empty()) pattern.remove_prefix(prefix.size());
    }
  } else if (const std::size_t slash = model.find('/'); slash != std::string_view::npos) {
    chosen_provider = known_provider(model.substr(0, slash));
    if (chosen_provider != nullptr) {
      pattern = model.substr(slash + 1);
      const auto own = with_id(collection.models_of(*chosen_provider), pattern);
      if (!own.empty() && collection.has_auth(*chosen_provider)) return chosen(own.front());
      const auto raw = with_id(all_models(collection), model);  // "anthropic/claude" may be the id at a reseller
      if (const ai::Model* usable = single(raw, collection, true)) return chosen(*usable);
      if (!own.empty()) return chosen(own.front());
    }
  }

  if (chosen_provider != nullptr) {
    const auto& own = collection.models_of(*chosen_provider);
    ModelChoice choice = match_pattern(pattern, own, false);
    if (choice.model) return choice;
    if (!provider) {
      const auto raw = with_id(all_models(collection), model);
      if (const ai::Model* only = single(raw, collection, false)) return chosen(*only);
    }
    if (!own.empty() && !pattern.empty()) return custom_model(*chosen_provider, pattern, own);
    return failed(fmt::format("Model \"{}\" not found. Use --list-models to see available models.", model));
  }

  const std::vector<ai::Model> all = all_models(collection);
  const auto raw = with_id(all, utf8::trim(model));
  if (const ai::Model* only = single(raw, collection, false)) return chosen(*only);
  if (raw.size() > 1) {
    std::vector<std::string_view> offers;
    offers.reserve(raw.size());
    for (const ai::Model& one : raw)
      offers.push_back(one.provider);
    return failed(fmt::format("Model \"{}\" is offered by several providers: {}. Name one, as in \"{}/{}\".", model,
                              fmt::join(offers, ", "), offers.front(), raw.front().id));
  }
  ModelChoice choice = match_pattern(model, all, false);
  if (!choice.model)
    choice.error = fmt::format("Model \"{}\" not found. Use --list-models to see available models.", model);
  return choice;
}

}  // namespace tau::coding
