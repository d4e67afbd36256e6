// frontend/optimisers/sgd.h — Sgd, gradient descent, plain or with momentum.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "reel/core/base/visibility.h"
#include "reel/frontend/optimisers/optimiser.h"

REEL_API_BEGIN
namespace reel {

/// Options of Sgd.
struct SgdOptions {
  double learning_rate = 1e-2;  ///< of the first step; set_learning_rate changes it
  double momentum = 0;          ///< weight of the old velocity in a step, in [0, 1); 0: no velocity
  bool nesterov = false;        ///< looks ahead along the velocity; requires momentum
  double weight_decay = 0;      ///< times a parameter: added to its gradient, before the momentum
  std::vector<ParameterGroup> groups{};  ///< parameters with options of their own
  double clip_norm = 0;                  ///< the largest global norm of a gradient; 0: not clipped
};

namespace detail {

void check_sgd(const SgdOptions& options);
UpdateRule sgd_rule(const Tensor& learning_rate, const SgdOptions& options);

}  // namespace detail

/// Gradient descent. One step is p ← p - ηg, or with momentum μ:
///
///   v ← μv + g,  p ← p - ηv,  Nesterov's: p ← p - η(g + μv)
///
/// With a weight decay λ, g is g + λp in all of these, the gradient of the loss + λ|p|²/2, as in
/// PyTorch. Every floating tensor decays, unless it is in a group with another weight decay. A norm
/// for clipping is the norm of g, without λp.
///
/// This is PyTorch's form: its velocity is a sum of gradients, so a new learning rate takes effect
/// at once. The form of Sutskever et al. (2013), eqs. 1 to 4, has the velocity -ηv, which contains
/// earlier learning rates. Both take the same steps if η is constant, with Nesterov's momentum seen
/// from the point of the gradient.
template <class Params>
class Sgd : public Optimiser<Params> {
 public:
  /// The velocity starts at zero. Throws ArgumentError for options out of range.
  explicit Sgd(const Params& parameters, const SgdOptions& options = {})
      : Optimiser<Params>("Sgd", parameters, options, options.weight_decay), options_(options) {
    detail::check_sgd(options);
    options_.groups.clear();  // the base class holds their options
    if (options.momentum > 0) velocity_ = this->zero_moments(parameters);
  }

  /// Updates parameters by one step down the gradient. Throws StructureError, ShapeError or
  /// DTypeError, and changes nothing, if the trees differ in type from the constructor's
  /// parameters.
  void update(Params& parameters, const Params& gradient) {
    const detail::UpdateScope scope(this->name_);
    std::vector<detail::Moment> moments;
    if (velocity_) moments.push_back({"velocity", detail::TreeSlot(*velocity_)});
    this->apply(parameters, gradient, moments, detail::sgd_rule(this->learning_rate_, options_));
  }

  auto members() {
    return std::tie(this->step_, this->learning_rate_, velocity_, options_.momentum,
                    options_.nesterov, this->groups_, this->clip_norm_);
  }
  static constexpr std::array<std::string_view, 7> member_names() {
    return {"step", "learning_rate", "velocity", "momentum", "nesterov", "groups", "clip_norm"};
  }

 private:
  std::optional<Params> velocity_;
  SgdOptions options_;  // its learning rate is only the initial one
};

}  // namespace reel
REEL_API_END
