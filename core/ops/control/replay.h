// core/ops/control/replay.h — replay(), which applies the records of a graph again.
#pragma once

#include <functional>
#include <span>

#include "reel/core/dims/dim_env.h"
#include "reel/core/graph/graph.h"
#include "reel/core/op/op.h"

namespace reel {

/// Applies the records of a graph again in the active context: runs them, inlines them into a
/// trace, or puts them on a tape. Returns the outputs.
///
/// inputs: formal ones and captures.
/// env: dims of the free symbols; receives the bindings of the run.
/// values: if given, receives every value of the graph, by number.
/// apply: if given, applies a record instead of bind().
using ApplyRecord = std::function<Tensors(const OpRecord&, OpInputs, AttrsRef)>;
Tensors replay(const Graph& graph, std::span<const Tensor> inputs, DimEnv& env,
               Tensors* values = nullptr, const ApplyRecord* apply = nullptr);

/// Returns `value` with the dims that `env` knows for the type `formal`, if their sizes agree. For
/// results of ops with kernel_decides_types, and for elements of lists: if a run recomputes a
/// value, its dims are new objects, although equal ones are known.
Tensor with_known_dims(Tensor value, const TensorType& formal, DimEnv& env);
/// As above, for a type.
TensorType with_known_dims(const TensorType& type, const TensorType& formal, DimEnv& env);

}  // namespace reel
