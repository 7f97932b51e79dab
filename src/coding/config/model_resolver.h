// From what a person wrote to a model: `--model`, `--models`, the list of models to cycle through (CA-190 to CA-195).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ai/model.h"

namespace tau::coding {

/// The models to choose from, by provider. A provider's models are only asked for when they matter, because reading
/// them costs time at start.
class ModelCollection {
 public:
  virtual ~ModelCollection() = default;
  /// In the order of the catalogue.
  virtual const std::vector<std::string>& providers() const = 0;
  /// Empty for an unknown provider. Valid until the collection changes.
  virtual const std::vector<ai::Model>& models_of(std::string_view provider) const = 0;
  /// Whether requests could authenticate, as far as can be told without running anything.
  virtual bool has_auth(std::string_view provider) const = 0;
};

struct ModelChoice {
  std::optional<ai::Model> model;
  std::optional<ai::ThinkingLevel> thinking_level;  // when one was written
  std::optional<std::string> warning;
  std::optional<std::string> error;  // set exactly when there is no model and one was asked for
};

/// CA-191: `provider/id`, or an id that only one provider has. Without regard to case.
const ai::Model* find_exact(std::string_view reference, const std::vector<ai::Model>& models);

/// CA-192, CA-193: a pattern with an optional `:level`. `lenient`: an unknown level is a warning instead of no match.
ModelChoice match_pattern(std::string_view pattern, const std::vector<ai::Model>& models, bool lenient);

struct ScopedModel {
  ai::Model model;
  std::optional<ai::ThinkingLevel> thinking_level;
};

struct ModelScope {
  std::vector<ScopedModel> models;  // in the order of the patterns, each model once
  std::vector<std::string> warnings;
};

/// CA-194. `models`: those that can be used.
ModelScope resolve_scope(const std::vector<std::string>& patterns, const std::vector<ai::Model>& models);

/// CA-195: `--provider` and `--model`.
ModelChoice resolve_model(const ModelCollection& collection, std::optional<std::string> provider,
                          std::string_view model);

}  // namespace tau::coding
