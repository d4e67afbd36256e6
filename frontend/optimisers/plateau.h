// frontend/optimisers/plateau.h — Plateau, a learning rate that falls when a score stops improving.
#pragma once

#include <cstdint>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Lowers a learning rate if a score, such as the loss of held-out data, has not improved for some
/// time. Called once for each score; its state goes in and comes out, as a cell's does, so that it
/// is part of a checkpoint and of a traced step.
///
///   const Plateau plateau{.patience = 3};
///   Plateau::State state = plateau.initial_state(0.01);
///   ...
///   std::tie(rate, state) = plateau(loss_of_epoch, state);
///   adam.set_learning_rate(rate);
///
/// A score improves if it is below best · (1 - threshold), or best - threshold if not `relative`;
/// above best · (1 + threshold) or best + threshold if `higher_is_better`. NaN improves nothing.
/// These are the rules of PyTorch's ReduceLROnPlateau, which RETURNN calls newbob.
struct Plateau {
  /// Scalars: f64, f64, i64, i64.
  struct State {
    Tensor rate;      ///< the learning rate
    Tensor best;      ///< the best score so far
    Tensor waited;    ///< number of scores in a row that did not improve
    Tensor cooldown;  ///< number of scores that are not counted yet
  };

  double factor = 0.1;            ///< times the rate when it is lowered, in [0, 1)
  std::int64_t patience = 10;     ///< scores without improvement after which the next one lowers
  double threshold = 1e-4;        ///< the least improvement; not negative, below 1 if relative
  bool relative = true;           ///< false: the threshold is a difference of scores
  std::int64_t cooldown = 0;      ///< scores after a lowering that are not counted
  double least = 0;               ///< the rate is not lowered below it
  bool higher_is_better = false;  ///< true for an accuracy

  /// Returns the state before the first score. Throws ArgumentError for options out of range, and
  /// for a rate that is negative or not finite.
  State initial_state(double rate) const;
  /// Returns the rate for the following steps, an f64 scalar, and the next state. score: a number
  /// of any dtype. Throws ShapeError for more elements.
  std::pair<Tensor, State> operator()(const Tensor& score, const State& state) const;
  std::pair<Tensor, State> operator()(double score, const State& state) const;
};

}  // namespace reel
REEL_API_END
