// frontend/pictures/loop_rows.h — which rows of a time line show loops whose iterations lie beside
// each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reel/trace/executors/dataflow/recorded_run.h"

namespace reel {

/// An execution of a loop, or one of its iterations.
struct LoopSpan {
  int frame = 0;
  std::optional<std::int64_t> iteration = {};
  std::string tag = {};  ///< of an iteration, behind those of the loops around: 3.0
  unsigned row = 0;
  std::int64_t begin = 0, end = 0;  ///< nanoseconds since the run began
};

struct LoopRows {
  std::vector<LoopSpan> spans;
  std::vector<std::string> names;  ///< by row
};

/// Every loop of a run that ran, with its iterations in it, in those the loops inside, as far as
/// they came one after the other; what began while another was in flight has a row below. Spans of
/// a row lie in each other or apart. names: of loops, by frame.
LoopRows rows_of_loops(const RecordedRun& run, const std::vector<std::string>& names);

}  // namespace reel
