// onnx/writers/positions.h — nodes that take elements by position, for the writers of several ops.
#pragma once

#include "reel/onnx/graph_writer.h"

namespace reel::exported {

/// Returns the elements of x at positions along an axis. positions: not negative, with the rank of
/// x, and with its sizes except along the axis.
Name take_elements(GraphWriter& to, const Name& x, const Name& positions, int axis);

}  // namespace reel::exported
