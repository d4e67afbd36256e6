// trace/executors/dataflow/loop_tokens.h — what the nodes of a lowered loop do besides the records
// of its body: counting, slicing, stacking, summing, and what ended entries see.
#pragma once

#include <optional>
#include <span>

#include "reel/core/tensor.h"
#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// What a node does that is no record, input or identity, and opens no scope. attrs: of the record,
/// its dims resolved, for begin and bindings. inputs may be used up.
void run_loop_node(const LoweredNode& node, const AttrsRef& attrs, std::span<Tensor> inputs,
                   std::span<Tensor> outputs);

/// What the free symbols of a graph stand for, given the handle that is open()ed for it. part: 0
/// for a body or the branch on_true, 1 for a condition or on_false.
DimEnv dims_of_handle(const Tensor& handle, int part);

/// The number that messages give the iteration behind `count` others, given what the loop began
/// with; empty where nothing of that is needed.
std::int64_t iteration_number(const Tensor& begin, std::int64_t count);

}  // namespace reel
