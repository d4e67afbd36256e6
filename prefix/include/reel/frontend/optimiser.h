// frontend/optimiser.h — Optimiser, what all optimisers are: steps, a learning rate, and a walk
// over the parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/functions/elementwise.h"
#include "reel/frontend/leaves.h"
#include "reel/frontend/tree.h"

namespace reel {
namespace detail {

/// What an optimiser keeps for each parameter, as leaves, and how errors call it.
struct MomentLeaves {
  const char* name;
  TreeLeaves leaves;
  PathsFn paths;
};

/// The trees that a step works on, as leaves.
struct OptimiserLeaves {
  TreeLeaves parameters, gradient;
  PathsFn parameter_paths, gradient_paths;
  std::vector<MomentLeaves> moments;
};

/// One step of one parameter: replaces it and its moments, which come in the optimiser's order.
using UpdateRule =
    std::function<void(Tensor& parameter, const Tensor& gradient, std::span<Tensor> moments)>;

/// A scalar of a step, computed in f64; in the dtype of a parameter it is cast once, when asked
/// for.
class StepScalar {
 public:
  explicit StepScalar(Tensor value) : in_f64_(std::move(value)) {}
  const Tensor& in(DType dtype);

 private:
  Tensor in_f64_, in_f32_;
};

/// Applies the rule to every floating tensor. Throws before it changes anything when trees differ.
void optimise(const char* optimiser, OptimiserLeaves& leaves, const UpdateRule& rule);
/// Zeros in place of floating tensors; what is not optimised has no moments.
TreeLeaves zero_moments(TreeLeaves parameters);

Tensor first_step();
Tensor learning_rate_tensor(const char* optimiser, double learning_rate);
void check_learning_rate(const char* optimiser, const Tensor& learning_rate);

// Checks of options: they throw ArgumentError, which names optimiser, option and value.
void check_below_one(const char* optimiser, const char* option, double value);  ///< in [0, 1)
void check_positive(const char* optimiser, const char* option, double value);
void check_not_negative(const char* optimiser, const char* option, double value);

}  // namespace detail

/// What every optimiser is, for a tree of parameters: a tree itself, so that a training step that
/// takes and returns it can be traced as a whole. The number of steps and the learning rate are
/// tensors: changing them traces nothing again. Other options are part of a trace's signature.
///
/// Integers, booleans, None and what else is no floating tensor stay as they are.
template <class Params>
class Optimiser {
 public:
  /// The number of updates so far, an i64 scalar.
  const Tensor& step() const { return step_; }
  /// An f64 scalar.
  const Tensor& learning_rate() const { return learning_rate_; }
  /// Of the steps to come. Throws ArgumentError when it is negative or not finite.
  void set_learning_rate(double learning_rate) {
    learning_rate_ = detail::learning_rate_tensor(name_, learning_rate);
  }
  /// From a tensor, as a Schedule gives it inside a trace. Throws DTypeError or ShapeError unless
  /// it is an f64 scalar.
  void set_learning_rate(const Tensor& learning_rate) {
    detail::check_learning_rate(name_, learning_rate);
    learning_rate_ = learning_rate;
  }

 protected:
  struct Moment {
    const char* name;
    Params* tree;
  };

  /// name: for errors; a literal.
  Optimiser(const char* name, double learning_rate)
      : name_(name),
        step_(detail::first_step()),
        learning_rate_(detail::learning_rate_tensor(name, learning_rate)) {}

  static Params zero_moments(const Params& parameters) {
    return unflatten(parameters, detail::zero_moments(flatten(parameters)));
  }

  /// One step of all parameters by a rule, and of the moments that belong to them.
  void apply(Params& parameters, const Params& gradient, const std::vector<Moment>& moments,
             const detail::UpdateRule& rule) {
    detail::OptimiserLeaves leaves{flatten(parameters),
                                   flatten(gradient),
                                   [&] { return leaf_paths(parameters); },
                                   [&] { return leaf_paths(gradient); },
                                   {}};
    for (const Moment& moment : moments)
      leaves.moments.push_back(
          {moment.name, flatten(*moment.tree), [tree = moment.tree] { return leaf_paths(*tree); }});
    detail::optimise(name_, leaves, rule);
    step_ = next_step();
    parameters = unflatten(parameters, leaves.parameters);
    for (std::size_t i = 0; i < moments.size(); ++i)
      *moments[i].tree = unflatten(*moments[i].tree, leaves.moments[i].leaves);
  }

  /// The number of the step that an update takes, from 1.
  Tensor next_step() const { return step_ + 1; }

  const char* name_;
  Tensor step_, learning_rate_;
};

}  // namespace reel
