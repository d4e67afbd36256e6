// frontend/optimisers/adam.h — Adam and AdamW, optimisers that scale each step by moments of past
// gradients.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "reel/core/base/visibility.h"
#include "reel/frontend/optimisers/optimiser.h"

REEL_API_BEGIN
namespace reel {

/// Options of Adam.
struct AdamOptions {
  double learning_rate = 1e-3;           ///< of the first step; set_learning_rate changes it
  double beta1 = 0.9;                    ///< weight of the old first moment in a step, in [0, 1)
  double beta2 = 0.999;                  ///< weight of the old second moment in a step, in [0, 1)
  double epsilon = 1e-8;                 ///< added to the root, for gradients near zero; positive
  std::vector<ParameterGroup> groups{};  ///< parameters with options of their own
  double clip_norm = 0;                  ///< the largest global norm of a gradient; 0: not clipped
};

/// Options of AdamW.
struct AdamWOptions {
  double learning_rate = 1e-3;  ///< of the first step; set_learning_rate changes it
  double beta1 = 0.9;           ///< weight of the old first moment in a step, in [0, 1)
  double beta2 = 0.999;         ///< weight of the old second moment in a step, in [0, 1)
  double epsilon = 1e-8;        ///< added to the root, for gradients near zero; positive
  double weight_decay = 1e-2;   ///< times the learning rate: the fraction of a weight that a step
                                ///< removes
  std::vector<ParameterGroup> groups{};  ///< parameters with options of their own
  double clip_norm = 0;                  ///< the largest global norm of a gradient; 0: not clipped
};

namespace detail {

/// The options of Adam that all parameters share.
struct AdamMoments {
  double beta1, beta2, epsilon;
};

void check_adam(const char* optimiser, const AdamWOptions& options);
UpdateRule adam_rule(const Tensor& step, const Tensor& learning_rate, const AdamMoments& options);

/// Adam with decoupled weight decay, which is 0 in Adam.
template <class Params>
class AdamBase : public Optimiser<Params> {
 public:
  /// Updates parameters by one step down the gradient. Throws StructureError, ShapeError or
  /// DTypeError, and changes nothing, if the trees differ in type from the constructor's
  /// parameters.
  void update(Params& parameters, const Params& gradient) {
    const detail::UpdateScope scope(this->name_);
    this->apply(parameters, gradient,
                {{"first moment", TreeSlot(first_)}, {"second moment", TreeSlot(second_)}},
                adam_rule(this->next_step(), this->learning_rate_, options_));
  }

  auto members() {
    return std::tie(this->step_, this->learning_rate_, first_, second_, options_.beta1,
                    options_.beta2, options_.epsilon, this->groups_, this->clip_norm_);
  }
  static constexpr std::array<std::string_view, 9> member_names() {
    return {"step",  "learning_rate", "first_moment", "second_moment", "beta1",
            "beta2", "epsilon",       "groups",       "clip_norm"};
  }

 protected:
  /// weight_decay: as Optimiser has it.
  AdamBase(const char* name, const Params& parameters, const AdamWOptions& options,
           std::optional<double> weight_decay)
      : Optimiser<Params>(name, parameters, options, weight_decay),
        first_(this->zero_moments(parameters)),
        second_(first_),
        options_{options.beta1, options.beta2, options.epsilon} {
    check_adam(name, options);
  }

 private:
  Params first_, second_;  // moments
  AdamMoments options_;
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
      : detail::AdamBase<Params>("Adam", parameters,
                                 {options.learning_rate, options.beta1, options.beta2,
                                  options.epsilon, 0, options.groups, options.clip_norm},
                                 std::nullopt) {}
};

/// AdamW: Adam with decoupled weight decay, p ← (1-ηλ)p before Adam's step. Loshchilov & Hutter
/// (2019), algorithm 2, with the learning rate η as the schedule multiplier and α = 1, as in other
/// libraries. Every floating tensor decays, including biases, unless it is in a group with another
/// weight decay.
template <class Params>
class AdamW : public detail::AdamBase<Params> {
 public:
  /// Moments start at zero. Throws ArgumentError for options out of range.
  explicit AdamW(const Params& parameters, const AdamWOptions& options = {})
      : detail::AdamBase<Params>("AdamW", parameters, options, options.weight_decay) {}
};

}  // namespace reel
REEL_API_END
