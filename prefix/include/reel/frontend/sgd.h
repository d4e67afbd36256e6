// frontend/sgd.h — Sgd, gradient descent, plain or with momentum.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "reel/frontend/optimiser.h"

namespace reel {

struct SgdOptions {
  double learning_rate = 1e-2;
  double momentum = 0;    ///< how much of the velocity is kept in a step; 0: there is no velocity
  bool nesterov = false;  ///< look ahead along the velocity; needs momentum
};

namespace detail {

void check_sgd(const SgdOptions& options);
UpdateRule sgd_rule(const Tensor& learning_rate, const SgdOptions& options);

}  // namespace detail

/// Gradient descent. A step is p ← p - ηg, with momentum μ
///
///   v ← μv + g,  p ← p - ηv,  Nesterov's: p ← p - η(g + μv)
///
/// This is PyTorch's form, whose velocity is a sum of gradients: a new learning rate counts at
/// once. That of Sutskever et al. (2013), eqs. 1 to 4, keeps -ηv as its velocity, with the rates of
/// the past in it; the two take the same steps while η stays the same, with Nesterov's momentum
/// seen from the point that the gradient is taken at.
template <class Params>
class Sgd : public Optimiser<Params> {
 public:
  /// The velocity starts as zeros. Throws ArgumentError for options out of range.
  explicit Sgd(const Params& parameters, const SgdOptions& options = {})
      : Optimiser<Params>("Sgd", options.learning_rate), options_(options) {
    detail::check_sgd(options);
    if (options.momentum > 0) velocity_ = this->zero_moments(parameters);
  }

  /// One step down the gradient. Throws StructureError, ShapeError or DTypeError when the trees
  /// differ from those that the optimiser was made for; then nothing has changed.
  void update(Params& parameters, const Params& gradient) {
    std::vector<typename Optimiser<Params>::Moment> moments;
    if (velocity_) moments.push_back({"velocity", &*velocity_});
    this->apply(parameters, gradient, moments, detail::sgd_rule(this->learning_rate_, options_));
  }

  auto members() {
    return std::tie(this->step_, this->learning_rate_, velocity_, options_.momentum,
                    options_.nesterov);
  }
  static constexpr std::array<std::string_view, 5> member_names() {
    return {"step", "learning_rate", "velocity", "momentum", "nesterov"};
  }

 private:
  std::optional<Params> velocity_;
  SgdOptions options_;  // of which the learning rate is only what it was at first
};

}  // namespace reel
