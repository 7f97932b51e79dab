// The program's stdout. In print, json and rpc modes only answers and protocol lines go there (MO-9).
#pragma once

#include <string_view>

namespace tau::app {

/// Writes everything, waiting while the reader is slow. After the reader has gone away writes do nothing and `closed`
/// is true: the program ends quietly with code 1 (MO-10, FF-95).
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  void write(std::string_view bytes);
  bool closed() const { return closed_; }

 private:
  int descriptor_;
  bool closed_ = false;
};

}  // namespace tau::app
