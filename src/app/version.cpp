#include "app/version.h"

namespace tau::app {

std::string_view version() {
  return TAU_VERSION;
}

}  // namespace tau::app
