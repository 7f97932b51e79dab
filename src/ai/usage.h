// Token usage and its price (AI-13, AI-60).
#pragma once

#include <cstdint>
#include <optional>

#include "base/json.h"

namespace tau::ai {

/// US dollars.
struct Cost {
  double input = 0;
  double output = 0;
  double cache_read = 0;
  double cache_write = 0;
  double total = 0;
};

/// Tokens of one model call. `input` never includes cached tokens.
struct Usage {
  double input = 0;
  double output = 0;
  double cache_read = 0;
  double cache_write = 0;
  double total_tokens = 0;
  Cost cost;
  std::optional<double> cache_write_1h;  // part of cache_write that is kept for an hour
  std::optional<double> reasoning;       // part of output; for providers that report it
  json::object extra;                    // members that this version does not know
};

json::object to_json(const Usage& usage);
/// Missing members read as 0: old and hand-edited files lack some.
Usage usage_from_json(const json::object& o);

}  // namespace tau::ai
