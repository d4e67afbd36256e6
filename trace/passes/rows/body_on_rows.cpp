#include "reel/trace/passes/rows/body_on_rows.h"

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/creation/draws.h"
#include "reel/core/ops/products/batched_dot.h"
#include "reel/core/ops/products/operand.h"
#include "reel/core/ops/shape/lengths_read.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

/// Captures of the lengths of dims, each once.
class LengthsOfDims {
 public:
  LengthsOfDims(Graph& graph, BodyOnRows& result) : graph_(graph), result_(result) {}

  ValueId of(const Dim& dim) {
    for (const auto& [made, value] : all_)
      if (made == dim) return value;
    const ValueId value = graph_.add_value(TensorType(i32, dim.length_dims()));
    graph_.inputs.push_back(value);
    auto [op, attrs] = op_of_lengths(dim);
    result_.lengths_of.push_back({op, std::move(attrs), 0, 0, 1});
    all_.emplace_back(dim, value);
    return value;
  }

 private:
  Graph& graph_;
  BodyOnRows& result_;
  std::vector<std::pair<Dim, ValueId>> all_;
};

/// Returns the first axis of a group if its dim has a length for each row; otherwise -1.
int ragged_axis(const TensorType& type, const std::vector<int>& group) {
  if (group.empty() || !dim_at(type, group[0]).is_ragged()) return -1;
  const Dims& over = dim_at(type, group[0]).length_dims();
  return over.size() == 1 && over[0] == dim_at(type, 0) ? group[0] : -1;
}

/// Appends a product for each row as one that leaves out the padding of the rows' own lengths.
/// Returns false, and appends nothing, if none of its dims has such lengths.
bool append_unpadded_dot(const Graph& body, const OpRecord& record, std::span<const int> axes,
                         LengthsOfDims& lengths, Graph& graph) {
  if (record.op != &dot_op) return false;
  const auto operands = body.inputs_of(record);
  UnpaddedDotAttrs attrs{get<DotAttrs>(record.attrs.get())};
  const auto is_row = [&](std::size_t i, const std::vector<int>& batch) {
    return axes[operands[i]] == 0 && !batch.empty() && batch[0] == 0;
  };
  if (!is_row(0, attrs.a_batch) || !is_row(1, attrs.b_batch)) return false;
  std::vector<ValueId> in(operands.begin(), operands.end());
  const auto input_of = [&](std::size_t operand, const std::vector<int>& group) {
    const TensorType& type = body.types[operands[operand]];
    const int axis = ragged_axis(type, group);
    if (axis < 0) return -1;
    in.push_back(lengths.of(dim_at(type, axis)));
    return static_cast<int>(in.size()) - 1;
  };
  const auto free = [&](std::size_t i, const std::vector<int>& contract,
                        const std::vector<int>& batch) {
    return others(body.types[operands[i]].rank(), contract, batch);
  };
  if (attrs.a_contract.size() == 1) attrs.terms = input_of(0, attrs.a_contract);
  attrs.rows = input_of(0, free(0, attrs.a_contract, attrs.a_batch));
  attrs.columns = input_of(1, free(1, attrs.b_contract, attrs.b_batch));
  if (in.size() == operands.size()) return false;
  graph.append(unpadded_dot_op, make_attrs(std::move(attrs)), in, body.outputs_of(record),
               record.source, record.recompute);
  return true;
}

}  // namespace

BodyOnRows body_on_rows(const Graph& body, std::span<const int> axes) {
  GraphRewriter to(body);
  Graph* const graph = &to.to();
  ValueId numbers = 0, count = 0;
  BodyOnRows result;
  bool changes = false;
  LengthsOfDims lengths(*graph, result);
  for (const OpRecord& record : body.records) {
    const InheritProvenance scope(record);
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    const int axis = out.empty() ? -1 : axes[out[0]];
    if (axis >= 0 && is_draw(*record.op)) {
      if (!result.takes_numbers) {
        numbers = graph->add_value(TensorType(i64, {Dim::unknown()}));
        count = graph->add_value(TensorType(i64));
      }
      result.takes_numbers = changes = true;
      append_draw_rows(*graph, record, axis, {in[0], numbers, count}, out);
      continue;
    }
    if (axis >= 0 && dim_read_by(*record.op, record.attrs.get())) {
      changes = true;
      graph->inputs.push_back(out[0]);
      result.lengths_of.push_back(record);
      continue;
    }
    if (append_unpadded_dot(body, record, axes, lengths, *graph)) {
      changes = true;
      continue;
    }
    AttrsRef attrs = record.attrs;
    if (axis >= 0 && record.op == &reshape_op && !body.types[out[0]].is_named()) {
      attrs = with_open_axis(body.types[out[0]], axis);
      changes = true;
    }
    to.keep(record, std::move(attrs));
  }
  if (!changes) return {};
  if (result.takes_numbers) graph->inputs.insert(graph->inputs.end(), {numbers, count});
  result.graph = to.finish();
  return result;
}

std::vector<TensorType> BodyOnRows::length_types(DimEnv env) const {
  std::vector<TensorType> result;
  for (const OpRecord& record : lengths_of) {
    const AttrsRef attrs = record.attrs->resolve(env);
    TypeList types;
    TypeArgs rule{*record.op, attrs.get(), {}, types};
    apply_type_rule(rule);
    result.push_back(types.span()[0]);
  }
  return result;
}

Tensors BodyOnRows::lengths(DimEnv env) const {
  Tensors result;
  for (const OpRecord& record : lengths_of)
    result.push_back(bind(*record.op, OpInputs(), record.attrs->resolve(env)));
  return result;
}

LoopAttrs on_body(const LoopAttrs& attrs, const BodyOnRows& body) {
  LoopAttrs result = attrs;
  if (!body.graph) return result;
  DimEnv names = attrs.body.env();
  result.body = make_sub_graph(body.graph, names);
  for (std::size_t added = body.lengths_of.size() + 2 * body.takes_numbers; added > 0; --added) {
    result.body_captures.push_back(static_cast<int>(result.captures.size()));
    result.captures.emplace_back();
  }
  return result;
}

}  // namespace reel
