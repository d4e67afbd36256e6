// frontend/layers/dropout.h — Dropout, which zeroes features at random, and set_training.
#pragma once

#include <string>
#include <type_traits>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// Sets each element to 0 with probability `rate` and divides the others by 1 - rate, so that the
/// expectation stays. Returns its input if `training` is false.
/// Source: Srivastava et al. (2014), in its inverted form.
struct Dropout {
  double rate = 0.5;     ///< the probability of dropping an element
  bool training = true;  ///< false: returns x unchanged; see set_training

  /// x: floating, any dims. Throws ArgumentError if it is training and rate is not in [0, 1].
  Tensor operator()(const Tensor& x) const;
};

namespace detail {

/// Sets the booleans called `training` in a tree.
void set_training(const TreeSlot& model, bool training);

}  // namespace detail

/// Sets each boolean field `training` of a model, at any depth: true for training, false for
/// inference.
template <class Model>
void set_training(Model& model, bool training) {
  detail::set_training(detail::TreeSlot(model), training);
}

}  // namespace reel
REEL_API_END
