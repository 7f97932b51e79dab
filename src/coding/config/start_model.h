// Which model and thinking level a session starts with (CA-196, CA-197), and where cycling goes from there (CA-199).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coding/config/model_registry.h"
#include "coding/config/settings.h"

namespace tau::coding {

struct StartRequest {
  std::optional<std::string> provider;              // --provider
  std::optional<std::string> model;                 // --model
  std::optional<ai::ThinkingLevel> thinking_level;  // --thinking
  std::optional<std::vector<std::string>> scope;    // --models; else the setting enabledModels
  /// What the session was last using; nothing for a new one.
  struct Stored {
    std::string provider;
    std::string model;
    std::optional<ai::ThinkingLevel> thinking_level;
  };
  std::optional<Stored> stored;
};

struct StartChoice {
  std::optional<ai::Model> model;  // nothing: no usable model, the session starts without one (MO-25)
  ai::ThinkingLevel thinking_level = ai::ThinkingLevel::kOff;  // clamped to the model
  std::vector<ScopedModel> scope;                              // empty = all available models
  std::vector<std::string> warnings;
  std::optional<std::string> error;  // the request cannot be met: exit 1
};

StartChoice choose_start_model(const ModelRegistry& registry, const Settings& settings, const StartRequest& request);

/// The level for a model that is switched to: as scoped, as last chosen for it, as by default, as it was; clamped.
ai::ThinkingLevel level_for(const ai::Model& model, std::optional<ai::ThinkingLevel> scoped, const Settings& settings,
                            ai::ThinkingLevel current);

/// The model after (or before) `current`; nothing when there is at most one. An unknown current one counts as the
/// first.
std::optional<ScopedModel> cycle_model(const std::vector<ScopedModel>& models, const ai::Model* current, bool forward);
/// What cycling goes through: the scope without what has become unusable, else all available models.
std::vector<ScopedModel> cycle_candidates(const ModelRegistry& registry, const std::vector<ScopedModel>& scope);

/// The next level that the model offers, around the end; nothing for a model without reasoning.
std::optional<ai::ThinkingLevel> next_thinking_level(const ai::Model& model, ai::ThinkingLevel current);

}  // namespace tau::coding
