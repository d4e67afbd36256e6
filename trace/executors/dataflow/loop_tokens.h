// trace/executors/dataflow/loop_tokens.h — the nodes of a lowered loop other than its body's
// records: counting, slicing, stacking, summing, and the values that finished entries read.
#pragma once

#include <optional>
#include <span>

#include "reel/core/types/tensor.h"
#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// Runs a node that is no record, input or identity and opens no scope.
///
/// attrs: of the record, with resolved dims; for begin and bindings.   inputs: may be moved from.
/// Throws InternalError for other nodes.
void run_loop_node(const LoweredNode& node, const AttrsRef& attrs, std::span<Tensor> inputs,
                   std::span<Tensor> outputs);

/// Returns the dims that free symbols of a graph stand for, given the handle that its `open` node
/// reads.
///
/// part: 0 for a body or the branch on_true, 1 for a condition or on_false.
DimEnv dims_of_handle(const Tensor& handle, int part);

/// Returns the number by which error messages name the iteration that follows `count` others.
///
/// begin: handle of the loop's `begin` node; empty if no node needs it.
std::int64_t iteration_number(const Tensor& begin, std::int64_t count);

}  // namespace reel
