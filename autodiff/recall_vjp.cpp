// The vjp of what is recalled of a loop: that of the loop, saving all.
#include <algorithm>

#include "reel/autodiff/run_again.h"
#include "reel/core/bind.h"
#include "reel/core/ops/recall.h"

namespace reel {

void recall_vjp(Vjp& at) {
  const RecallAttrs& attrs = at.attr<RecallAttrs>();
  Tensors inputs, sources;
  std::vector<std::size_t> places;
  RecordingTape tape;
  for (std::size_t i = 0; i < attrs.loop_inputs(at.input_count()); ++i) {
    inputs.push_back(at.input(i));
    // A tensor that goes in twice has one cotangent, which counts once.
    const auto is_same = [&](const Tensor& x) { return x.block() == inputs.back().block(); };
    if (!at.needs(i) || std::any_of(sources.begin(), sources.end(), is_same)) continue;
    tape.watch(inputs.back());
    if (at.takes_rows(i)) tape.watch_rows(inputs.back());
    sources.push_back(inputs.back());
    places.push_back(i);
  }
  const Tensors outputs = bind_all(loop_op, inputs, attrs.loop);
  const auto saved = outputs.begin() + static_cast<std::ptrdiff_t>(attrs.saving().first_stack()) +
                     attrs.first_saved;
  add_cotangents_of(at, tape,
                    Tensors(saved, saved + static_cast<std::ptrdiff_t>(at.output_count())), sources,
                    places);
}

}  // namespace reel
