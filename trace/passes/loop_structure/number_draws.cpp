#include "reel/trace/passes/loop_structure/number_draws.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/creation/draws.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/trace/passes/support/loop_leaves.h"

namespace reel {
namespace {

/// Returns the dim of the rows as the body names it.
Dim in_body(const SubGraph& body, const Dim& rows) {
  const auto found = std::ranges::find(body.bindings, rows, &std::pair<Dim, Dim>::second);
  return found == body.bindings.end() ? rows : found->first;
}

/// Numbers the draws of a graph and of the bodies of its loops.
class NumberDraws {
 public:
  NumberDraws(const Graph& graph, const Dim& rows) : graph_(graph), rows_(rows), to_(graph) {
    for (const OpRecord& record : graph.records) add(record);
  }

  /// Values that the graph reads but does not have as inputs yet.
  struct Numbers {
    ValueId of_rows, count;
  };
  const std::optional<Numbers>& numbers() const { return numbers_; }
  /// Returns the graph. Requires inputs for its numbers.
  Ref<Graph> take() { return to_.finish(); }
  Graph& result() { return to_.to(); }

 private:
  void add(const OpRecord& record) {
    const auto given = graph_.inputs_of(record);
    std::vector<ValueId> in(given.begin(), given.end());
    const auto out = graph_.outputs_of(record);
    const int axis = is_draw(*record.op) ? find(graph_.types[out[0]].dims(), rows_) : -1;
    const bool has_one_key = in.size() == 1 && graph_.types[in[0]].rank() == 1;
    if (axis < 0 || !has_one_key) {
      const AttrsRef attrs = record.op == &loop_op ? numbered(record, in) : record.attrs;
      to_.keep(record, attrs, in);
      return;
    }
    const InheritProvenance scope(record);
    const Numbers& numbers = make_numbers();
    append_draw_rows(result(), record, axis, {in[0], numbers.of_rows, numbers.count}, out);
  }

  /// Returns the attributes of a loop with numbered draws in its body. in: its inputs; numbers are
  /// added to them.
  AttrsRef numbered(const OpRecord& record, std::vector<ValueId>& in) {
    LoopAttrs loop = get<LoopAttrs>(record.attrs.get());
    NumberDraws body(*loop.body.graph, in_body(loop.body, rows_));
    if (!body.numbers()) return record.attrs;
    if (!loop.debug.origin) loop.debug.origin = loop.body.graph;
    DimEnv names = loop.body.env();
    const Numbers& numbers = make_numbers();
    // Finished entries draw their own numbers, which ops that mix entries read.
    add_body_capture(loop, in, numbers.of_rows, body.result(), body.numbers()->of_rows,
                     {FinishedFill::as_is});
    add_body_capture(loop, in, numbers.count, body.result(), body.numbers()->count);
    loop.body = make_sub_graph(body.take(), names);
    return make_attrs(std::move(loop));
  }

  const Numbers& make_numbers() {
    if (!numbers_)
      numbers_ = Numbers{result().add_value(TensorType(i64, {rows_})),
                         result().add_value(TensorType(i64))};
    return *numbers_;
  }

  const Graph& graph_;
  Dim rows_;
  GraphRewriter to_;
  std::optional<Numbers> numbers_;
};

}  // namespace

Ref<Graph> number_draws(const Graph& graph, const Dim& rows) {
  NumberDraws pass(graph, rows);
  if (!pass.numbers()) return nullptr;
  pass.result().inputs.push_back(pass.numbers()->of_rows);
  pass.result().inputs.push_back(pass.numbers()->count);
  return pass.take();
}

}  // namespace reel
