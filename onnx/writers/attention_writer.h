// onnx/writers/attention_writer.h — the writer of attention as the node Attention.
#pragma once

#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/labelled_call.h"

namespace reel::exported {

/// Returns true if the node Attention computes the call: k and v have all dims that q shares with
/// either, and q has all dims of k but keys.
bool fits_attention(const LabelledCall& at);

/// Writes the node. Its axes: batch, heads, queries or keys, features. Dims of q alone but the last
/// one are further heads of queries, for each head of keys. Lengths, windows and offsets become a
/// mask; a query that sees no key gets zeros, where the node has NaN.
Names write_attention(const WriteCall& call, const LabelledCall& at);

}  // namespace reel::exported
