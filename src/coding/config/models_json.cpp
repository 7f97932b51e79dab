#include "coding/config/models_json.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "coding/config/models_schema.h"

namespace tau::coding {

namespace {

constexpr double kDefaultContextWindow = 128000;  // tokens, CA-172
constexpr double kDefaultMaxTokens = 16384;
constexpr std::string_view kNestedCompat[] = {"openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs",
                                              "chatTemplateArgs"};

std::optional<std::string> text_of(const json::object& o, std::string_view key) {
  const auto text = json::find_string(o, key);
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

json::object object_of(const json::object& o, std::string_view key) {
  const json::object* found = json::find_object(o, key);
  return found != nullptr ? *found : json::object{};
}

HeaderTemplates headers_of(const json::object& o) {
  HeaderTemplates headers;
  for (const auto& [name, v] : object_of(o, "headers"))
    headers.emplace_back(name, json::view(v.get_string()));
  return headers;
}

ModelsProvider read_provider(std::string_view id, const json::object& o) {
  ModelsProvider provider;
  provider.id = id;
  provider.name = text_of(o, "name");
  provider.base_url = text_of(o, "baseUrl");
  provider.api_key = text_of(o, "apiKey");
  provider.api = text_of(o, "api");
  provider.headers = headers_of(o);
  provider.compat = object_of(o, "compat");
  provider.auth_header = json::bool_or(o, "authHeader");
  provider.oauth = o.contains("oauth");
  if (const json::array* models = json::find_array(o, "models")) {
    for (const json::value& model : *models)
      provider.models.push_back(model.as_object());
  }
  for (const auto& [model, v] : object_of(o, "modelOverrides"))
    provider.overrides.emplace_back(model, v.as_object());
  return provider;
}

/// The built-in model whose address and API a new model takes over when it names none.
const ai::Model* nearest(const std::vector<ai::Model>& built_in, std::string_view id,
                         const std::optional<std::string>& api) {
  const auto find = [&](auto&& wanted) -> const ai::Model* {
    const auto found = std::find_if(built_in.begin(), built_in.end(), wanted);
    return found != built_in.end() ? &*found : nullptr;
  };
  if (const auto* same = find([&](const ai::Model& m) { return m.id == id && (!api || m.api == *api); })) return same;
  if (api) {
    if (const auto* same = find([&](const ai::Model& m) { return m.api == *api; })) return same;
  }
  if (const auto* common = find([](const ai::Model& m) { return m.api == "openai-completions"; })) return common;
  return built_in.empty() ? nullptr : &built_in.front();
}

void read_cost(ai::Model& model, const json::object& cost) {
  model.cost.input = json::number_or(cost, "input", model.cost.input);
  model.cost.output = json::number_or(cost, "output", model.cost.output);
  model.cost.cache_read = json::number_or(cost, "cacheRead", model.cost.cache_read);
  model.cost.cache_write = json::number_or(cost, "cacheWrite", model.cost.cache_write);
  if (const json::array* tiers = json::find_array(cost, "tiers")) {
    model.tiers.clear();
    for (const json::value& v : *tiers) {
      const json::object& tier = v.as_object();
      model.tiers.push_back({json::number_or(tier, "inputTokensAbove"),
                             {json::number_or(tier, "input"), json::number_or(tier, "output"),
                              json::number_or(tier, "cacheRead"), json::number_or(tier, "cacheWrite")}});
    }
  }
}

/// What definitions and overrides have in common; `o` has passed the schema.
void apply(ai::Model& model, const json::object& o) {
  if (auto name = text_of(o, "name")) model.name = *std::move(name);
  model.reasoning = json::bool_or(o, "reasoning", model.reasoning);
  for (const auto& [key, word] : object_of(o, "thinkingLevelMap")) {
    const auto level = ai::thinking_level_from(std::string_view(key.data(), key.size()));
    if (!level) continue;
    model.thinking_level_map[*level] =
        word.is_string() ? std::optional<std::string>(json::view(word.get_string())) : std::nullopt;
  }
  if (const json::array* input = json::find_array(o, "input")) {
    const auto has = [&](std::string_view kind) {
      return std::any_of(input->begin(), input->end(),
                         [&](const json::value& v) { return json::view(v.get_string()) == kind; });
    };
    model.text_input = has("text");
    model.image_input = has("image");
  }
  read_cost(model, object_of(o, "cost"));
  model.context_window = json::number_or(o, "contextWindow", model.context_window);
  model.max_tokens = json::number_or(o, "maxTokens", model.max_tokens);
  for (const auto& [key, v] : object_of(o, "samplingParams"))
    model.sampling_params[key] = v;
  model.compat = merge_compat(std::move(model.compat), object_of(o, "compat"));
}

std::expected<void, Error> check_limits(const ai::Model& model) {
  if (model.context_window <= 0) {
    return std::unexpected(error(fmt::format("model {}: \"contextWindow\" must be above 0", model.id)));
  }
  if (model.max_tokens <= 0) {
    return std::unexpected(error(fmt::format("model {}: \"maxTokens\" must be above 0", model.id)));
  }
  return {};
}

std::expected<ai::Model, Error> define_model(const std::vector<ai::Model>& built_in, const ModelsProvider& config,
                                             const json::object& o) {
  ai::Model model;
  model.id = *text_of(o, "id");
  model.name = model.id;
  model.provider = config.id;
  const auto own_api = text_of(o, "api");
  const auto api = own_api ? own_api : config.api;
  const ai::Model* like = nearest(built_in, model.id, api);
  if (!api && like == nullptr) {
    return std::unexpected(
        error(fmt::format("model {}: name an \"api\", for the provider or for the model", model.id)));
  }
  model.api = api ? *api : like->api;
  const auto own_url = text_of(o, "baseUrl");
  const auto url = own_url ? own_url : config.base_url;
  if (!url && like == nullptr) {
    return std::unexpected(
        error(fmt::format("model {}: name a \"baseUrl\", for the provider or for the model", model.id)));
  }
  model.base_url = url ? *url : like->base_url;
  model.context_window = kDefaultContextWindow;
  model.max_tokens = kDefaultMaxTokens;
  model.compat = config.compat;
  apply(model, o);
  return model;
}

}  // namespace

json::object merge_compat(json::object base, const json::object& over) {
  for (const auto& [key, v] : over) {
    json::value& into = base[key];
    const bool nested = std::find(std::begin(kNestedCompat), std::end(kNestedCompat),
                                  std::string_view(key.data(), key.size())) != std::end(kNestedCompat);
    if (nested && into.is_object() && v.is_object()) {
      for (const auto& [inner, w] : v.get_object())
        into.get_object()[inner] = w;
    } else {
      into = v;
    }
  }
  return base;
}

std::expected<ModelsFile, Error> parse_models_file(std::string_view text) {
  ModelsFile file;
  text = without_byte_order_mark(text);
  if (utf8::is_blank(text)) return file;
  const auto parsed = json::parse(text, {.comments = true, .trailing_commas = true});
  if (!parsed) return std::unexpected(error("Failed to parse models.json: " + parsed.error().describe()));
  const auto violations = models_file_violations(*parsed, text);
  if (!violations.empty()) {
    std::string message = "Invalid models.json schema:";
    for (const std::string& violation : violations)
      message += "\n  - " + violation;
    return std::unexpected(error(std::move(message)));
  }
  for (const auto& [id, v] : *json::find_object(parsed->as_object(), "providers")) {
    file.providers.push_back(read_provider(id, v.as_object()));
  }
  return file;
}

std::expected<ModelsFile, Error> read_models_file(const std::filesystem::path& path) {
  std::error_code failed;
  if (std::filesystem::status(path, failed).type() == std::filesystem::file_type::not_found) return ModelsFile{};
  const auto suffix =
      fmt::format("\nFile: {}\nIts providers are left out; the built-in ones work as usual.", path.string());
  const auto bytes = read_file(path);
  if (!bytes) return std::unexpected(error("Failed to load models.json: " + bytes.error().message + suffix));
  auto file = parse_models_file(*bytes);
  if (!file) return std::unexpected(error(file.error().message + suffix));
  return file;
}

std::expected<ComposedProvider, Error> compose_provider(const std::vector<ai::Model>& built_in,
                                                        const ModelsProvider& config) {
  const bool says_nothing = !config.name && !config.base_url && !config.api_key && !config.oauth &&
                            !config.auth_header && config.headers.empty() && config.compat.empty() &&
                            config.models.empty() && config.overrides.empty();
  if (says_nothing) {
    return std::unexpected(
        error("the entry changes nothing: give it \"baseUrl\", \"apiKey\", \"headers\", \"compat\", \"models\" or "
              "\"modelOverrides\""));
  }
  ComposedProvider out;
  out.models = built_in;
  for (ai::Model& model : out.models) {
    if (config.base_url) model.base_url = *config.base_url;
    model.compat = merge_compat(std::move(model.compat), config.compat);
  }
  const auto find = [&](std::string_view id) {
    return std::find_if(out.models.begin(), out.models.end(), [&](const ai::Model& m) { return m.id == id; });
  };
  const auto headers_for = [&](std::string_view id) -> HeaderTemplates& {
    for (auto& [model, headers] : out.model_headers) {
      if (model == id) return headers;
    }
    return out.model_headers.emplace_back(std::string(id), HeaderTemplates{}).second;
  };
  // Overrides before definitions: of two headers with one name the definition's counts (CA-177).
  for (const auto& [id, o] : config.overrides) {
    if (auto headers = headers_of(o); !headers.empty()) headers_for(id) = std::move(headers);
  }
  for (const json::object& definition : config.models) {
    auto model = define_model(built_in, config, definition);
    if (!model) return std::unexpected(model.error());
    for (auto& header : headers_of(definition))
      headers_for(model->id).push_back(std::move(header));
    const auto existing = find(model->id);
    if (existing != out.models.end()) {
      *existing = *std::move(model);
    } else {
      out.models.push_back(*std::move(model));
    }
  }
  for (const auto& [id, o] : config.overrides) {
    const auto model = find(id);
    if (model != out.models.end()) apply(*model, o);
  }
  for (const ai::Model& model : out.models) {
    const auto& given = config.models;
    const bool touched = std::any_of(given.begin(), given.end(),
                                     [&](const json::object& o) { return json::string_or(o, "id") == model.id; }) ||
                         std::any_of(config.overrides.begin(), config.overrides.end(),
                                     [&](const auto& o) { return o.first == model.id; });
    if (!touched) continue;
    if (auto checked = check_limits(model); !checked) return std::unexpected(checked.error());
  }
  return out;
}

}  // namespace tau::coding
