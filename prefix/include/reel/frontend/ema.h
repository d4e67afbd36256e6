// frontend/ema.h — Ema, an average of parameters over the steps of training.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "reel/frontend/optimiser.h"

namespace reel {

struct EmaOptions {
  double decay = 0.999;  ///< how much of the average is kept in a step
};

namespace detail {

void check_ema(const EmaOptions& options);
void ema_update(TreeLeaves& average, const PathsFn& average_paths, const TreeLeaves& parameters,
                const PathsFn& paths, Tensor& step, double decay);

}  // namespace detail

/// The exponential moving average of parameters, which often does better than the last of them
/// (Polyak & Juditsky 1992; Kingma & Ba 2015, section 7.2). A tree, as optimisers are.
///
/// Bias is corrected: after t updates the average is Σ dᵗ⁻ⁱpᵢ / Σ dᵗ⁻ⁱ over i = 1 ... t, weights
/// that sum to 1. What the parameters were before the first update, random numbers mostly, has no
/// part in it.
///
///   Ema ema(model);
///   ema.update(model);  // after each step of the optimiser
///   evaluate(ema.average());
template <class Params>
class Ema {
 public:
  /// The average of no updates is the parameters. Throws ArgumentError for options out of range.
  explicit Ema(const Params& parameters, const EmaOptions& options = {})
      : step_(detail::first_step()), average_(parameters), decay_(options.decay) {
    detail::check_ema(options);
  }

  /// Takes the parameters into the average; integers, and what else is no floating tensor, as they
  /// are. Throws StructureError, ShapeError or DTypeError when they differ from those that it was
  /// made for.
  void update(const Params& parameters) {
    TreeLeaves average = flatten(average_);
    detail::ema_update(
        average, [&] { return leaf_paths(average_); }, flatten(parameters),
        [&] { return leaf_paths(parameters); }, step_, decay_);
    average_ = unflatten(average_, average);
  }

  const Params& average() const { return average_; }
  /// The number of updates so far, an i64 scalar.
  const Tensor& step() const { return step_; }

  auto members() { return std::tie(step_, average_, decay_); }
  static constexpr std::array<std::string_view, 3> member_names() {
    return {"step", "average", "decay"};
  }

 private:
  Tensor step_;
  Params average_;
  double decay_;
};

}  // namespace reel
