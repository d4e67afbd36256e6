// tests/fuzz/modes.h — the modes that programs run in beside eager mode.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reel/core/passes.h"
#include "reel/tests/fuzz/derivatives.h"
#include "reel/tests/fuzz/program.h"

namespace reel::fuzz {

/// A function in a mode.
struct Runner {
  Function call;
  std::function<int()> trace_count;
  std::function<std::string()> explain;
};
struct Mode {
  const char* name;
  bool is_exact;  ///< the bits of eager mode, rather than the same up to rounding
  Runner (*run)(const Function&, const Passes&);
  Passes passes;
};

/// Every mode but eager, which a program is compared with. Another executor joins by a line.
std::vector<Mode> all_modes(const Program& program);

}  // namespace reel::fuzz
