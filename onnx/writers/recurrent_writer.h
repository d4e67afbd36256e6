// onnx/writers/recurrent_writer.h — the writer of loops that ONNX's RNN, GRU or LSTM computes.
#pragma once

#include <optional>

#include "reel/onnx/writer_registry.h"

namespace reel::exported {

/// Writes a loop as a node RNN, GRU or LSTM. Returns nothing, and adds no node, if no such node
/// computes exactly this loop (cell_pattern.h), or if SaveOnnxOptions::recurrent_nodes is false.
///
///   slices:   X, also if the loop reads their products with the input weights
///   carries:  initial_h, initial_c; Y_h, Y_c
///   captures: W, R, B, P: the gates in ONNX's order
///   stacks:   Y
///   lengths:  sequence_lens
///
/// f32 only: onnxruntime has no such nodes in f64.
std::optional<Names> write_recurrent(const WriteCall& call);

}  // namespace reel::exported
