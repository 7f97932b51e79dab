#pragma once

#include <string>
#include <utility>

namespace tau {

/// What went wrong, in words for a person: what was tried, on what, and what to do about it. One line, no final full
/// stop needed, no secrets. Carried by std::expected where the caller must handle it.
struct Error {
  std::string message;
};

/// `return failure("cannot read {}: {}", path, reason)` style helpers live with fmt; this one only wraps a text.
inline Error error(std::string message) {
  return Error{std::move(message)};
}

}  // namespace tau
