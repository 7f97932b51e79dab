#include "app/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace tau::app {

void Output::write(std::string_view bytes) {
  while (!bytes.empty() && !closed_) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      pollfd fd{descriptor_, POLLOUT, 0};
      poll(&fd, 1, 10);
    } else if (errno != EINTR) {
      closed_ = true;
    }
  }
}

}  // namespace tau::app
