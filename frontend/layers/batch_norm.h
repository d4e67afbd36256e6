// frontend/layers/batch_norm.h — BatchNorm, which normalises channels over a batch.
#pragma once

#include <functional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of BatchNorm::init.
struct BatchNormOptions {
  double momentum = 0.1;  ///< weight of a batch in the averages of the state
  double epsilon = 1e-5;  ///< added to the variance
  DType dtype = f32;      ///< of the parameters
};

/// y = (x - mean) / √(variance + ε) · scale + bias for each channel.
///
/// The averages of mean and variance are a state that goes in and out, as a cell's state. In
/// training, mean and (biased) variance are computed from x, and the averages take the mean and
/// the unbiased variance, as in PyTorch; no gradient flows into them. Otherwise mean and variance
/// come from the state. Padding does not count.
/// Source: Ioffe & Szegedy (2015), algorithms 1 and 2.
struct BatchNorm {
  /// Averages over batches, {channel} each.
  struct State {
    Tensor mean, variance;  ///< at first 0 and 1
  };
  /// Returns the sums of tensors over all ranks: [&](const Tensors& t) { return
  /// world.all_reduce(t); }.
  using SumOverRanks = std::function<Tensors(const Tensors& sums)>;

  Tensor scale, bias;     ///< {channel} each
  Dim channel = 0;        ///< each of its elements is normalised alone
  double momentum = 0.1;  ///< weight of a batch in the averages of the state
  double epsilon = 1e-5;  ///< added to the variance
  bool training = true;   ///< false: normalises by the state; see set_training

  /// Returns a layer with scale 1 and bias 0. Throws ArgumentError if the dim has no name or no
  /// known size, if epsilon is negative or momentum not in [0, 1]; DTypeError for a dtype that is
  /// not floating.
  static BatchNorm init(const Dim& channel, const BatchNormOptions& options = {});

  /// Returns mean 0 and variance 1.
  State initial_state() const;
  /// Returns {y, the next state}. x: named, [..., channel] -> y of the same dims. over: all other
  /// dims of x; default: these. The state itself is returned if x has no elements, or without
  /// training. sum_over_ranks: if given, mean and variance are over the batches of all ranks; in a
  /// function of World::value_and_grad, over one shard of each rank. Throws ShapeError if `over`
  /// lacks a dim.
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state, const Dims& over = {},
                                      const SumOverRanks& sum_over_ranks = {}) const;
};

}  // namespace reel
REEL_API_END
