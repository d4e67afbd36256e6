// The vjp of a checkpointed function: runs the function again, then backwards.
#include <algorithm>

#include "reel/autodiff/run_again.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/passes/without_effects.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/replay.h"

namespace reel {
namespace {

/// Returns true if a value of the type determines a dim that `env` does not know.
bool makes_dims(const TensorType& type, const DimEnv& env) {
  bool result = false;
  for_each_bound(type, [&](const Dim& dim) {
    result = result || (dim.is_named() && !dim.has_size() && !env.knows(dim));
  });
  return result;
}

/// Returns a cotangent that exists, so that nothing is recomputed before it is needed.
Tensor first_cotangent(Vjp& at) {
  std::size_t k = 0;
  while (k + 1 < at.output_count() && !at.has_cotangent(k)) ++k;
  return at.cotangent(k);
}

}  // namespace

void checkpointed_vjp(Vjp& at) {
  const auto& attrs = at.attr<CheckpointedAttrs>();
  Tensors inputs, sources;
  std::vector<std::size_t> places;
  const Tensor comes_back = first_cotangent(at);
  for (std::size_t i = 0; i < at.input_count(); ++i)
    inputs.push_back(afresh(at.input(i), comes_back));
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
  DimEnv env = attrs.body.env();
  // Stored values are put on this tape as if they had been recomputed, and an outer tape knows
  // them. Values that make a dim are excluded, as all other values then have the dim of this run.
  const ApplyRecord apply = [&](const OpRecord& record, OpInputs in, AttrsRef of_record) {
    Tensors out;
    for (const ValueId v : graph->outputs_of(record))
      if (kept[v].is_defined() && !makes_dims(graph->types[v], env))
        out.push_back(with_named_dims_of(kept[v], env.resolve(graph->types[v])));
    if (out.size() != graph->outputs_of(record).size())
      return bind_all(*record.op, in, std::move(of_record));
    tape.record(*record.op, of_record, in, out);
    return out;
  };
  const auto run_again = [&] {
    const RecomputeScope scope;
    return replay(*graph, inputs, env, nullptr, &apply);
  };
  const Tensors outputs = run_again();
  Tensors cotangents(outputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (at.has_cotangent(k)) cotangents[k] = with_named_dims_of(at.cotangent(k), outputs[k].type());
  add_cotangents_of(at, tape, outputs, cotangents, sources, places);
}

}  // namespace reel
