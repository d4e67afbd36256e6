// core/ops/control/checkpointed.h — a function that its gradient computes again instead of saving
// residuals.
#pragma once

#include "reel/core/graph/graph.h"
#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// checkpointed(captures...): runs a graph on its captures. The gradient runs the graph again,
/// except for the records that make the last `kept` outputs: these are saved, and only the gradient
/// reads them. Source: Chen et al. (2016), "Training deep nets with sublinear memory cost".
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
/// Returns x as a new value, so that ops on it are computed again: they are not merged with equal
/// ops on x. Executors that run ops as soon as possible wait until `after` is computed.
Tensor afresh(const Tensor& x, const Tensor& after);

}  // namespace reel
