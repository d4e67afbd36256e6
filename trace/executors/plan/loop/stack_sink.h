// trace/executors/plan/loop/stack_sink.h — StackSink: takes the terms of one stack.
#pragma once

#include <variant>

#include "reel/trace/executors/leaves/checkpoint_stacks.h"
#include "reel/trace/executors/leaves/file_stack.h"
#include "reel/trace/executors/leaves/list_stack.h"
#include "reel/trace/executors/plan/loop/dense_stack.h"
#include "reel/trace/executors/plan/loop/growing_stack.h"
#include "reel/trace/executors/plan/loop/row_stack.h"

namespace reel {

/// Each kind has these functions, lists and checkpoints without place():
///   place(position):     returns where the body writes the term; null if the stack is a list
///   put(term, position): takes a term that was not written there
///   finish(out, made):   sets the result. made: the dim that the loop makes, if it makes one
using StackSink =
    std::variant<DenseStack, RowStack, GrowingStack, ListStack, CheckpointStack, FileStack>;

/// Returns the sink of stack `index`.
///
/// term: type of a term as planned.
/// out: the result. Allocated if the length is known and it is undefined.
/// rows: of a row block; null for the whole loop.
StackSink make_stack_sink(const LeafContext& loop, std::size_t index, const TensorType& term,
                          Tensor& out, BlockRows* rows, CheckpointStacks& checkpoints,
                          Spills& spills);

}  // namespace reel
