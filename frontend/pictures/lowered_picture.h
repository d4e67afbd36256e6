// frontend/pictures/lowered_picture.h — pictures of lowered graphs: frames are boxes with Enter and
// Exit nodes on their borders.
#pragma once

#include "reel/frontend/pictures/picture.h"
#include "reel/trace/inspection.h"

namespace reel {

struct LoweredPicture {
  Picture picture;
  std::vector<int> nodes;   ///< nodes of the picture, by node of the lowered graph
  std::vector<int> frames;  ///< boxes of the picture, by frame; -1 outside all loops
};
LoweredPicture picture_of(const LoweredGraph& graph);
/// Returns the picture of a run's graph with the times of its nodes and the numbers of iterations.
/// Threads and loops have rows of the time line (loop_rows.h).
LoweredPicture picture_of(const RecordedRun& run);

/// True if the graph has loops or conds, which lowering takes apart.
bool has_control_flow(const Graph& graph);

}  // namespace reel
