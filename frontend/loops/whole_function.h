// frontend/loops/whole_function.h — functions of the frontend that formats have as one op, recorded
// as one record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// While an object exists, whole_function() of this thread records calls instead of their ops.
class REEL_API WholeFunctions {
 public:
  WholeFunctions();
  ~WholeFunctions();
  WholeFunctions(const WholeFunctions&) = delete;
  WholeFunctions& operator=(const WholeFunctions&) = delete;

  /// Returns true if a call is recorded as one record now: in a trace, without a tape. A tape needs
  /// the residuals of the ops.
  static bool are_recorded();

 private:
  const bool before_;
};

/// A call of a labelled function. The format finds operands, dims and numbers by their roles.
struct WholeFunction {
  std::string name;
  std::vector<Tensor> operands;  ///< empty Tensors: not given
  Dims dims;
  std::vector<double> numbers;
};

/// Records `run`, which computes the results from the operands, as one op "checkpointed" with a
/// label, and returns its results. The op has no label if `run` does not read an operand. Requires
/// WholeFunctions::are_recorded(). Throws the exceptions of `run`.
///
/// The labels, with their roles:
///   attention      operands: q, k, v, bias, mask, offset. dims: keys, features, the dim of q that
///                  has positions (keys if there is none). numbers: scale, causal, window or -1,
///                  1 if q has that dim.
///   rotary         operands: x, positions. dims: feature. numbers: base.
///   rms_norm       operands: x, scale. dims: feature. numbers: epsilon.
///   causal_conv    operands: x, filter, bias, state. dims: time, channel, past. numbers:
///                  dilation. Results: y, and the next state if there is one.
///   linear_attention  operands: q, k, v, state, decay, beta. dims: time, features. numbers: scale.
///                  Results: y and the last state.
Tensors whole_function(const WholeFunction& call, const std::function<Tensors()>& run);

}  // namespace reel
