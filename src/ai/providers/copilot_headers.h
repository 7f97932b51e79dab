// Headers of GitHub Copilot that depend on the conversation (AI-100), and looking headers up. Shared by the APIs that
// Copilot speaks.
#pragma once

#include <string_view>

#include "ai/context.h"
#include "ai/model.h"

namespace tau::ai {

/// Who asks (the user, or the agent after a tool), and whether an image is part of it.
Headers copilot_headers(const Context& context);

/// Whether a header of this name has a text that is not blank; names are compared without regard to case.
bool has_header(const Headers& headers, std::string_view name);

}  // namespace tau::ai
