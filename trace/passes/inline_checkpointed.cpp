#include "reel/trace/passes/inline_checkpointed.h"

#include <algorithm>

#include "reel/core/dim_expression.h"
#include "reel/core/ops/checkpointed.h"
#include "reel/core/ops/joined_dims.h"
#include "reel/core/ops/loop.h"

namespace reel {
namespace {

bool has_checkpointed(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
    if (record.op == &checkpointed_op) return true;
    if (record.op == &loop_op)
      return has_checkpointed(*get<LoopAttrs>(record.attrs.get()).body.graph);
    if (record.op != &cond_op) return false;
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_checkpointed(*attrs.on_true.graph) || has_checkpointed(*attrs.on_false.graph);
  });
}

class Inlining {
 public:
  explicit Inlining(const Graph& from) : to_(new Graph(from)) {
    to_->records.clear();
    to_->operands.clear();
    for (ValueId v = 0; v < from.types.size(); ++v) now_.push_back(v);
  }

  Ref<Graph> run(const Graph& from) {
    for (const OpRecord& record : from.records) {
      const std::vector<ValueId> in = now(from.inputs_of(record));
      const auto out = from.outputs_of(record);
      if (record.op == &checkpointed_op) {
        const SubGraph& body = get<CheckpointedAttrs>(record.attrs.get()).body;
        const std::vector<ValueId> made = put(body, in, out);
        for (std::size_t k = 0; k < out.size(); ++k) now_[out[k]] = made[k];
      } else {
        to_->append(record, with_parts(record), in, out);
      }
    }
    for (ValueId& v : to_->outputs) v = now_[v];
    to_->seal();
    return std::move(to_);
  }

 private:
  std::vector<ValueId> now(std::span<const ValueId> values) const {
    std::vector<ValueId> result;
    for (const ValueId v : values) result.push_back(now_[v]);
    return result;
  }
  /// The records of a part, with nothing checkpointed in it -> its outputs. called: what they are
  /// where the part is called.
  std::vector<ValueId> put(const SubGraph& body, const std::vector<ValueId>& inputs,
                           std::span<const ValueId> called) {
    const Ref<Graph> part = inline_checkpointed(*body.graph);
    DimEnv env = body.env();
    std::vector<ValueId> value(part->types.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      value[part->inputs[i]] = inputs[i];
      env.bind(part->types[part->inputs[i]], to_->types[inputs[i]]);
    }
    name_made_dims(*part, called, env);
    const auto here = [&](std::span<const ValueId> values) {
      std::vector<ValueId> result;
      for (const ValueId v : values) result.push_back(value[v]);
      return result;
    };
    for (const OpRecord& record : part->records) {
      for (const ValueId v : part->outputs_of(record))
        value[v] = to_->add_value(env.resolve(part->types[v]));
      const AttrsRef attrs = record.attrs ? record.attrs->resolve(env) : AttrsRef();
      to_->append(record, attrs, here(part->inputs_of(record)), here(part->outputs_of(record)));
    }
    return here(part->outputs);
  }
  /// Dims that a part makes, sizes of plain axes that only a run knows too: as its outputs have
  /// them outside, or new ones. A part may be called more than once.
  void name_made_dims(const Graph& part, std::span<const ValueId> called, DimEnv& env) const {
    for (std::size_t k = 0; k < called.size(); ++k)
      bind_made(part.types[part.outputs[k]].dims(), to_->types[called[k]].dims(), env);
    JoinedDims made(env);
    for (const OpRecord& record : part.records)
      for (const ValueId v : part.outputs_of(record))
        for_each_bound(part.types[v], [&](const Dim& dim) {
          if (!dim.has_size() && !env.knows(dim))
            env.bind(dim, dim.is_named() ? made.of(dim, dim) : Dim::unknown());
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
  static AttrsRef with_parts(const OpRecord& record) {
    const auto inside = [](SubGraph& part) {
      if (!part || !has_checkpointed(*part.graph)) return;
      DimEnv names = part.env();
      part = make_sub_graph(inline_checkpointed(*part.graph), names);
    };
    if (record.op == &loop_op) {
      LoopAttrs attrs = get<LoopAttrs>(record.attrs.get());
      inside(attrs.body);
      return make_attrs(std::move(attrs));
    }
    if (record.op != &cond_op) return record.attrs;
    CondAttrs attrs = get<CondAttrs>(record.attrs.get());
    inside(attrs.on_true);
    inside(attrs.on_false);
    return make_attrs(std::move(attrs));
  }

  Ref<Graph> to_;
  std::vector<ValueId> now_;
};

}  // namespace

Ref<Graph> inline_checkpointed(const Graph& graph) {
  if (!has_checkpointed(graph)) return Ref<Graph>(new Graph(graph));
  return Inlining(graph).run(graph);
}

}  // namespace reel
