// frontend/optimisers/step_number.h — StepNumber, a number that the updates of all parameters read.
#pragma once

#include <utility>

#include "reel/core/functions/elementwise.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/types/tensor.h"

namespace reel::detail {

/// A number of an update rule as a scalar of a parameter's dtype. `m * 0.9` makes a tensor for the
/// number at each parameter; this class makes one for all parameters of a dtype, at the first
/// request. The bits of results are the same.
class StepNumber {
 public:
  explicit StepNumber(double value) : value_(value) {}
  const Tensor& in(DType dtype) {
    Tensor& made = dtype == f64 ? in_f64_ : in_f32_;
    if (!made.is_defined()) made = literal(value_, dtype);
    return made;
  }

 private:
  double value_;
  Tensor in_f64_, in_f32_;
};

/// A running average with an exponential decay.
class StepAverage {
 public:
  explicit StepAverage(double decay) : kept_(decay), added_(1 - decay) {}
  /// Returns the next average. A value without other references gives its memory to it.
  Tensor next(const Tensor& mean, Tensor value) {
    const DType dtype = mean.dtype();
    return mean * kept_.in(dtype) + std::move(value) * added_.in(dtype);
  }

 private:
  StepNumber kept_, added_;  ///< the weights of the old average and of the new value
};

}  // namespace reel::detail
