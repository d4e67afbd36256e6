// onnx/writers/merged_axes.h — values in the layout of a node whose axes stand for several dims.
#pragma once

#include <vector>

#include "reel/onnx/graph_writer.h"

namespace reel::exported {

/// The axes of a node's input or output. Each stands for dims of a value, in row-major order; one
/// without dims has the size 1.
using MergedAxes = std::vector<Dims>;

/// Returns dims without others.
Dims dims_without(Dims dims, const Dims& others);

/// Returns a value with the dims `from`, which are named and all in `axes`, in the node's layout.
Name to_axes(GraphWriter& to, const Name& x, const Dims& from, const MergedAxes& axes);
/// Returns a node's result as a value with these dims. Requires the dims of `axes`.
Name from_axes(GraphWriter& to, const Name& x, const MergedAxes& axes, const Dims& dims);
/// Returns a value in the node's layout such that it broadcasts: axes have the size 1 if the value
/// has none of their dims.
Name broadcast_to_axes(GraphWriter& to, const Name& x, const Dims& from, const MergedAxes& axes);

}  // namespace reel::exported
