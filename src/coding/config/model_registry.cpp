#include "coding/config/model_registry.h"

#include <algorithm>

#include <fmt/format.h>

#include "ai/catalog/catalog.h"
#include "ai/catalog/providers.h"
#include "ai/providers/scripted.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "coding/config/config_value.h"
#include "coding/config/paths.h"

namespace tau::coding {

namespace {

constexpr std::string_view kTour = "tour";

/// GitHub's short-lived token names the host that serves it: "…;proxy-ep=proxy.example.com;…" (AI-247).
std::optional<std::string> copilot_base_url(std::string_view token) {
  constexpr std::string_view kMark = "proxy-ep=";
  const std::size_t at = token.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view host = token.substr(at + kMark.size());
  host = host.substr(0, host.find(';'));
  constexpr std::string_view kProxy = "proxy.";
  if (host.starts_with(kProxy)) return "https://api." + std::string(host.substr(kProxy.size()));
  return "https://" + std::string(host);
}

std::expected<ai::RequestAuth, Error> oauth_request(std::string_view provider, const OAuthCredential& login) {
  if (login.expires <= now_milliseconds()) {
    return std::unexpected(error(fmt::format("The stored login for {} has expired; log in again", provider)));
  }
  ai::RequestAuth auth;
  auth.source = "OAuth";
  if (provider == "kimi-coding") {
    auth.headers = {{"Authorization", "Bearer " + login.access}};
  } else {
    auth.api_key = login.access;
  }
  if (provider == "github-copilot") auth.base_url = copilot_base_url(login.access);
  return auth;
}

/// Copilot's login says which models the account may use (AI-247).
bool allows(const OAuthCredential& login, const ai::Model& model) {
  const json::array* ids = json::find_array(login.all, "availableModelIds");
  if (ids == nullptr) return true;
  return std::any_of(ids->begin(), ids->end(),
                     [&](const json::value& id) { return id.is_string() && json::view(id.get_string()) == model.id; });
}

}  // namespace

ModelRegistry::ModelRegistry(RegistryOptions options)
    : options_(std::move(options)),
      models_path_(options_.agent_folder / kModelsFile),
      credentials_(options_.agent_folder / kAuthFile) {
  reload();
}

void ModelRegistry::reload() {
  credentials_.reload();
  entries_.clear();
  entry_problems_.clear();
  auto file = read_models_file(models_path_);
  file_problem_ = file ? std::nullopt : std::optional(file.error().message);
  file_ = file ? *std::move(file) : ModelsFile{};
  providers_.clear();
  for (const ai::ProviderInfo& provider : ai::built_in_providers())
    providers_.emplace_back(provider.id);
  for (const ModelsProvider& provider : file_.providers) {
    if (ai::find_provider(provider.id) == nullptr && provider.id != ai::kScriptedProvider) {
      providers_.push_back(provider.id);
    }
  }
}

std::vector<std::string> ModelRegistry::problems() const {
  std::vector<std::string> out;
  if (file_problem_) out.push_back(*file_problem_);
  for (const ModelsProvider& provider : file_.providers)
    entry(provider.id);
  for (const auto& [provider, problem] : entry_problems_) {
    out.push_back(
        fmt::format("Provider \"{}\": {} (in {}; the entry is left out)", provider, problem, models_path_.string()));
  }
  if (credentials_.problem()) out.push_back(*credentials_.problem());
  return out;
}

// ---- models -------------------------------------------------------------------------------------------------------

const ModelsProvider* ModelRegistry::configured(std::string_view provider) const {
  for (const ModelsProvider& one : file_.providers) {
    if (one.id == provider) return &one;
  }
  return nullptr;
}

const ModelRegistry::Entry& ModelRegistry::entry(std::string_view provider) const {
  if (const auto found = entries_.find(provider); found != entries_.end()) return found->second;
  Entry made;
  const auto& built_in = ai::catalog_models(provider);
  made.models = built_in;
  if (const ModelsProvider* config = configured(provider)) {
    if (auto composed = compose_provider(built_in, *config)) {
      made.models = std::move(composed->models);
      made.model_headers = std::move(composed->model_headers);
    } else {
      entry_problems_[std::string(provider)] = composed.error().message;
    }
  }
  return entries_.emplace(std::string(provider), std::move(made)).first->second;
}

const std::vector<ai::Model>& ModelRegistry::models_of(std::string_view provider) const {
  return entry(provider).models;
}

std::string ModelRegistry::provider_name(std::string_view provider) const {
  if (const ModelsProvider* config = configured(provider); config != nullptr && config->name) return *config->name;
  if (const ai::ProviderInfo* info = ai::find_provider(provider)) return std::string(info->name);
  return std::string(provider);
}

std::optional<ai::Model> ModelRegistry::find(std::string_view provider, std::string_view id) const {
  if (provider == ai::kScriptedProvider) return ai::scripted_model(std::string(id));
  for (const ai::Model& model : models_of(provider)) {
    if (model.id == id) return model;
  }
  return std::nullopt;
}

bool ModelRegistry::is_available(const ai::Model& model) const {
  if (model.provider == ai::kScriptedProvider) return true;
  if (!options_.apis.empty() && !options_.apis.contains(model.api)) return false;
  if (!has_auth(model.provider)) return false;
  if (runtime_keys_.contains(model.provider)) return true;
  const auto stored = credentials_.find(model.provider);
  const auto* login = stored ? std::get_if<OAuthCredential>(&*stored) : nullptr;
  return login == nullptr || allows(*login, model);
}

std::vector<ai::Model> ModelRegistry::available() const {
  std::vector<ai::Model> out;
  for (const std::string& provider : providers_) {
    if (!has_auth(provider)) continue;  // its catalogue need not be read
    for (const ai::Model& model : models_of(provider)) {
      if (is_available(model)) out.push_back(model);
    }
  }
  return out;
}

ModelChoice ModelRegistry::resolve(std::optional<std::string> provider, std::string_view model) const {
  const std::string prefix = std::string(ai::kScriptedProvider) + "/";
  if (provider == ai::kScriptedProvider || (!provider && model.starts_with(prefix))) {
    if (model.starts_with(prefix)) model.remove_prefix(prefix.size());
    ModelChoice choice;
    choice.model = ai::scripted_model(std::string(model.empty() ? kTour : model));
    return choice;
  }
  return resolve_model(*this, std::move(provider), model);
}

// ---- requests -----------------------------------------------------------------------------------------------------

void ModelRegistry::set_runtime_key(std::string provider, std::string key) {
  runtime_keys_.insert_or_assign(std::move(provider), std::move(key));
}

ai::Environment ModelRegistry::template_variables(const std::map<std::string, std::string>& first) const {
  return ai::layered(first, options_.environment);
}

bool ModelRegistry::has_auth(std::string_view provider) const {
  if (provider == ai::kScriptedProvider || runtime_keys_.contains(provider)) return true;
  if (const auto stored = credentials_.find(provider)) {
    const auto* key = std::get_if<ApiKeyCredential>(&*stored);
    if (key == nullptr) return true;
    const ai::Environment variables = template_variables(key->env);
    if (!key->key)
      return !key->env.empty() &&
             ai::environment_auth(provider, ai::layered(key->env, [](auto) { return std::nullopt; }));
    return !key->key->empty() && coding::is_available(*key->key, variables) &&
           ai::key_auth(provider, "", "", variables).has_value();
  }
  const ModelsProvider* config = configured(provider);
  if (config != nullptr && config->api_key) return coding::is_available(*config->api_key, options_.environment);
  return ai::environment_auth(provider, options_.environment).has_value();
}

std::string ModelRegistry::how_to_get_a_key(std::string_view provider) const {
  const auto variables = ai::wanted_variables(provider);
  std::string text = fmt::format("No API key found for {}.", provider);
  if (!variables.empty()) {
    text += fmt::format(" Set {}, or", fmt::join(variables, provider == "amazon-bedrock" ? " or " : " and "));
  }
  text += fmt::format("{} add a key to {}", variables.empty() ? " Please" : "", credentials_.file().string());
  if (ai::find_provider(provider) == nullptr) text += fmt::format(" or an \"apiKey\" to {}", models_path_.string());
  return text + ".";
}

asio::awaitable<std::expected<std::string, Error>> ModelRegistry::resolve_stored(std::string value,
                                                                                 ai::Environment environment) const {
  if (!is_command(value)) co_return expand_template(value, environment);
  if (const auto known = command_values_.find(value); known != command_values_.end()) co_return known->second;
  auto resolved = co_await resolve_value(value, std::move(environment));
  if (resolved) command_values_.insert_or_assign(value, *resolved);
  co_return resolved;
}

asio::awaitable<std::expected<ai::RequestAuth, Error>> ModelRegistry::key_of(std::string provider) const {
  const auto unresolved = [&](const Error& why, std::string_view where) {
    return std::unexpected(
        error(fmt::format("Cannot resolve the API key of {} ({}): {}", provider, where, why.message)));
  };
  if (const auto found = runtime_keys_.find(provider); found != runtime_keys_.end()) {
    auto auth = ai::key_auth(provider, found->second, "--api-key", options_.environment);
    if (auth) co_return *std::move(auth);
    co_return std::unexpected(error(how_to_get_a_key(provider)));
  }
  if (const auto stored = credentials_.find(provider)) {
    if (const auto* login = std::get_if<OAuthCredential>(&*stored)) co_return oauth_request(provider, *login);
    const auto& credential = std::get<ApiKeyCredential>(*stored);
    const ai::Environment variables = template_variables(credential.env);
    std::optional<ai::RequestAuth> auth;
    if (credential.key) {
      auto key = co_await resolve_stored(*credential.key, variables);
      if (!key) co_return unresolved(key.error(), credentials_.file().string());
      if (!key->empty()) auth = ai::key_auth(provider, *std::move(key), "stored credential", variables);
    } else if (!credential.env.empty()) {
      auth = ai::environment_auth(provider, ai::layered(credential.env, [](auto) { return std::nullopt; }));
    }
    // A stored entry owns its provider: the environment is not tried behind its back (AI-242).
    if (!auth) {
      co_return std::unexpected(error(fmt::format("The entry of {} in {} cannot be used. {}", provider,
                                                  credentials_.file().string(), how_to_get_a_key(provider))));
    }
    for (const auto& [name, text] : credential.env)
      auth->env.insert_or_assign(name, text);
    co_return *std::move(auth);
  }
  const ModelsProvider* config = configured(provider);
  if (config != nullptr && config->api_key) {
    auto key = co_await resolve_value(*config->api_key, options_.environment);
    if (!key) co_return unresolved(key.error(), models_path_.string());
    auto auth = ai::key_auth(provider, *std::move(key), "models.json", options_.environment);
    if (auth) co_return *std::move(auth);
    co_return std::unexpected(error(how_to_get_a_key(provider)));
  }
  if (auto auth = ai::environment_auth(provider, options_.environment)) co_return *std::move(auth);
  co_return std::unexpected(error(how_to_get_a_key(provider)));
}

asio::awaitable<std::expected<ai::RequestAuth, Error>> ModelRegistry::request_auth(ai::Model model) const {
  if (model.provider == ai::kScriptedProvider) co_return ai::RequestAuth{};
  auto keyed = co_await key_of(model.provider);
  if (!keyed) co_return std::unexpected(keyed.error());
  ai::RequestAuth auth = *std::move(keyed);
  const ai::Environment variables = template_variables(auth.env);

  HeaderTemplates templates;
  if (const ModelsProvider* config = configured(model.provider)) {
    templates = config->headers;
    if (config->auth_header && auth.api_key) {
      ai::merge_headers(auth.headers, {{"Authorization", "Bearer " + *auth.api_key}});
    }
  }
  for (const auto& [id, headers] : entry(model.provider).model_headers) {
    if (id == model.id) templates.insert(templates.end(), headers.begin(), headers.end());
  }
  for (const auto& [name, value] : templates) {
    auto resolved = co_await resolve_value(value, variables);
    if (!resolved) {
      co_return std::unexpected(error(fmt::format("Cannot resolve the header \"{}\" of {} ({}): {}", name,
                                                  model.provider, models_path_.string(), resolved.error().message)));
    }
    ai::merge_headers(auth.headers, {{name, *std::move(resolved)}});
  }
  if (!auth.base_url) {
    std::string filled = ai::fill_base_url(model.base_url, variables);
    if (filled != model.base_url) auth.base_url = std::move(filled);
  }
  co_return auth;
}

}  // namespace tau::coding
