// frontend/optimisers/lion.h — Lion, steps of one size along the signs of a momentum.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "reel/core/base/visibility.h"
#include "reel/frontend/optimisers/optimiser.h"

REEL_API_BEGIN
namespace reel {

/// Options of Lion.
struct LionOptions {
  double learning_rate = 1e-4;           ///< of the first step; set_learning_rate changes it
  double beta1 = 0.9;                    ///< weight of the momentum in a direction, in [0, 1)
  double beta2 = 0.99;                   ///< weight of the old momentum in a step, in [0, 1)
  double weight_decay = 0;               ///< times the learning rate: the fraction of a weight that
                                         ///< a step removes
  std::vector<ParameterGroup> groups{};  ///< parameters with options of their own
  double clip_norm = 0;                  ///< the largest global norm of a gradient; 0: not clipped
};

namespace detail {

/// The options of Lion that all parameters share.
struct LionWeights {
  double beta1, beta2;
};

void check_lion(const LionOptions& options);
UpdateRule lion_rule(const Tensor& learning_rate, const LionWeights& options);

}  // namespace detail

/// Lion: Chen et al. (2023), algorithm 2. One step, element by element:
///
///   p ← p - η (sign(β₁m + (1-β₁)g) + λp),  m ← β₂m + (1-β₂)g
///
/// Every element moves by η, so η is a third to a tenth of AdamW's, and λ as many times larger.
/// The memory is half of Adam's. Every floating tensor decays, unless it is in a group with another
/// weight decay.
template <class Params>
class Lion : public Optimiser<Params> {
 public:
  /// The momentum starts at zero. Throws ArgumentError for options out of range.
  explicit Lion(const Params& parameters, const LionOptions& options = {})
      : Optimiser<Params>("Lion", parameters, options, options.weight_decay),
        momentum_(this->zero_moments(parameters)),
        options_{options.beta1, options.beta2} {
    detail::check_lion(options);
  }

  /// Updates parameters by one step down the gradient. Throws StructureError, ShapeError or
  /// DTypeError, and changes nothing, if the trees differ in type from the constructor's
  /// parameters.
  void update(Params& parameters, const Params& gradient) {
    const detail::UpdateScope scope(this->name_);
    this->apply(parameters, gradient, {{"momentum", detail::TreeSlot(momentum_)}},
                detail::lion_rule(this->learning_rate_, options_));
  }

  auto members() {
    return std::tie(this->step_, this->learning_rate_, momentum_, options_.beta1, options_.beta2,
                    this->groups_, this->clip_norm_);
  }
  static constexpr std::array<std::string_view, 7> member_names() {
    return {"step", "learning_rate", "momentum", "beta1", "beta2", "groups", "clip_norm"};
  }

 private:
  Params momentum_;
  detail::LionWeights options_;
};

}  // namespace reel
REEL_API_END
