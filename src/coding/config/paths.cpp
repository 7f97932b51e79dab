#include "coding/config/paths.h"

#include <stdlib.h>

#include "base/files.h"

namespace tau::coding {

namespace fs = std::filesystem;

fs::path agent_folder() {
  const char* configured = ::getenv("PI_CODING_AGENT_DIR");
  if (configured != nullptr && *configured != '\0') {
    std::error_code failed;
    const fs::path here = fs::current_path(failed);  // may have been deleted (FF-117): the path stays as it is then
    const fs::path path = expand_home(configured);
    return path.is_absolute() || failed ? path.lexically_normal() : resolve_path(path.string(), here);
  }
  return home_folder() / ".pi" / "agent";
}

fs::path project_folder(const fs::path& cwd) {
  return cwd / ".pi";
}

fs::path home_folder() {
  return expand_home("~");
}

}  // namespace tau::coding
