// The models that tau knows without asking anybody: ids, sizes, prices, and what is odd about each server.
//
// The data are JSON files (data/, written by scripts/generate-catalog) that the build puts into the program as text.
// About a thousand models are 220 kB; reading them all takes some milliseconds, so a provider's file is read when it is
// first asked for, and only that one. A start with one configured provider reads one file of a few kilobytes.
#pragma once

#include <string_view>
#include <vector>

#include "ai/model.h"

namespace tau::ai {

/// The models of a built-in provider, in the order of the catalogue; empty for any other. The reference stays valid.
/// Safe to call from several threads.
const std::vector<Model>& catalog_models(std::string_view provider);

}  // namespace tau::ai
