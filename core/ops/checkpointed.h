// core/ops/checkpointed.h — a function of which little is kept for its gradient but what goes in.
#pragma once

#include "reel/core/graph.h"
#include "reel/core/op.h"
#include "reel/core/tensor.h"

namespace reel {

/// checkpointed(captures...): runs a graph, whose inputs they are. Its gradient runs the graph once
/// more; but for what makes the last `kept` outputs, which nobody but the gradient reads. Source:
/// Chen et al. (2016), "Training deep nets with sublinear memory cost".
struct CheckpointedAttrs {
  SubGraph body;
  std::int64_t kept = 0;
  template <class F>
  static void fields(F&& f) {
    f("body", &CheckpointedAttrs::body);
    f("kept", &CheckpointedAttrs::kept);
  }
};
extern const Op checkpointed_op;
void checkpointed_vjp(Vjp& at);  // autodiff/checkpointed_vjp.cpp

extern const Op afresh_op;
/// The tensor as a value that nobody has computed anything from: what is computed from it is
/// computed once more, and not taken from where that was done before; nor before `after` is there,
/// where ops run as soon as they can.
Tensor afresh(const Tensor& x, const Tensor& after);

}  // namespace reel
