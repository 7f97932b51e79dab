#pragma once

#include <string>
#include <vector>

namespace tau::app {

/// The program after `--version`: everything from the command line to the exit code. `words`: without the program name.
int run(const std::vector<std::string>& words);

}  // namespace tau::app
