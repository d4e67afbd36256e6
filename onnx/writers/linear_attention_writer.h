// onnx/writers/linear_attention_writer.h — the writer of linear_attention as the node
// LinearAttention.
#pragma once

#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/labelled_call.h"

namespace reel::exported {

/// Returns true if the node LinearAttention computes the call: it has known numbers of heads, and
/// its state ends with the last time step of all entries.
bool fits_linear_attention(const LabelledCall& at);

/// Writes the node. Its axes: batch, time, heads and features. Dims of q alone are further heads of
/// queries, for each head of keys.
Names write_linear_attention(const WriteCall& call, const LabelledCall& at);

}  // namespace reel::exported
