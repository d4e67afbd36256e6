#include "reel/core/ops/control/replay.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/source.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/shape.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/runtime/residual_source.h"

namespace reel {

namespace {

/// Returns the dims with known dims in place of actual ones. If their sizes differ, the actual dim
/// stays: the op that reads both reports it. In a trace, where sizes are unknown, all are replaced.
Dims known_dims(const Dims& actual_dims, const TensorType& formal, DimEnv& env, bool is_traced) {
  Dims dims;
  for (int i = 0; i < formal.rank(); ++i) {
    const Dim &symbol = formal.dims()[i], &actual = actual_dims[i];
    const bool is_known =
        symbol.is_symbol() && symbol.is_named() && env.knows(symbol) && actual.is_named();
    const Dim known = is_known ? env.resolve(symbol) : actual;
    dims.push_back(is_traced || known.raw_size() == actual.raw_size() ? known : actual);
  }
  return dims;
}

}  // namespace

TensorType with_known_dims(const TensorType& type, const TensorType& formal, DimEnv& env) {
  return type.with(known_dims(type.dims(), formal, env, false));
}

Tensor with_known_dims(Tensor value, const TensorType& formal, DimEnv& env) {
  if (value.type().is_list() || !formal.node()->has_symbols) return value;
  const Dims dims = known_dims(value.dims(), formal, env, value.is_traced());
  if (dims == value.dims()) return value;
  if (!value.is_traced()) return with_dims_of(value, value.type().with(dims));
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!(dims[i] == value.dims()[i])) value = rename(value, static_cast<int>(i), dims[i]);
  return value;
}

Tensors replay(const Graph& graph, std::span<const Tensor> inputs, DimEnv& env, Tensors* kept,
               const ApplyRecord* apply) {
  if (inputs.size() != graph.inputs.size())
    throw InternalError(
        str("graph ", graph.name, " takes ", graph.inputs.size(), " values, got ", inputs.size()));
  const Graph::Schedule& schedule = graph.schedule();
  Tensors values(graph.types.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueId v = graph.inputs[i];
    env.bind(graph.types[v], inputs[i].type());
    values[v] = inputs[i];
  }
  std::vector<OpInput> in;
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    const OpRecord& record = graph.records[r];
    const auto from = graph.inputs_of(record);
    const auto to = graph.outputs_of(record);
    in.clear();
    for (std::size_t k = 0; k < from.size(); ++k) {
      in.emplace_back(values[from[k]]);
      in.back().temporary = !kept && schedule.last_use[record.first + k];
    }
    AttrsRef attrs = record.attrs;
    if (schedule.attrs_have_symbols[r]) attrs = attrs->resolve(env);
    const SourceScope from_there(record.source);
    if (to.size() == 1 && !apply) {
      values[to[0]] = reel::bind(*record.op, in, std::move(attrs));
    } else {
      Tensors out = apply ? (*apply)(record, in, std::move(attrs))
                          : bind_all(*record.op, in, std::move(attrs));
      for (std::size_t k = 0; k < to.size(); ++k) values[to[k]] = std::move(out[k]);
    }
    if (schedule.outputs_have_symbols[r])
      for (ValueId v : to) {
        env.bind(graph.types[v], values[v].type());
        if (record.op->kernel_decides_types)
          values[v] = with_known_dims(std::move(values[v]), graph.types[v], env);
      }
    if (!kept)
      for (std::size_t k = 0; k < from.size(); ++k)
        if (schedule.last_use[record.first + k]) values[from[k]] = Tensor();
  }
  Tensors outputs;
  for (ValueId v : graph.outputs) outputs.push_back(values[v]);
  if (kept) *kept = std::move(values);
  return outputs;
}

}  // namespace reel
