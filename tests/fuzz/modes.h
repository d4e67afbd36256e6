// tests/fuzz/modes.h — the modes that are compared with eager mode.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reel/core/options/passes.h"
#include "reel/tests/fuzz/derivatives.h"
#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

/// A function in a mode.
struct Runner {
  Function call;
  std::function<int()> trace_count;
  std::function<std::string()> explain;
};
struct Mode {
  const char* name;
  bool is_exact;  ///< true: has the bits of eager mode; false: equal up to rounding
  std::function<Runner(const Function&, const Passes&)> run;
  Passes passes;
  bool takes_static = false;  ///< true: is called with arguments of Call::is_static
};

/// Returns all modes except eager mode. A new executor is one more line in it.
std::vector<Mode> all_modes(const Program& program);

}  // namespace reel::fuzz
