#include "reel/frontend/optimisers/ema.h"

#include "reel/core/ops.h"
#include "reel/frontend/optimisers/optimiser_leaves.h"
#include "reel/frontend/tree/refuse_arrays.h"

namespace reel::detail {

void check_ema(const EmaOptions& options, const TreeRef& parameters) {
  check_below_one("Ema", "decay", options.decay);
  refuse_arrays("Ema", flatten_tree(parameters), paths_fn(parameters));
}

void ema_update(const TreeSlot& average, const TreeRef& parameters, Tensor& step, double decay) {
  const TreeLeaves next = flatten_tree(parameters);
  const PathsFn paths = paths_fn(parameters);
  OptimiserLeaves leaves{
      next, next, paths, paths, {{"average", flatten_tree(average), paths_fn(average)}}};
  const Tensor next_step = step + 1, is_first = step == 0;
  // The new parameters have the weight (1 - d) / (1 - dᵗ), which is 1 in the first step; the
  // average has the rest, (d - dᵗ) / (1 - dᵗ).
  const Tensor rest = 1.0 - pow(decay, cast(next_step, f64));
  StepScalar part((1.0 - decay) / rest);
  StepScalar kept((decay - pow(decay, cast(next_step, f64))) / rest);
  const auto rule = [&](Tensor& p, const Tensor&, std::span<Tensor> moments, const LeafOptions&) {
    const DType dtype = p.dtype();
    // The values before the first step have no weight, even if they are NaN.
    p = where(is_first, p, moments[0] * kept.in(dtype) + p * part.in(dtype));
  };
  put_new_values(leaves, optimise("Ema", leaves, rule, GroupOptions{}, 0));
  step = next_step;
  fill_tree(average, std::move(leaves.parameters));
}

}  // namespace reel::detail
