// Text that leaves for a provider is UTF-8; text inside may hold lone surrogates (AI-9, AI-40, FF-4).
#pragma once

#include "base/json.h"

namespace tau::ai {

/// Deletes lone surrogates in every string and key of a request body.
void remove_lone_surrogates(json::value& v);

}  // namespace tau::ai
