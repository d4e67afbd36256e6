// frontend/optimisers/adagrad.h — Adagrad, gradient descent with gradients divided by the root of
// their sum of squares.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "reel/core/base/visibility.h"
#include "reel/frontend/optimisers/optimiser.h"

REEL_API_BEGIN
namespace reel {

/// Options of Adagrad.
struct AdagradOptions {
  double learning_rate = 1e-2;           ///< of the first step; set_learning_rate changes it
  double initial_sum = 0;                ///< the sum of squares before the first step
  double epsilon = 1e-10;                ///< added to the root, for gradients near zero; positive
  std::vector<ParameterGroup> groups{};  ///< parameters with options of their own
  double clip_norm = 0;                  ///< the largest global norm of a gradient; 0: not clipped
};

namespace detail {

void check_adagrad(const AdagradOptions& options);
UpdateRule adagrad_rule(const Tensor& learning_rate, double epsilon);
/// Returns moments of `sum` for floating tensors.
TreeLeaves initial_sums(TreeLeaves parameters, double sum);

}  // namespace detail

/// Adagrad: Duchi, Hazan & Singer (2011), figure 1 with diagonal matrices. One step, element by
/// element:
///
///   s ← s + g²,  p ← p - η g / (√s + ε)
///
/// Its steps shrink, but more slowly for rare features. Options have PyTorch's values;
/// TensorFlow's and Optax's initial_sum is 0.1.
template <class Params>
class Adagrad : public Optimiser<Params> {
 public:
  /// Throws ArgumentError for options out of range.
  explicit Adagrad(const Params& parameters, const AdagradOptions& options = {})
      : Optimiser<Params>("Adagrad", parameters, options),
        sums_(
            unflatten(parameters, detail::initial_sums(flatten(parameters), options.initial_sum))),
        epsilon_(options.epsilon) {
    detail::check_adagrad(options);
  }

  /// Updates parameters by one step down the gradient. Throws StructureError, ShapeError or
  /// DTypeError, and changes nothing, if the trees differ in type from the constructor's
  /// parameters.
  void update(Params& parameters, const Params& gradient) {
    const detail::UpdateScope scope(this->name_);
    this->apply(parameters, gradient, {{"sum of squares", detail::TreeSlot(sums_)}},
                detail::adagrad_rule(this->learning_rate_, epsilon_));
  }

  auto members() {
    return std::tie(this->step_, this->learning_rate_, sums_, epsilon_, this->groups_,
                    this->clip_norm_);
  }
  static constexpr std::array<std::string_view, 6> member_names() {
    return {"step", "learning_rate", "sum_of_squares", "epsilon", "groups", "clip_norm"};
  }

 private:
  Params sums_;
  double epsilon_;
};

}  // namespace reel
REEL_API_END
