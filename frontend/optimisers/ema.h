// frontend/optimisers/ema.h — Ema, an exponential moving average of parameters over the training
// steps.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "reel/core/base/visibility.h"
#include "reel/frontend/optimisers/optimiser.h"

REEL_API_BEGIN
namespace reel {

/// Options of Ema.
struct EmaOptions {
  double decay = 0.999;  ///< weight of the old average in a step, in [0, 1)
};

namespace detail {

void check_ema(const EmaOptions& options, const TreeRef& parameters);
void ema_update(const TreeSlot& average, const TreeRef& parameters, Tensor& step, double decay);

}  // namespace detail

/// The exponential moving average of parameters, which often performs better than the last
/// parameters (Polyak & Juditsky 1992; Kingma & Ba 2015, section 7.2). A tree, like optimisers.
///
/// The bias is corrected: after t updates the average is Σ dᵗ⁻ⁱpᵢ / Σ dᵗ⁻ⁱ over i = 1 ... t, with
/// weights that sum to 1. The parameters given to the constructor, mostly random numbers, have no
/// weight.
///
///   Ema ema(model);
///   ema.update(model);  // after each step of the optimiser
///   evaluate(ema.average());
template <class Params>
class Ema {
 public:
  /// Before the first update the average is `parameters`. Throws ArgumentError for options out of
  /// range, and for a TensorArray of floating elements among the parameters.
  explicit Ema(const Params& parameters, const EmaOptions& options = {})
      : step_(detail::first_step()), average_(parameters), decay_(options.decay) {
    detail::check_ema(options, detail::TreeRef(parameters));
  }

  /// Adds the parameters to the average; leaves that are not floating tensors are copied. Throws
  /// StructureError, ShapeError or DTypeError if the parameters differ in type from the
  /// constructor's.
  void update(const Params& parameters) {
    detail::ema_update(detail::TreeSlot(average_), detail::TreeRef(parameters), step_, decay_);
  }

  /// Returns the average of the parameters.
  const Params& average() const { return average_; }
  /// Returns the number of updates so far, an i64 scalar.
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
REEL_API_END
