// What a model is and how to reach it (AI-15), and the thinking levels (AI-50 to AI-53).
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ai/usage.h"
#include "base/error.h"
#include "base/json.h"

namespace tau::ai {

/// Order matters: off < minimal < … < max (AI-50).
enum class ThinkingLevel { kOff, kMinimal, kLow, kMedium, kHigh, kXhigh, kMax };

inline constexpr ThinkingLevel kThinkingLevels[] = {
    ThinkingLevel::kOff,  ThinkingLevel::kMinimal, ThinkingLevel::kLow, ThinkingLevel::kMedium,
    ThinkingLevel::kHigh, ThinkingLevel::kXhigh,   ThinkingLevel::kMax};

std::string_view to_string(ThinkingLevel level);
std::optional<ThinkingLevel> thinking_level_from(std::string_view text);

/// US dollars per million tokens.
struct Rates {
  double input = 0;
  double output = 0;
  double cache_read = 0;
  double cache_write = 0;
};

struct PriceTier {
  double input_tokens_above = 0;
  Rates rates;
};

/// A header value; none removes a header that would be sent by default (AI-48).
using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// Later entries replace earlier ones of the same name, compared without regard to case.
void merge_headers(Headers& into, const Headers& from);

struct Model {
  std::string id;
  std::string name;
  std::string api;       // "anthropic-messages", "openai-completions", …: an open set (AI-6)
  std::string provider;  // an open set
  std::string base_url;
  bool reasoning = false;
  /// Level -> the provider's word for it; nothing = unsupported; level missing = default (AI-51).
  std::map<ThinkingLevel, std::optional<std::string>> thinking_level_map;
  bool text_input = true;
  bool image_input = false;
  Rates cost;
  std::vector<PriceTier> tiers;
  double context_window = 0;  // tokens; <= 0 means unknown
  double max_tokens = 0;      // tokens of one reply
  json::object sampling_params;
  Headers headers;
  json::object compat;  // keys depend on `api`; read by that api's encoder
  json::object extra;   // members that this version does not know
};

json::object to_json(const Model& model);
/// Needs `id`, `api` and `provider`; everything else has a default.
std::expected<Model, Error> model_from_json(const json::object& o);

/// Levels that the model offers, in order (AI-52). A model without reasoning offers only kOff.
std::vector<ThinkingLevel> supported_thinking_levels(const Model& model);
/// The level itself, else the next one above that is supported, else the next below (AI-53).
ThinkingLevel clamp_thinking_level(const Model& model, ThinkingLevel level);

/// Fills usage.cost from the token counts (AI-60).
void price(Usage& usage, const Model& model);

}  // namespace tau::ai
