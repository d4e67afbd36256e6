// frontend/rmsprop.h — RmsProp, gradient descent by gradients divided by their recent size.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "reel/frontend/optimiser.h"

namespace reel {

struct RmsPropOptions {
  double learning_rate = 1e-3;
  double decay = 0.9;     ///< how much of the mean of squares is kept in a step
  double epsilon = 1e-8;  ///< added to the root: keeps the quotient finite where gradients vanish
  double momentum = 0;    ///< how much of the velocity is kept in a step; 0: there is no velocity
  bool centered = false;  ///< divide by an estimate of the deviation rather than of the size
};

namespace detail {

void check_rmsprop(const RmsPropOptions& options);
UpdateRule rmsprop_rule(const Tensor& learning_rate, const RmsPropOptions& options);

}  // namespace detail

/// RMSprop: Tieleman & Hinton (2012), lecture 6.5. A step is, element by element,
///
///   s ← ρs + (1-ρ)g²,  d = g / (√s + ε),  p ← p - ηd
///
/// centered: m ← ρm + (1-ρ)g and d = g / (√(s - m²) + ε), Graves (2013), eqs. 38 to 45; with
/// momentum μ: v ← μv + d, p ← p - ηv.
template <class Params>
class RmsProp : public Optimiser<Params> {
 public:
  /// Moments start as zeros. Throws ArgumentError for options out of range.
  explicit RmsProp(const Params& parameters, const RmsPropOptions& options = {})
      : Optimiser<Params>("RmsProp", options.learning_rate),
        squares_(this->zero_moments(parameters)),
        options_(options) {
    detail::check_rmsprop(options);
    if (options.centered) mean_ = squares_;
    if (options.momentum > 0) velocity_ = squares_;
  }

  /// One step down the gradient. Throws StructureError, ShapeError or DTypeError when the trees
  /// differ from those that the optimiser was made for; then nothing has changed.
  void update(Params& parameters, const Params& gradient) {
    std::vector<typename Optimiser<Params>::Moment> moments{{"mean of squares", &squares_}};
    if (mean_) moments.push_back({"mean", &*mean_});
    if (velocity_) moments.push_back({"velocity", &*velocity_});
    this->apply(parameters, gradient, moments,
                detail::rmsprop_rule(this->learning_rate_, options_));
  }

  auto members() {
    return std::tie(this->step_, this->learning_rate_, squares_, mean_, velocity_, options_.decay,
                    options_.epsilon, options_.momentum, options_.centered);
  }
  static constexpr std::array<std::string_view, 9> member_names() {
    return {"step",  "learning_rate", "mean_of_squares", "mean",    "velocity",
            "decay", "epsilon",       "momentum",        "centered"};
  }

 private:
  Params squares_;
  std::optional<Params> mean_, velocity_;
  RmsPropOptions options_;  // of which the learning rate is only what it was at first
};

}  // namespace reel
