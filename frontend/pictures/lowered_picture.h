// frontend/pictures/lowered_picture.h — pictures of lowered graphs: frames are boxes, Enter and
// Exit stand on their borders.
#pragma once

#include "reel/frontend/pictures/picture.h"
#include "reel/trace/executors/dataflow/recorded_run.h"

namespace reel {

struct LoweredPicture {
  Picture picture;
  std::vector<int> nodes;   ///< of the picture, by node of the lowered graph
  std::vector<int> frames;  ///< boxes of the picture, by frame; -1 for what is around all loops
};
LoweredPicture picture_of(const LoweredGraph& graph);
/// The same with what the nodes of a run took, and when, and how many iterations ran: threads have
/// rows of the time line, and so have the loops (loop_rows.h).
LoweredPicture picture_of(const RecordedRun& run);

/// A graph has loops or conds, which lowering takes apart.
bool has_control_flow(const Graph& graph);

}  // namespace reel
