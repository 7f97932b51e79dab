#include "ai/base_options.h"

#include <algorithm>

#include "ai/token_estimate.h"

namespace tau::ai {

double clamp_max_tokens(double max_tokens, const Model& model, const Context& context) {
  if (model.context_window <= 0) return std::max(1.0, max_tokens);
  const double room = model.context_window - estimate_context(context).tokens - kWindowReserve;
  return std::min(max_tokens, std::max(1.0, room));
}

BaseOptions base_options(const Model& model, const Context& context, const StreamOptions& options) {
  BaseOptions base;
  base.temperature = options.temperature;
  base.max_tokens = clamp_max_tokens(options.max_tokens.value_or(model.max_tokens), model, context);
  base.sampling_params = model.sampling_params;
  for (const auto& [key, member] : options.sampling_params)
    base.sampling_params[key] = member;
  return base;
}

CacheRetention cache_retention(const StreamOptions& options) {
  if (options.cache_retention) return *options.cache_retention;
  return provider_env(options, "PI_CACHE_RETENTION") == "long" ? CacheRetention::kLong : CacheRetention::kShort;
}

}  // namespace tau::ai
