// The vjp of a function of which only what goes in is kept: the function once more, and back.
#include "reel/autodiff/tape.h"
#include "reel/core/graph_builder.h"
#include "reel/core/ops/checkpointed.h"
#include "reel/core/vjp.h"
#include "reel/core/without_effects.h"

namespace reel {

void checkpointed_vjp(Vjp& at) {
  const SubGraph& body = at.attr<CheckpointedAttrs>().body;
  Tensors inputs, sources, targets, cotangents;
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
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!at.has_cotangent(k)) continue;
    targets.push_back(outputs[k]);
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
