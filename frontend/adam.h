// frontend/adam.h — Adam, the optimiser.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "reel/frontend/tree.h"

namespace reel {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;     ///< how much of the first moment is kept in a step
  double beta2 = 0.999;   ///< the same for the second
  double epsilon = 1e-8;  ///< keeps the quotient finite where gradients vanish
};

namespace detail {

/// The four trees that a step works on, as leaves.
struct AdamLeaves {
  TreeLeaves parameters, gradient, first, second;
};

void check_adam_options(const AdamOptions& options);
/// Zeros in place of floating tensors; what is not optimised has no moments.
TreeLeaves zero_moments(TreeLeaves parameters);
Tensor first_step();
Tensor learning_rate_tensor(double learning_rate);
void check_learning_rate(const Tensor& learning_rate);
/// One step; leaves new parameters and moments in `leaves`. paths names the parameters, for errors.
void adam_update(AdamLeaves& leaves, Tensor& step, const Tensor& learning_rate,
                 const AdamOptions& options,
                 const std::function<std::vector<std::string>()>& paths);

}  // namespace detail

/// Adam for a tree of parameters: Kingma & Ba (2015), algorithm 1, on every floating tensor of the
/// tree.
///
/// A tree itself, so that a training step that takes and returns it can be traced as a whole: the
/// number of steps and the learning rate are tensors, and changing them traces nothing again.
///
///   Adam adam(model, {.learning_rate = 0.01});
///   adam.update(model, gradient);
template <class Params>
class Adam {
 public:
  /// Moments start as zeros. Throws ArgumentError for options out of range.
  explicit Adam(const Params& parameters, const AdamOptions& options = {})
      : step_(detail::first_step()),
        learning_rate_(detail::learning_rate_tensor(options.learning_rate)),
        first_(unflatten(parameters, detail::zero_moments(flatten(parameters)))),
        second_(first_),
        options_(options) {
    detail::check_adam_options(options);
  }

  /// One step down the gradient: m ← β₁m + (1-β₁)g, v ← β₂v + (1-β₂)g²,
  /// p ← p - η · m/(1-β₁ᵗ) / (√(v/(1-β₂ᵗ)) + ε), element by element; t counts steps from 1.
  ///
  /// Integers, booleans and what else is no floating tensor stay as they are. Throws
  /// StructureError, ShapeError or DTypeError when the trees differ from those that the optimiser
  /// was made for.
  void update(Params& parameters, const Params& gradient) {
    detail::AdamLeaves leaves{flatten(parameters), flatten(gradient), flatten(first_),
                              flatten(second_)};
    detail::adam_update(leaves, step_, learning_rate_, options_,
                        [&] { return leaf_paths(parameters); });
    parameters = unflatten(parameters, leaves.parameters);
    first_ = unflatten(first_, leaves.first);
    second_ = unflatten(second_, leaves.second);
  }

  /// The number of updates so far, an i64 scalar.
  const Tensor& step() const { return step_; }
  /// An f64 scalar.
  const Tensor& learning_rate() const { return learning_rate_; }
  /// Of the steps to come. Throws ArgumentError when it is negative or not finite.
  void set_learning_rate(double learning_rate) {
    learning_rate_ = detail::learning_rate_tensor(learning_rate);
  }
  /// From a tensor, as a schedule inside a trace gives it. Throws DTypeError or ShapeError unless
  /// it is an f64 scalar.
  void set_learning_rate(const Tensor& learning_rate) {
    detail::check_learning_rate(learning_rate);
    learning_rate_ = learning_rate;
  }

  auto members() {
    return std::tie(step_, learning_rate_, first_, second_, options_.beta1, options_.beta2,
                    options_.epsilon);
  }

 private:
  Tensor step_, learning_rate_;
  Params first_, second_;  // moments
  AdamOptions options_;    // of which the learning rate is only what it was at first
};

}  // namespace reel
