// The vjp of recomputed residuals: the vjp of the loop that saves all of them.
#include <algorithm>

#include "reel/autodiff/run_again.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/list/list.h"

namespace reel {
namespace {

/// Dims that the loop makes are the same in both runs. Dims that an iteration makes for a list's
/// elements are not: the reverse loop names them alike (name_alike), whatever the type of the list.
Tensor as_list_of(const TensorType& type, const Tensor& cotangent) {
  const bool names_one = type.is_list() && type.is_known() && cotangent.type().is_known();
  return names_one ? list_of_type(cotangent, type) : cotangent;
}

}  // namespace

void recompute_vjp(Vjp& at) {
  const RecomputeAttrs& attrs = at.attr<RecomputeAttrs>();
  Tensors inputs, sources;
  std::vector<std::size_t> places;
  RecordingTape tape;
  for (std::size_t i = 0; i < attrs.loop_inputs(at.input_count()); ++i) {
    inputs.push_back(at.input(i));
    // A tensor that is used twice as an input has one cotangent, which counts once.
    const auto is_same = [&](const Tensor& x) { return x.block() == inputs.back().block(); };
    if (!at.needs(i) || std::any_of(sources.begin(), sources.end(), is_same)) continue;
    tape.watch(inputs.back());
    if (at.takes_rows(i)) tape.watch_rows(inputs.back());
    sources.push_back(inputs.back());
    places.push_back(i);
  }
  const Tensors outputs = bind_all(loop_op, inputs, attrs.loop);
  const auto stacks =
      results_of(attrs.saving(), outputs).stacks.subspan(attrs.first_residual, at.output_count());
  const Tensors residuals(stacks.begin(), stacks.end());
  Tensors cotangents(residuals.size());
  for (std::size_t k = 0; k < residuals.size(); ++k)
    if (at.has_cotangent(k)) cotangents[k] = as_list_of(residuals[k].type(), at.cotangent(k));
  add_cotangents_of(at, tape, residuals, cotangents, sources, places);
}

}  // namespace reel
