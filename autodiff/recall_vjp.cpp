// The vjp of what is recalled of a loop: that of the loop, saving all.
#include <algorithm>

#include "reel/autodiff/tape.h"
#include "reel/core/bind.h"
#include "reel/core/ops/recall.h"
#include "reel/core/vjp.h"

namespace reel {

void recall_vjp(Vjp& at) {
  const RecallAttrs& attrs = at.attr<RecallAttrs>();
  Tensors inputs, targets, cotangents, sources;
  std::vector<std::size_t> places;
  RecordingTape tape;
  for (std::size_t i = 0; i < attrs.loop_inputs(at.input_count()); ++i) {
    inputs.push_back(at.input(i));
    // A tensor that goes in twice has one cotangent, which counts once.
    const auto is_same = [&](const Tensor& x) { return x.block() == inputs.back().block(); };
    if (!at.needs(i) || std::any_of(sources.begin(), sources.end(), is_same)) continue;
    tape.watch(inputs.back());
    sources.push_back(inputs.back());
    places.push_back(i);
  }
  const Tensors outputs = bind_all(loop_op, inputs, attrs.loop);
  const LoopAttrs& loop = attrs.saving();
  for (std::size_t k = 0; k < at.output_count(); ++k) {
    if (!at.has_cotangent(k)) continue;
    targets.push_back(
        outputs[loop.first_stack() + static_cast<std::size_t>(attrs.first_saved) + k]);
    cotangents.push_back(at.cotangent(k));
  }
  Tensors presences;
  const Tensors gradients = tape.gradient(targets, cotangents, sources, &presences);
  for (std::size_t k = 0; k < places.size(); ++k)
    if (gradients[k].is_defined() && presences[k].is_defined())
      at.add(places[k], gradients[k], presences[k]);
    else if (gradients[k].is_defined())
      at.add(places[k], gradients[k]);
}

}  // namespace reel
