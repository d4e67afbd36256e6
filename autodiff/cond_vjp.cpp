// The vjp of a cond is a cond: each branch recomputes its own residuals, then runs backwards.
#include <algorithm>
#include <optional>
#include <tuple>

#include "reel/autodiff/reverse_graph.h"
#include "reel/autodiff/run_again.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/loop_types.h"
#include "reel/core/types/partial_shape.h"

namespace reel {
namespace {

/// Converts a cotangent of the cond's output to the dims of the value that the branch returned. If
/// the branches have different dims, the output has a new one.
Tensor with_dims_of_branch(const Tensor& cotangent, const Graph& branch, const TensorType& returned,
                           DimEnv& env) {
  if (is_unranked(cotangent)) return cotangent;
  Dims dims = cotangent.dims();
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    if (const Dim& dim = returned.dims()[axis]; dim.is_named() && !makes_dim(branch, dim))
      dims[axis] = env.resolve(dim);
  return with_named_dims_of(cotangent, returned.with(dims));
}

ReversedGraph reverse_branch(const SubGraph& branch, const std::vector<int>& places, Vjp& at) {
  const Graph& forward = *branch.graph;
  ReversalSpec spec;
  spec.recomputes_all = true;
  for (std::size_t i = 0; i < forward.outputs.size(); ++i)
    spec.has_cotangent.push_back(at.has_cotangent(i));
  spec.is_free.assign(forward.inputs.size(), 1);
  for (std::size_t i = 0; i < forward.inputs.size(); ++i) {
    spec.is_wanted.push_back(at.needs(1 + places[i]));
    spec.takes_rows.push_back(at.takes_rows(1 + places[i]));
  }
  return reverse_graph(forward, spec);
}

/// Returns the output that is the cotangent of a capture of the cond, or the rows of it; nothing if
/// the branch has no path to these.
std::optional<std::size_t> output_for(const ReversedGraph& reversed, const std::vector<int>& places,
                                      int capture, bool rows = false) {
  for (std::size_t k = 0; k < reversed.wanted.size(); ++k)
    if (places[reversed.wanted[k]] == capture && rows == (reversed.row_numbers[k] >= 0)) return k;
  return std::nullopt;
}

/// Returns true if only a run of the branch tells whether there is a path to the capture.
bool is_uncertain(const ReversedGraph& reversed, const std::vector<int>& places, int capture) {
  const auto k = output_for(reversed, places, capture);
  return k && reversed.presences[*k] >= 0;
}

/// Returns the rows that a branch gives for a capture, and their numbers. Their count is unknown.
Tensors rows_of(const ReversedGraph& reversed, const std::vector<int>& places, const Tensors& given,
                int capture, const TensorType& table) {
  const auto k = output_for(reversed, places, capture, true);
  Dims dims(table.sizes().begin(), table.sizes().end());
  dims[0] = Dim(0);
  const Tensor values = k ? given[*k] : zeros(dims, table.dtype());
  const Tensor numbers = k ? given[reversed.row_numbers[*k]] : zeros({0}, i64);
  dims[0] = Dim::unknown();
  return {relax_shape(values, dims), relax_shape(numbers, {Dim::unknown()})};
}

/// A branch of the reversed cond: recomputes the forward branch and runs it backwards. Returns the
/// cotangents of all wanted captures; then, for uncertain ones, whether there is a path (i32); then
/// the rows of tables with their numbers.
struct WrappedBranch {
  Ref<Graph> graph;
  Tensors captured;  // of the new cond
};

WrappedBranch wrap(const SubGraph& branch, const ReversedGraph& reversed,
                   const std::vector<int>& places, Vjp& at, const std::vector<int>& wanted,
                   const std::vector<int>& uncertain, const std::vector<int>& tables) {
  const Graph& forward = *branch.graph;
  // Wrapped so that both branches return the same list, with zeros for captures that this one does
  // not use.
  GraphBuilder builder(forward.name + " reversed", "the gradient of a branch of cond");
  ModeScope scope(builder.scope());
  Tensors inputs;
  DimEnv env = DimEnv::renaming(branch.env());
  for (std::size_t i = 0; i < forward.inputs.size(); ++i)
    env.bind(forward.types[forward.inputs[i]], at.input_type(1 + places[i]));
  for (const std::size_t i : reversed.cotangents)
    inputs.push_back(with_dims_of_branch(builder.lift(at.cotangent(i)), forward,
                                         forward.types[forward.outputs[i]], env));
  for (const std::size_t i : reversed.inputs) inputs.push_back(at.input(1 + places[i]));
  inputs.insert(inputs.end(), reversed.captured.begin(), reversed.captured.end());
  for (Tensor& input : inputs) input = builder.lift(input);
  const Tensors gradients = replay(*reversed.graph, inputs, env);
  Tensors outputs;
  for (const int capture : wanted) {
    if (const auto k = output_for(reversed, places, capture)) {
      outputs.push_back(gradients[*k]);
      continue;
    }
    const Tensor& like = at.input(1 + capture);
    outputs.push_back(like.type().is_list() ? empty_list(like.type()) : zeros_like(like));
  }
  for (const int capture : uncertain) {
    const auto k = output_for(reversed, places, capture);
    outputs.push_back(is_uncertain(reversed, places, capture) ? gradients[reversed.presences[*k]]
                                                              : scalar(k ? 1 : 0, i32));
  }
  for (const int capture : tables)
    for (Tensor& part : rows_of(reversed, places, gradients, capture, at.input_type(1 + capture)))
      outputs.push_back(std::move(part));
  Ref<Graph> graph = builder.finish(outputs);
  return {std::move(graph), builder.captured()};
}

}  // namespace

void cond_vjp(Vjp& at) {
  const CondAttrs& attrs = at.attr<CondAttrs>();
  const ReversedGraph yes_reversed = reverse_branch(attrs.on_true, attrs.true_captures, at);
  const ReversedGraph no_reversed = reverse_branch(attrs.on_false, attrs.false_captures, at);
  // Captures without a path in either branch get no cotangent, rather than zeros.
  std::vector<int> wanted, tables;
  for (const auto& [reversed, captures] :
       {std::tie(yes_reversed, attrs.true_captures), std::tie(no_reversed, attrs.false_captures)})
    for (std::size_t k = 0; k < reversed.wanted.size(); ++k)
      (reversed.row_numbers[k] < 0 ? wanted : tables).push_back(captures[reversed.wanted[k]]);
  for (std::vector<int>* list : {&wanted, &tables}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  std::vector<int> uncertain;
  for (const int capture : wanted)
    if (is_uncertain(yes_reversed, attrs.true_captures, capture) ||
        is_uncertain(no_reversed, attrs.false_captures, capture))
      uncertain.push_back(capture);
  const WrappedBranch yes =
      wrap(attrs.on_true, yes_reversed, attrs.true_captures, at, wanted, uncertain, tables);
  const WrappedBranch no =
      wrap(attrs.on_false, no_reversed, attrs.false_captures, at, wanted, uncertain, tables);
  CondAttrs back;
  CaptureList list;
  back.true_captures = list.add(yes.captured);
  back.false_captures = list.add(no.captured);
  back.on_true = make_sub_graph(yes.graph);
  back.on_false = make_sub_graph(no.graph);
  Tensors inputs{at.input(0)};
  inputs.insert(inputs.end(), list.tensors().begin(), list.tensors().end());
  const Tensors results = bind_all(cond_op, inputs, make_attrs(back));
  // A capture with a path in one branch only has a cotangent only if that branch is taken.
  std::size_t next = wanted.size();
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const bool if_true = output_for(yes_reversed, attrs.true_captures, wanted[k]).has_value(),
               if_false = output_for(no_reversed, attrs.false_captures, wanted[k]).has_value();
    if (next - wanted.size() < uncertain.size() && uncertain[next - wanted.size()] == wanted[k])
      at.add(1 + wanted[k], results[k], results[next++] > 0);
    else if (if_true && if_false)
      at.add(1 + wanted[k], results[k]);
    else
      at.add(1 + wanted[k], results[k], if_true ? at.input(0) : logical_not(at.input(0)));
  }
  for (const int capture : tables) {
    at.add_rows(1 + capture, results[next], results[next + 1]);
    next += 2;
  }
}

}  // namespace reel
