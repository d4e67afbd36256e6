#include "reel/core/graph/passes/inline_checkpointed.h"

#include <algorithm>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/joined_dims.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/types/dim_expression.h"

namespace reel {
namespace {

/// Returns true if the graph has the op, also in bodies, conditions and branches.
bool has_record(const Graph& graph, const Op& op) {
  return std::any_of(graph.records.begin(), graph.records.end(), [&](const OpRecord& record) {
    if (record.op == &op) return true;
    if (record.op == &loop_op) {
      const auto& loop = get<LoopAttrs>(record.attrs.get());
      return has_record(*loop.body.graph, op) || (loop.cond && has_record(*loop.cond.graph, op));
    }
    if (record.op != &cond_op) return false;
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_record(*attrs.on_true.graph, op) || has_record(*attrs.on_false.graph, op);
  });
}

bool needs_inlining(const Graph& graph) {
  return has_record(graph, checkpointed_op) || has_record(graph, afresh_op);
}

Ref<Graph> inlined(const Graph& graph, bool is_gradient, const KeepsCall& keeps);

/// A pass traces nothing, so Dim::unknown() would make a dim that no run binds.
Dim unknown_symbol() {
  Ref<DimNode> node(new DimNode);
  node->kind = DimKind::plain;
  node->size = -1;
  node->is_symbol = true;
  return Dim::of_node(std::move(node));
}

class Inlining {
 public:
  /// is_gradient: the graph is the body of a gradient loop, or part of one.
  Inlining(const Graph& from, bool is_gradient, const KeepsCall& keeps)
      : is_gradient_(is_gradient), keeps_(keeps), to_(from) {}

  Ref<Graph> run(const Graph& from) {
    for (const OpRecord& record : from.records) {
      const std::vector<ValueId> in = to_.inputs_of(record);
      const auto out = from.outputs_of(record);
      if (record.op == &checkpointed_op && !(keeps_ && keeps_(from, record))) {
        const std::vector<ValueId> made = put(record, in, out);
        for (std::size_t k = 0; k < out.size(); ++k) to_.replace(out[k], made[k]);
      } else if (record.op == &afresh_op && is_gradient_) {
        to_.replace(out[0], in[0]);
      } else {
        to_.keep(record, with_parts(record), in);
      }
    }
    return to_.finish();
  }

 private:
  /// Appends the records of the called function, with nested calls inlined, and returns its
  /// outputs. called: the outputs of the call.
  std::vector<ValueId> put(const OpRecord& call, const std::vector<ValueId>& inputs,
                           std::span<const ValueId> called) {
    const SubGraph& body = get<CheckpointedAttrs>(call.attrs.get()).body;
    const Ref<Graph> part = inlined(*body.graph, is_gradient_, keeps_);
    DimEnv env = body.env();
    std::vector<ValueId> value(part->types.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      value[part->inputs[i]] = inputs[i];
      env.bind(part->types[part->inputs[i]], to_.to().types[inputs[i]]);
    }
    name_made_dims(*part, called, env);
    const auto here = [&](std::span<const ValueId> values) {
      std::vector<ValueId> result;
      for (const ValueId v : values) result.push_back(value[v]);
      return result;
    };
    for (const OpRecord& record : part->records) {
      for (const ValueId v : part->outputs_of(record))
        value[v] = to_.to().add_value(env.resolve(part->types[v]));
      const AttrsRef attrs = record.attrs ? record.attrs->resolve(env) : AttrsRef();
      to_.to().append(*record.op, attrs, here(part->inputs_of(record)),
                      here(part->outputs_of(record)), record.source,
                      std::max(record.recompute, call.recompute));
    }
    return here(part->outputs);
  }
  /// Binds dims that the function makes, including unknown sizes of plain axes: to the dims of the
  /// call's outputs, or to new ones. New ones are needed because a function may be called more than
  /// once.
  void name_made_dims(const Graph& part, std::span<const ValueId> called, DimEnv& env) const {
    for (std::size_t k = 0; k < called.size(); ++k)
      bind_made(part.types[part.outputs[k]].dims(), to_.to().types[called[k]].dims(), env);
    JoinedDims made(env);
    for (const OpRecord& record : part.records)
      for (const ValueId v : part.outputs_of(record))
        for_each_bound(part.types[v], [&](const Dim& dim) {
          if (!dim.has_size() && !env.knows(dim))
            env.bind(dim, dim.is_named() ? made.of(dim, dim) : unknown_symbol());
        });
  }
  static void bind_made(const Dims& inside, const Dims& outside, DimEnv& env) {
    for (std::size_t axis = 0; axis < inside.size(); ++axis) {
      const DimExpression *in = expression_of(inside[axis]), *out = expression_of(outside[axis]);
      if (in && out)
        bind_made(in->operands, out->operands, env);
      else if (inside[axis].is_symbol())
        env.bind(inside[axis], outside[axis]);
    }
  }
  AttrsRef with_parts(const OpRecord& record) const {
    const auto inside = [&](SubGraph& part, bool is_gradient) {
      if (!part || !needs_inlining(*part.graph)) return;
      DimEnv names = part.env();
      part = make_sub_graph(inlined(*part.graph, is_gradient, keeps_), names);
    };
    if (record.op == &loop_op) {
      LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
      inside(attrs.body, attrs.is_gradient_loop);
      inside(attrs.cond, false);
      return make_attrs(std::move(attrs));
    }
    if (record.op != &cond_op) return record.attrs;
    CondAttrs attrs = get<CondAttrs>(record.attrs.get());
    inside(attrs.on_true, is_gradient_);
    inside(attrs.on_false, is_gradient_);
    return make_attrs(std::move(attrs));
  }

  const bool is_gradient_;
  const KeepsCall& keeps_;
  GraphRewriter to_;
};

Ref<Graph> inlined(const Graph& graph, bool is_gradient, const KeepsCall& keeps) {
  if (!needs_inlining(graph)) return Ref<Graph>(new Graph(graph));
  return Inlining(graph, is_gradient, keeps).run(graph);
}

}  // namespace

Ref<Graph> inline_checkpointed(const Graph& graph) { return inlined(graph, false, {}); }
Ref<Graph> inline_checkpointed_unless(const Graph& graph, const KeepsCall& keeps) {
  return inlined(graph, false, keeps);
}

bool has_checkpointed(const Graph& graph) { return has_record(graph, checkpointed_op); }

}  // namespace reel
