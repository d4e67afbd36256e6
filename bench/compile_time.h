// bench/compile_time.h — measures how long a user's program takes to compile.
#pragma once

#include <string>
#include <vector>

namespace reel::bench {

struct CompileTimes {
  std::vector<double> seconds;      ///< by the wall clock
  std::vector<double> cpu_seconds;  ///< by the processor's clock, without other programs
};

/// Compiles a file of the checkout `times` times, with the compiler that built this program, at
/// -O2, without linking and without a compiler cache. Throws Error if it does not compile.
CompileTimes compile(const std::string& source, int times);

}  // namespace reel::bench
