// frontend/pictures/loop_rows.h — rows_of_loops, the rows of a time line for loops with overlapping
// iterations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reel/trace/inspection.h"

namespace reel {

/// An execution of a loop, or an iteration.
struct LoopSpan {
  int frame = 0;
  std::optional<std::int64_t> iteration = {};
  std::string tag = {};  ///< for an iteration, with the numbers of the outer loops: 3.0
  unsigned row = 0;
  std::int64_t begin = 0, end = 0;  ///< nanoseconds since the run began
};

struct LoopRows {
  std::vector<LoopSpan> spans;
  std::vector<std::string> names;  ///< by row
};

/// Returns the rows of all loops that ran in a run. Iterations and inner loops lie inside their
/// loop if they ran one after the other; those that began while another was in flight have a row
/// below. Spans of a row are nested or disjoint. names: of loops, by frame.
LoopRows rows_of_loops(const RecordedRun& run, const std::vector<std::string>& names);

}  // namespace reel
