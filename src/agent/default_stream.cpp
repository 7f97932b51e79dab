#include "agent/default_stream.h"

#include <mutex>
#include <stdexcept>
#include <utility>

namespace tau::agent {

namespace {

struct Default {
  std::mutex guard;
  ai::StreamFunction stream;
};

Default& shared() {
  static Default value;
  return value;
}

}  // namespace

void set_default_stream_function(ai::StreamFunction stream) {
  Default& value = shared();
  const std::scoped_lock lock(value.guard);
  value.stream = std::move(stream);
}

ai::StreamFunction default_stream_function() {
  Default& value = shared();
  const std::scoped_lock lock(value.guard);
  if (!value.stream) throw std::logic_error("no stream function: give the agent one, or set the default");
  return value.stream;
}

}  // namespace tau::agent
