// What every encoder derives from the neutral options of a call in the same way (AI-58, AI-59, AI-61).
#pragma once

#include <optional>

#include "ai/context.h"
#include "ai/model.h"

namespace tau::ai {

/// Tokens that stay free between the context, the reply and the window, because the estimate is one (AI-58).
inline constexpr double kWindowReserve = 4096;

/// The largest reply that fits into the window beside the context, at least 1 (AI-58). A model whose window is unknown
/// keeps `max_tokens`.
double clamp_max_tokens(double max_tokens, const Model& model, const Context& context);

struct BaseOptions {
  std::optional<double> temperature;
  double max_tokens = 0;         // always sent
  json::object sampling_params;  // the model's, overridden by the call's; empty = not sent
};

BaseOptions base_options(const Model& model, const Context& context, const StreamOptions& options);

/// The call's choice, else PI_CACHE_RETENTION=long, else short (AI-61).
CacheRetention cache_retention(const StreamOptions& options);

}  // namespace tau::ai
