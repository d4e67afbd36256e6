// The vjp of a function of which little but what goes in is kept: the function once more, and back.
#include <algorithm>

#include "reel/autodiff/run_again.h"
#include "reel/core/bind.h"
#include "reel/core/graph_builder.h"
#include "reel/core/ops/checkpointed.h"
#include "reel/core/without_effects.h"

namespace reel {

void checkpointed_vjp(Vjp& at) {
  const auto& attrs = at.attr<CheckpointedAttrs>();
  Tensors inputs, sources;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < at.input_count(); ++i) inputs.push_back(afresh(at.input(i)));
  const Ref<Graph> graph = without_effects(*attrs.body.graph);
  Tensors kept(graph->types.size());
  for (std::size_t k = at.output_count() - static_cast<std::size_t>(attrs.kept);
       k < at.output_count(); ++k)
    kept[graph->outputs[k]] = at.output(k);
  RecordingTape tape;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!at.needs(i)) continue;
    tape.watch(inputs[i]);
    if (at.takes_rows(i)) tape.watch_rows(inputs[i]);
    sources.push_back(inputs[i]);
    places.push_back(i);
  }
  // What was kept is on this tape as if it had been computed again; an outer tape knows it.
  const ApplyRecord apply = [&](const OpRecord& record, OpInputs in, AttrsRef of_record) {
    Tensors out;
    for (const ValueId v : graph->outputs_of(record)) out.push_back(kept[v]);
    if (!std::all_of(out.begin(), out.end(), [](const Tensor& x) { return x.is_defined(); }))
      return bind_all(*record.op, in, std::move(of_record));
    tape.record(*record.op, of_record, in, out);
    return out;
  };
  DimEnv env = attrs.body.env();
  const Tensors outputs = replay(*graph, inputs, env, nullptr, &apply);
  add_cotangents_of(at, tape, outputs, sources, places);
}

}  // namespace reel
