#include "coding/config/start_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "ai/catalog/providers.h"

namespace tau::coding {

namespace {

/// CA-196 after the explicit model, the scope and the session.
std::optional<ai::Model> usual_model(const ModelRegistry& registry, const Settings& settings) {
  const auto provider = settings.default_provider();
  const auto id = settings.default_model();
  if (provider && id) {
    auto model = registry.find(*provider, *id);
    // "scripted" is only for those who ask for it on the command line.
    if (model && model->api != "scripted" && registry.is_available(*model)) return model;
  }
  for (const ai::DefaultModel& usual : ai::default_models()) {
    if (!registry.has_auth(usual.provider)) continue;
    auto model = registry.find(usual.provider, usual.model);
    if (model && registry.is_available(*model)) return model;
  }
  auto available = registry.available();
  return available.empty() ? std::nullopt : std::optional(std::move(available.front()));
}

bool is_same(const ai::Model& a, const ai::Model& b) {
  return a.provider == b.provider && a.id == b.id;
}

}  // namespace

StartChoice choose_start_model(const ModelRegistry& registry, const Settings& settings, const StartRequest& request) {
  StartChoice choice;
  std::optional<ai::ThinkingLevel> level = request.thinking_level;

  const std::vector<std::string> patterns = request.scope ? *request.scope : settings.enabled_models();
  if (!patterns.empty()) {
    ModelScope scope = resolve_scope(patterns, registry.available());
    choice.scope = std::move(scope.models);
    choice.warnings = std::move(scope.warnings);
  }

  if (request.model || request.provider) {
    if (!request.model && request.provider != "scripted") {
      choice.error = "--provider needs --model";
      return choice;
    }
    ModelChoice wanted = registry.resolve(request.provider, request.model.value_or(""));
    if (wanted.warning) choice.warnings.push_back(*wanted.warning);
    if (!wanted.model) {
      choice.error = wanted.error;
      return choice;
    }
    choice.model = std::move(wanted.model);
    if (!level) level = wanted.thinking_level;
  } else if (!request.stored && !choice.scope.empty()) {
    const auto provider = settings.default_provider();
    const auto id = settings.default_model();
    const auto saved = std::find_if(choice.scope.begin(), choice.scope.end(), [&](const ScopedModel& scoped) {
      return scoped.model.provider == provider && scoped.model.id == id;
    });
    const ScopedModel& first = saved != choice.scope.end() ? *saved : choice.scope.front();
    choice.model = first.model;
    if (!level) level = first.thinking_level;
  } else if (request.stored) {
    const auto& stored = *request.stored;
    auto model = registry.find(stored.provider, stored.model);
    if (model && registry.is_available(*model)) {
      choice.model = std::move(model);
    } else {
      choice.model = usual_model(registry, settings);
      choice.warnings.push_back(fmt::format(
          "The session's model {}/{} {}{}", stored.provider, stored.model,
          model ? "cannot be used: no API key" : "is not known",
          choice.model ? fmt::format("; {}/{} is used instead", choice.model->provider, choice.model->id) : ""));
    }
  } else {
    choice.model = usual_model(registry, settings);
  }
  if (!choice.model) return choice;

  if (!level && request.stored) level = request.stored->thinking_level;
  if (!level) level = settings.thinking_level_of(choice.model->provider, choice.model->id);
  if (!level) level = settings.default_thinking_level();
  choice.thinking_level = ai::clamp_thinking_level(*choice.model, level.value_or(ai::ThinkingLevel::kMedium));
  return choice;
}

ai::ThinkingLevel level_for(const ai::Model& model, std::optional<ai::ThinkingLevel> scoped, const Settings& settings,
                            ai::ThinkingLevel current) {
  std::optional<ai::ThinkingLevel> level = scoped;
  if (!level) level = settings.thinking_level_of(model.provider, model.id);
  if (!level) level = settings.default_thinking_level();
  return ai::clamp_thinking_level(model, level.value_or(current));
}

std::vector<ScopedModel> cycle_candidates(const ModelRegistry& registry, const std::vector<ScopedModel>& scope) {
  std::vector<ScopedModel> out;
  if (!scope.empty()) {
    std::copy_if(scope.begin(), scope.end(), std::back_inserter(out),
                 [&](const ScopedModel& scoped) { return registry.is_available(scoped.model); });
    return out;
  }
  for (ai::Model& model : registry.available())
    out.push_back({std::move(model), std::nullopt});
  return out;
}

std::optional<ScopedModel> cycle_model(const std::vector<ScopedModel>& models, const ai::Model* current, bool forward) {
  if (models.size() <= 1) return std::nullopt;
  std::size_t at = 0;
  for (std::size_t i = 0; current != nullptr && i < models.size(); ++i) {
    if (is_same(models[i].model, *current)) {
      at = i;
      break;
    }
  }
  return models[(at + (forward ? 1 : models.size() - 1)) % models.size()];
}

std::optional<ai::ThinkingLevel> next_thinking_level(const ai::Model& model, ai::ThinkingLevel current) {
  if (!model.reasoning) return std::nullopt;
  const auto levels = ai::supported_thinking_levels(model);
  if (levels.empty()) return std::nullopt;
  const auto at = std::find(levels.begin(), levels.end(), current);
  if (at == levels.end() || at + 1 == levels.end()) return levels.front();
  return *(at + 1);
}

}  // namespace tau::coding
