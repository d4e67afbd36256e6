// frontend/optimisers/rmsprop.h — RmsProp, gradient descent with gradients divided by their recent
// magnitude.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "reel/core/base/visibility.h"
#include "reel/frontend/optimisers/optimiser.h"

REEL_API_BEGIN
namespace reel {

/// Options of RmsProp.
struct RmsPropOptions {
  double learning_rate = 1e-3;  ///< of the first step; set_learning_rate changes it
  double decay = 0.9;           ///< weight of the old mean of squares in a step, in [0, 1)
  double epsilon = 1e-8;        ///< added to the root, for gradients near zero; positive
  double momentum = 0;          ///< weight of the old velocity in a step, in [0, 1); 0: no velocity
  bool centered = false;        ///< true: divides by an estimate of the standard deviation
  std::vector<ParameterGroup> groups{};  ///< parameters with options of their own
  double clip_norm = 0;                  ///< the largest global norm of a gradient; 0: not clipped
};

namespace detail {

void check_rmsprop(const RmsPropOptions& options);
UpdateRule rmsprop_rule(const Tensor& learning_rate, const RmsPropOptions& options);

}  // namespace detail

/// RMSprop: Tieleman & Hinton (2012), lecture 6.5. One step, element by element:
///
///   s ← ρs + (1-ρ)g²,  d = g / (√s + ε),  p ← p - ηd
///
/// centered: m ← ρm + (1-ρ)g and d = g / (√(s - m²) + ε), Graves (2013), eqs. 38 to 45; with
/// momentum μ: v ← μv + d, p ← p - ηv.
template <class Params>
class RmsProp : public Optimiser<Params> {
 public:
  /// Moments start at zero. Throws ArgumentError for options out of range.
  explicit RmsProp(const Params& parameters, const RmsPropOptions& options = {})
      : Optimiser<Params>("RmsProp", parameters, options),
        squares_(this->zero_moments(parameters)),
        options_(options) {
    detail::check_rmsprop(options);
    options_.groups.clear();  // the base class holds their options
    if (options.centered) mean_ = squares_;
    if (options.momentum > 0) velocity_ = squares_;
  }

  /// Updates parameters by one step down the gradient. Throws StructureError, ShapeError or
  /// DTypeError, and changes nothing, if the trees differ in type from the constructor's
  /// parameters.
  void update(Params& parameters, const Params& gradient) {
    const detail::UpdateScope scope(this->name_);
    std::vector<detail::Moment> moments{{"mean of squares", detail::TreeSlot(squares_)}};
    if (mean_) moments.push_back({"mean", detail::TreeSlot(*mean_)});
    if (velocity_) moments.push_back({"velocity", detail::TreeSlot(*velocity_)});
    this->apply(parameters, gradient, moments,
                detail::rmsprop_rule(this->learning_rate_, options_));
  }

  auto members() {
    return std::tie(this->step_, this->learning_rate_, squares_, mean_, velocity_, options_.decay,
                    options_.epsilon, options_.momentum, options_.centered, this->groups_,
                    this->clip_norm_);
  }
  static constexpr std::array<std::string_view, 11> member_names() {
    return {"step",    "learning_rate", "mean_of_squares", "mean",   "velocity", "decay",
            "epsilon", "momentum",      "centered",        "groups", "clip_norm"};
  }

 private:
  Params squares_;
  std::optional<Params> mean_, velocity_;
  RmsPropOptions options_;  // its learning rate is only the initial one
};

}  // namespace reel
REEL_API_END
