// onnx/writers/loop_writer.h — the writer of loops.
#pragma once

#include "reel/onnx/writer_registry.h"

namespace reel::exported {

/// Writes a loop as a node Loop: while_loop, scan, and all their gradients.
///
///   carries, sums:  state of the Loop; sums begin with zeros
///   slices:         elements of values outside, by position
///   captures:       values of the graph around the body
///   stacks:         scan outputs; reversed behind a loop that runs backwards
///   cond:           nodes before the loop and at the end of the body
///   entries:        masks, as EntryWriter makes them
Names write_loop(const WriteCall& call);

}  // namespace reel::exported
