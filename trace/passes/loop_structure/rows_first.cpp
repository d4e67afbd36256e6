#include "reel/trace/passes/loop_structure/rows_first.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/trace/passes/analysis/row_axes.h"
#include "reel/trace/passes/support/loop_leaves.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Returns the order of axes that begins with `axis`.
std::vector<int> order_from(int axis, int rank) {
  std::vector<int> order{axis};
  for (int i = 0; i < rank; ++i)
    if (i != axis) order.push_back(i);
  return order;
}

TensorType in_order(const TensorType& type, const std::vector<int>& order) {
  Dims dims;
  for (const int axis : order) dims.push_back(type.dims()[static_cast<std::size_t>(axis)]);
  return type.with(dims);
}

/// Returns the place of each axis once `first` has become the first.
std::vector<int> moved(std::vector<int> axes, int first) {
  for (int& axis : axes) axis = axis == first ? 0 : axis < first ? axis + 1 : axis;
  return axes;
}

/// True if the product reads operand `number` row by row, and its bits do not depend on the axis of
/// the rows: no other axis becomes the last, and no two axes are walked as one.
bool is_by_row(const OpRecord& record, std::size_t number, int axis) {
  if (record.op != &dot_op) return false;
  const auto& dot = get<DotAttrs>(record.attrs.get());
  const std::vector<int>& batch = number == 0 ? dot.a_batch : dot.b_batch;
  return dot.a_contract.size() == 1 && std::ranges::count(batch, axis) == 1;
}

/// Moves the rows of one loop's captures.
class RowsFirst {
 public:
  /// inputs: the loop's, in `outside`, which receives the transposed captures.
  RowsFirst(Graph& outside, LoopAttrs attrs, std::vector<ValueId>& inputs)
      : outside_(outside), attrs_(std::move(attrs)), inputs_(inputs), body_(*attrs_.body.graph) {}

  LoopAttrs run() {
    find_captures();
    if (axis_of_.empty()) return std::move(attrs_);
    const Graph& body = *attrs_.body.graph;
    DimEnv names = attrs_.body.env();
    const std::size_t captures = body_inputs(attrs_).captures.size();
    for (std::size_t i = 0; i < captures; ++i) transpose(i);
    for (const OpRecord& record : body.records) add(record);
    attrs_.body = make_sub_graph(body_.finish(), names);
    return std::move(attrs_);
  }

 private:
  /// Finds the captures of the body that products alone read, each with an axis of rows that is
  /// neither first nor last.
  void find_captures() {
    const Graph& body = *attrs_.body.graph;
    const std::optional<Dim> rows = dim_of_rows(attrs_, body.types_of(body_inputs(attrs_).carries));
    if (!rows || !rows->is_named() || rows->is_ragged()) return;
    for (const ValueId v : body_inputs(attrs_).captures) {
      if (body.types[v].is_list()) continue;
      const int axis = find(body.types[v].dims(), *rows);
      if (axis > 0 && axis < body.types[v].rank() - 1) axis_of_[v] = axis;
    }
    for (const ValueId v : body.outputs) axis_of_.erase(v);
    for (const OpRecord& record : body.records) {
      const auto in = body.inputs_of(record);
      for (std::size_t i = 0; i < in.size(); ++i)
        if (const auto found = axis_of_.find(in[i]);
            found != axis_of_.end() && !is_by_row(record, i, found->second))
          axis_of_.erase(found);
    }
  }

  void transpose(std::size_t capture) {
    const ValueId formal = body_inputs(attrs_).captures[capture];
    const auto found = axis_of_.find(formal);
    if (found == axis_of_.end()) return;
    const TensorType& type = body_.to().types[formal];
    const std::vector<int> order = order_from(found->second, type.rank());
    const ValueId given = body_capture(attrs_, inputs_, capture);
    const ValueId made = outside_.add_value(in_order(outside_.types[given], order));
    outside_.append(transpose_op, make_attrs(TransposeAttrs{order}), {{given}}, {{made}});
    const ValueId now = body_.to().add_value(in_order(type, order));
    const auto outer = static_cast<std::size_t>(attrs_.body_captures[capture]);
    add_body_capture(attrs_, inputs_, made, body_.to(), now, attrs_.captures[outer]);
    transposed_[formal] = now;
  }

  void add(const OpRecord& record) {
    const Graph& body = *attrs_.body.graph;
    const auto given = body.inputs_of(record);
    std::vector<ValueId> in(given.begin(), given.end());
    AttrsRef attrs = record.attrs;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto found = transposed_.find(in[i]);
      if (found == transposed_.end()) continue;
      const int axis = axis_of_.at(in[i]);
      in[i] = found->second;
      DotAttrs dot = get<DotAttrs>(attrs.get());
      std::vector<int>&contract = i == 0 ? dot.a_contract : dot.b_contract,
      &batch = i == 0 ? dot.a_batch : dot.b_batch;
      contract = moved(std::move(contract), axis);
      batch = moved(std::move(batch), axis);
      attrs = make_attrs(std::move(dot));
    }
    body_.keep(record, attrs, in);
  }

  Graph& outside_;
  LoopAttrs attrs_;
  std::vector<ValueId>& inputs_;
  GraphRewriter body_;
  std::map<ValueId, int> axis_of_;         ///< by capture of the body: the axis of its rows
  std::map<ValueId, ValueId> transposed_;  ///< by capture of the body
};

}  // namespace

Ref<Graph> rows_first(const Graph& graph) {
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    const InheritProvenance scope(record);
    std::vector<ValueId> inputs = to.inputs_of(record);
    AttrsRef attrs = with_sub_graphs(record, rows_first);
    if (record.op == &loop_op)
      attrs = make_attrs(RowsFirst(to.to(), get<LoopAttrs>(attrs.get()), inputs).run());
    to.keep(record, attrs, inputs);
  }
  return to.finish();
}

}  // namespace reel
