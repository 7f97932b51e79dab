#include <sys/utsname.h>

#include <string>
#include <string_view>

#include "ai/provider_call.h"

namespace tau::ai {

std::string user_agent() {
  utsname system{};
  ::uname(&system);
  const std::string_view machine = system.machine;
  const std::string_view arch = machine == "x86_64" ? "x64" : machine == "aarch64" ? "arm64" : machine;
  return "tau/" TAU_VERSION " (linux " + std::string(system.release) + "; " + std::string(arch) + ")";
}

}  // namespace tau::ai
