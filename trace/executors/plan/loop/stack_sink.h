// trace/executors/plan/loop/stack_sink.h — StackSink: takes the terms of one stack.
#pragma once

#include <variant>

#include "reel/trace/executors/plan/loop/checkpoint_stack.h"
#include "reel/trace/executors/plan/loop/dense_stack.h"
#include "reel/trace/executors/plan/loop/file_stack.h"
#include "reel/trace/executors/plan/loop/growing_stack.h"
#include "reel/trace/executors/plan/loop/list_stack.h"
#include "reel/trace/executors/plan/loop/row_stack.h"

namespace reel {

/// Each kind has these functions:
///   place(position):     returns where the body writes the term; null if the stack is a list
///   put(term, position): takes a term that was not written there
///   finish(out, made):   sets the result. made: the dim that the loop makes, if it makes one
using StackSink = std::variant<DenseStack, RowStack, GrowingStack, ListStack, CheckpointStack,
                               FileStack, FileListStack>;

/// Returns the sink of a stack.
///
/// out: the result. Allocated if the length is known and it is undefined.
/// rows: of a row block; null for the whole loop.
StackSink make_stack_sink(const StackOfRun& stack, Tensor& out, BlockRows* rows,
                          const CheckpointTimes& times, Spills& spills);

}  // namespace reel
