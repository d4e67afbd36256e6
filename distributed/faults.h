// distributed/faults.h — ends all ranks if one of them cannot continue.
#pragma once

#include <string>

namespace reel {

/// While it lives: an exception that is not caught, and exit(), print one line with the rank to
/// stderr and end all ranks.
class FaultHandlers {
 public:
  FaultHandlers();
  ~FaultHandlers();
  FaultHandlers(const FaultHandlers&) = delete;
  FaultHandlers& operator=(const FaultHandlers&) = delete;
  /// exit() ends all ranks without a line from now on: the reason is printed.
  void expect_end();
};

/// Prints "reel: rank N: text" to stderr as one write, so that lines of ranks do not mix.
void print_with_rank(int rank, const std::string& text);

/// Prints, on the first rank, how to use more processors, if it is bound to a single one.
void print_binding(int rank, int size);

}  // namespace reel
