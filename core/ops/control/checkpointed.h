// core/ops/control/checkpointed.h — a function that its gradient computes again instead of saving
// residuals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// A function of the frontend that some formats have as one op, with the op's operands. The
/// function numbers its roles; see frontend/loops/whole_function.h.
struct FunctionLabel {
  std::string name;                    ///< empty for other functions
  std::vector<std::int64_t> operands;  ///< by role: positions among the captures; -1 if not given
  Dims dims;                           ///< by role
  std::vector<double> numbers;         ///< by role
  template <class F>
  static void fields(F&& f) {
    f("name", &FunctionLabel::name);
    f("operands", &FunctionLabel::operands);
    f("dims", &FunctionLabel::dims);
    f("numbers", &FunctionLabel::numbers);
  }
};

/// checkpointed(captures...): runs a graph on its captures. The gradient runs the graph again,
/// except for the records that make the last `kept` outputs: these are saved, and only the gradient
/// reads them. Source: Chen et al. (2016), "Training deep nets with sublinear memory cost".
struct CheckpointedAttrs {
  SubGraph body;
  std::int64_t kept = 0;
  FunctionLabel label{};  ///< of functions that formats have as one op
  template <class F>
  static void fields(F&& f) {
    f("body", &CheckpointedAttrs::body);
    f("kept", &CheckpointedAttrs::kept);
    f("label", &CheckpointedAttrs::label);
  }
};
extern const Op checkpointed_op;
void checkpointed_vjp(Vjp& at);  // autodiff/checkpointed_vjp.cpp

extern const Op afresh_op;
/// Returns x as a new value, so that ops on it are computed again: they are not merged with equal
/// ops on x. Executors that run ops as soon as possible wait until `after` is computed.
Tensor afresh(const Tensor& x, const Tensor& after);

}  // namespace reel
