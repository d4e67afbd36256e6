// frontend/optimisers/adam.h — Adam and AdamW, optimisers that scale each step by moments of past
// gradients.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "reel/frontend/optimisers/optimiser.h"

namespace reel {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;     ///< weight of the old first moment in a step, in [0, 1)
  double beta2 = 0.999;   ///< weight of the old second moment in a step, in [0, 1)
  double epsilon = 1e-8;  ///< added to the root, for gradients near zero; positive
};

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;  ///< times the learning rate: the fraction of a weight that a step
                               ///< removes
};

namespace detail {

void check_adam(const char* optimiser, const AdamWOptions& options);
UpdateRule adam_rule(const Tensor& step, const Tensor& learning_rate, const AdamWOptions& options);

/// Adam with decoupled weight decay, which is 0 in Adam.
template <class Params>
class AdamBase : public Optimiser<Params> {
 public:
  /// Updates parameters by one step down the gradient. Throws StructureError, ShapeError or
  /// DTypeError, and changes nothing, if the trees differ in type from the constructor's
  /// parameters.
  void update(Params& parameters, const Params& gradient) {
    this->apply(parameters, gradient, {{"first moment", &first_}, {"second moment", &second_}},
                adam_rule(this->next_step(), this->learning_rate_, options_));
  }

  auto members() {
    return std::tie(this->step_, this->learning_rate_, first_, second_, options_.beta1,
                    options_.beta2, options_.epsilon, options_.weight_decay);
  }
  static constexpr std::array<std::string_view, 8> member_names() {
    return {"step",  "learning_rate", "first_moment", "second_moment",
            "beta1", "beta2",         "epsilon",      "weight_decay"};
  }

 protected:
  AdamBase(const char* name, const Params& parameters, const AdamWOptions& options)
      : Optimiser<Params>(name, options.learning_rate),
        first_(this->zero_moments(parameters)),
        second_(first_),
        options_(options) {
    check_adam(name, options);
  }

 private:
  Params first_, second_;  // moments
  AdamWOptions options_;   // its learning rate is only the initial one
};

}  // namespace detail

/// Adam: Kingma & Ba (2015), algorithm 1. Step t, counted from 1, is, element by element:
///
///   m ← β₁m + (1-β₁)g,  v ← β₂v + (1-β₂)g²,  p ← p - η · m/(1-β₁ᵗ) / (√(v/(1-β₂ᵗ)) + ε)
///
///   Adam adam(model, {.learning_rate = 0.01});
///   adam.update(model, gradient);
template <class Params>
class Adam : public detail::AdamBase<Params> {
 public:
  /// Moments start at zero. Throws ArgumentError for options out of range.
  explicit Adam(const Params& parameters, const AdamOptions& options = {})
      : detail::AdamBase<Params>(
            "Adam", parameters,
            {options.learning_rate, options.beta1, options.beta2, options.epsilon, 0}) {}
};

/// AdamW: Adam with decoupled weight decay, p ← (1-ηλ)p before Adam's step. Loshchilov & Hutter
/// (2019), algorithm 2, with the learning rate η as the schedule multiplier and α = 1, as in other
/// libraries. Every floating tensor decays, including biases.
template <class Params>
class AdamW : public detail::AdamBase<Params> {
 public:
  /// Moments start at zero. Throws ArgumentError for options out of range.
  explicit AdamW(const Params& parameters, const AdamWOptions& options = {})
      : detail::AdamBase<Params>("AdamW", parameters, options) {}
};

}  // namespace reel
