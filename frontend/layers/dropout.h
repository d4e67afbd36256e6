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

struct SetTraining {
  bool training;
  template <class T>
  void operator()(T& leaf, const std::string& path) const {
    if constexpr (std::is_same_v<T, bool>)
      if (path.substr(path.rfind('.') + 1) == "training") leaf = training;
  }
  void size(std::size_t, const std::string&) const {}
  void key(const std::string&, const std::string&) const {}
};

}  // namespace detail

/// Sets each boolean field `training` of a model, at any depth: true for training, false for
/// inference.
template <class Model>
void set_training(Model& model, bool training) {
  detail::SetTraining fn{training};
  detail::walk<true>(model, {}, fn);
}

}  // namespace reel
REEL_API_END
