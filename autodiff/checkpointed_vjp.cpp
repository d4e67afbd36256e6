// The vjp of a function of which only what goes in is kept: the function once more, and back.
#include "reel/autodiff/run_again.h"
#include "reel/core/graph_builder.h"
#include "reel/core/ops/checkpointed.h"
#include "reel/core/without_effects.h"

namespace reel {

void checkpointed_vjp(Vjp& at) {
  const SubGraph& body = at.attr<CheckpointedAttrs>().body;
  Tensors inputs, sources;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < at.input_count(); ++i) inputs.push_back(afresh(at.input(i)));
  RecordingTape tape;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!at.needs(i)) continue;
    tape.watch(inputs[i]);
    sources.push_back(inputs[i]);
    places.push_back(i);
  }
  DimEnv env = body.env();
  const Tensors outputs = replay(*without_effects(*body.graph), inputs, env);
  add_cotangents_of(at, tape, outputs, sources, places);
}

}  // namespace reel
