#include "reel/trace/passes/hoisting/hoist_embedding_products.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <optional>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/trace/passes/analysis/table_rows.h"
#include "reel/trace/passes/cleanup/drop_dead.h"
#include "reel/trace/passes/support/loop_leaves.h"
#include "reel/trace/passes/support/remarks.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Returns true for a product of the last axis of a with a matrix: [..., k] and [k, n] or [n, k].
bool is_by_matrix(const DotAttrs& dot, const TensorType& a, const TensorType& b) {
  return dot.a_batch.empty() && dot.a_contract == std::vector<int>{a.rank() - 1} && b.rank() == 2 &&
         b.is_known();
}

/// Returns true for a product over all axes but the last of both operands: [..., k] and [..., n].
bool is_over_rows(const DotAttrs& dot, const TensorType& a, const TensorType& b) {
  std::vector<int> rows(static_cast<std::size_t>(a.rank() - 1));
  std::iota(rows.begin(), rows.end(), 0);
  return dot.a_batch.empty() && a.rank() == b.rank() && dot.a_contract == rows &&
         dot.b_contract == rows;
}

/// Multiplying rows of fewer columns is as fast as gathering rows of the product.
constexpr std::int64_t kFewColumns = 16;
/// The least number of time steps that a chunked loop adds up before it adds to the sums of all
/// chunks.
constexpr std::int64_t kStepsOfChunk = 16;

/// Returns true if table rows are taken at least twice on average, and the table has not many more
/// rows than a chunk has indices. The loop's dim, the first in `order`, may have a size that only a
/// run knows.
bool has_many(const TensorType& indices, const std::vector<int>& order, const TensorType& table) {
  const std::int64_t rows = table.sizes()[0];
  std::int64_t of_step = 1;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Dim& dim = indices.dims()[static_cast<std::size_t>(order[i])];
    if (!dim.has_size()) return false;
    of_step *= dim.size();
  }
  const Dim& time = indices.dims()[static_cast<std::size_t>(order[0])];
  return table.sizes()[1] >= kFewColumns && rows <= kStepsOfChunk * of_step &&
         (!time.has_size() || 2 * rows <= of_step * time.size());
}

/// Returns the attributes of a gather of whole table rows by indices of this rank.
AttrsRef by_whole_rows(GatherAttrs attrs, std::size_t rank) {
  attrs.matched.assign(rank, -1);
  return make_attrs(std::move(attrs));
}

/// A loop that is being changed. Values around it belong to the new graph.
struct Changed {
  LoopAttrs attrs;
  std::vector<ValueId> inputs, outputs;
  Ref<Graph> body;
  LoopRemarks remarks;
  std::vector<int> reads = {};  ///< by value of the body: reads by records and as an output

  struct Added {
    ValueId outside, inside;
  };
  std::vector<Added> slices = {}, captures = {}, sums = {};
  std::map<std::pair<ValueId, std::vector<int>>, ValueId> steps = {};  ///< by indices and order
  /// A sum by index that the loop has already.
  struct SumByIndex {
    ValueId steps, updates;
    TensorType type;
    AttrsRef attrs;
    ValueId sum;
  };
  std::vector<SumByIndex> sums_by_index = {};

  /// A gather that replaces a product of the body.
  struct Gather {
    ValueId table, indices;
    AttrsRef attrs;
  };
  std::map<std::size_t, Gather> gathers = {};
  /// tᵀ·s, or sᵀ·t, which replaces a sum of the loop.
  struct Product {
    ValueId out, sums;
    TableRowAccess rows;
    bool table_first;
  };
  std::vector<Product> products = {};

  /// Returns the value around the loop that the body captures as v; nothing if v is no capture.
  std::optional<ValueId> capture(ValueId v) const {
    const auto formals = body_inputs(attrs).captures;
    for (std::size_t i = 0; i < formals.size(); ++i)
      if (formals[i] == v) return body_capture(attrs, inputs, i);
    return std::nullopt;
  }
};

class Multiplying {
 public:
  Multiplying(const Graph& from, const MultiplyTables& how)
      : from_(from), how_(how), find_(from), to_(from) {}

  Ref<Graph> run() {
    for (std::size_t r = 0; r < from_.records.size(); ++r) {
      const OpRecord& record = from_.records[r];
      const InheritProvenance scope(record);
      const auto out = from_.outputs_of(record);
      if (const auto found = scattered_.find(r); found != scattered_.end()) {
        to_.replace(out[0], product_of_sums(found->second));
        continue;
      }
      std::vector<ValueId> inputs = to_.inputs_of(record);
      const AttrsRef attrs = with_sub_graphs(
          record, [&](const Graph& inside) { return hoist_embedding_products(inside, how_); });
      if (record.op == &loop_op)
        append_loop(r, get<LoopAttrs>(attrs.get()), std::move(inputs));
      else
        to_.keep(record, attrs, inputs);
    }
    return to_.finish();
  }

 private:
  /// The product that replaces a scatter_add: s·w, or s·wᵀ.
  struct Scattered {
    ValueId sums, matrix;
    TableRowAccess rows;
    int contract;
  };

  // ---- Around loops -----------------------------------------------------------------------------

  /// Records fn as a graph and appends it. Returns its only output.
  template <class Fn>
  static ValueId put(Graph& to, const std::vector<ValueId>& inputs, Fn&& fn) {
    const RecordedGraph part = record_graph(
        "part", to.types_of(inputs), [&](const Tensors& given) { return Tensors{fn(given)}; });
    assert(part.captured.empty());
    return inline_graph(to, *part.graph, inputs)[0];
  }
  /// t·w, or t·wᵀ, summed in the order that an iteration uses.
  ValueId product(ValueId table, ValueId matrix, int contract, SumOrder order) {
    return put(to_.to(), {table, matrix}, [&](const Tensors& given) {
      DotAttrs attrs{{1}, {contract}, {}, {}};
      attrs.order = order;
      return bind(dot_op, {given[0], given[1]}, dot_attrs(std::move(attrs)));
    });
  }
  /// tᵀ·s, or sᵀ·t.
  ValueId product_over_rows(const Changed::Product& at) {
    const std::vector<ValueId> given{to_[at.rows.table], at.sums, to_[at.rows.indices]};
    return put(to_.to(), given, [&](const Tensors& given) {
      const Tensor rows = where_taken(given[0], given[2], *at.rows.attrs), &sums = given[1];
      return bind(dot_op, {at.table_first ? rows : sums, at.table_first ? sums : rows},
                  single_pair(0, 0));
    });
  }
  ValueId product_of_sums(const Scattered& at) {
    const std::vector<ValueId> given{at.sums, at.matrix, to_[at.rows.indices]};
    return put(to_.to(), given, [&](const Tensors& given) {
      const Tensor made = bind(dot_op, {given[0], given[1]}, single_pair(1, at.contract));
      return where_taken(made, given[2], *at.rows.attrs);
    });
  }
  /// Returns x with zeros in table rows that no index takes: infinities of the table or the matrix
  /// would give NaN there.
  static Tensor where_taken(const Tensor& x, const Tensor& indices, const GatherAttrs& attrs) {
    const auto rank = static_cast<std::size_t>(indices.rank());
    const Tensor counts = scatter_positions(zeros(Dims{x.dims()[0]}, i32), indices,
                                            ones(indices.dims(), i32), by_whole_rows(attrs, rank));
    return where(broadcastable(counts > 0, {1}, x.type()), x, 0);
  }

  bool is_worth(const TableRowAccess& rows) const {
    return how_.any || has_many(from_.types[rows.indices], rows.order, from_.types[rows.table]);
  }

  // ---- Loops ------------------------------------------------------------------------------------

  void append_loop(std::size_t r, const LoopAttrs& attrs, std::vector<ValueId> inputs) {
    const OpRecord& record = from_.records[r];
    const auto in = from_.inputs_of(record), out = from_.outputs_of(record);
    const Graph& body = *attrs.body.graph;
    Changed loop{attrs,
                 std::move(inputs),
                 {out.begin(), out.end()},
                 Ref<Graph>(new Graph(body)),
                 LoopRemarks(attrs.debug.remarks)};
    loop.reads.resize(body.types.size());
    for (const OpRecord& of : body.records)
      for (const ValueId v : body.inputs_of(of)) ++loop.reads[v];
    for (const ValueId v : body.outputs) ++loop.reads[v];
    // Effects are excluded so that an index out of range is still reported before anything is
    // printed.
    const bool can_change = attrs.trips.is_full && !attrs.cond && !attrs.has_entries() &&
                            !attrs.chunking.over_chunks && !has_effects(body);
    const auto slices = operands_of(attrs, in).slices;
    for (std::size_t i = 0; can_change && i < slices.size(); ++i)
      if (const auto rows = find_.gathered(slices[i], r); rows && is_worth(*rows))
        use_rows(loop, body_inputs(attrs).slices[i], *rows);
    for (std::size_t j = 0; can_change && j < attrs.stacks.size(); ++j) {
      if (attrs.stacks[j].is_list || attrs.stacks[j].is_in_file()) continue;
      const auto found = find_.scattered(results_of(attrs, out).stacks[j], r);
      if (found && is_worth(found->rows))
        use_updates(loop, body_outputs(attrs).stacks[j], found->rows, found->record);
    }
    finish(record, std::move(loop));
  }

  /// Replaces products in the body that read rows of a table.
  void use_rows(Changed& loop, ValueId rows_of_step, const TableRowAccess& rows) {
    const Graph& body = *loop.attrs.body.graph;
    const TensorType& type = body.types[rows_of_step];
    for (std::size_t r = 0; r < body.records.size() && type.is_known(); ++r) {
      const OpRecord& record = body.records[r];
      if (record.op != &dot_op) continue;
      const auto in = body.inputs_of(record);
      const auto& dot = get<DotAttrs>(record.attrs.get());
      const TensorType &a = body.types[in[0]], &b = body.types[in[1]];
      if (in[0] == rows_of_step && is_by_matrix(dot, a, b))
        gather_products(loop, r, rows);
      else if ((in[0] == rows_of_step || in[1] == rows_of_step) && is_over_rows(dot, a, b))
        add_by_index(loop, r, rows, in[0] == rows_of_step);
    }
  }

  /// Replaces x·w in the body by rows of t·w.
  void gather_products(Changed& loop, std::size_t r, const TableRowAccess& rows) {
    const Graph& body = *loop.attrs.body.graph;
    const OpRecord& record = body.records[r];
    const auto in = body.inputs_of(record);
    const auto& attrs = get<DotAttrs>(record.attrs.get());
    const TensorType &a = body.types[in[0]], &b = body.types[in[1]],
                     &table = from_.types[rows.table];
    const int contract = attrs.b_contract[0];
    const Dim& column = b.dims()[static_cast<std::size_t>(1 - contract)];
    const std::optional<ValueId> matrix = loop.capture(in[1]);
    const SumOrder order = order_in_steps(loop.attrs, attrs, a, b, how_.packs);
    // A product of one column costs no more than a gather.
    if (!matrix || column.size() == 1 || !has_alike_rows(order) ||
        (column.is_named() && column == table.dims()[0]))
      return;
    const ValueId made = product(to_[rows.table], *matrix, contract, order);
    loop.captures.push_back({made, loop.body->add_value(to_.to().types[made])});
    loop.gathers[r] = {loop.captures.back().inside, steps(loop, rows),
                       by_whole_rows(*rows.attrs, static_cast<std::size_t>(a.rank() - 1))};
    loop.remarks.say(LoopRemark::Kind::hoisted, dot_op, {a, b},
                     {body.types[body.outputs_of(record)[0]]},
                     str("once for each row of ", table, ", from which its rows are gathered"));
  }

  /// Replaces a sum of xᵀ·g or gᵀ·x, possibly transposed, by a product with a sum by index.
  void add_by_index(Changed& loop, std::size_t r, const TableRowAccess& rows, bool rows_first) {
    const Graph& body = *loop.attrs.body.graph;
    const OpRecord& record = body.records[r];
    ValueId term = body.outputs_of(record)[0];
    bool table_first = rows_first;
    for (std::size_t next = r + 1; next < body.records.size() && loop.reads[term] == 1; ++next)
      if (const OpRecord& of = body.records[next];
          of.op == &transpose_op && body.inputs_of(of)[0] == term) {
        term = body.outputs_of(of)[0];
        table_first = !table_first;
      }
    const auto terms = body_outputs(loop.attrs).sums;
    const auto found = std::find(terms.begin(), terms.end(), term);
    if (loop.reads[term] != 1 || found == terms.end()) return;
    const ValueId updates = body.inputs_of(record)[rows_first ? 1 : 0];
    const std::optional<ValueId> sum = sums_by_index(loop, rows, updates);
    if (!sum) return;
    const auto sums = results_of(loop.attrs, loop.outputs).sums;
    loop.products.push_back(
        {sums[static_cast<std::size_t>(found - terms.begin())], *sum, rows, table_first});
    loop.remarks.say(LoopRemark::Kind::sunk, dot_op, body.types_of(body.inputs_of(record)),
                     {body.types[term]}, "of sums by index");
  }

  /// Replaces a stack of g·wᵀ, which a scatter_add adds up by index, by a product of the sum by
  /// index.
  void use_updates(Changed& loop, ValueId term, const TableRowAccess& rows, std::size_t scatter) {
    const Graph& body = *loop.attrs.body.graph;
    for (const OpRecord& record : body.records) {
      if (record.op != &dot_op || body.outputs_of(record)[0] != term || loop.reads[term] != 1)
        continue;
      const auto in = body.inputs_of(record);
      const auto& attrs = get<DotAttrs>(record.attrs.get());
      const std::optional<ValueId> matrix = loop.capture(in[1]);
      if (!matrix || !is_by_matrix(attrs, body.types[in[0]], body.types[in[1]])) return;
      const std::optional<ValueId> sum = sums_by_index(loop, rows, in[0]);
      if (!sum) return;
      scattered_[scatter] = {*sum, *matrix, rows, attrs.b_contract[0]};
      loop.remarks.say(LoopRemark::Kind::sunk, dot_op, body.types_of(in), {body.types[term]},
                       "of sums by index");
      return;
    }
  }

  /// Returns the body's slice that has the indices of an iteration; adds it if it is not there.
  ValueId steps(Changed& loop, const TableRowAccess& rows) {
    auto [it, is_new] = loop.steps.try_emplace({rows.indices, rows.order}, 0);
    if (!is_new) return it->second;
    const ValueId all = put(to_.to(), {to_[rows.indices]},
                            [&](const Tensors& given) { return transposed(given[0], rows.order); });
    it->second = loop.body->add_value(slice_type(to_.to().types[all]));
    loop.slices.push_back({all, it->second});
    return it->second;
  }

  /// Returns the sum over iterations, around the loop, of each table row's updates; nothing if
  /// `updates` are not rows.
  std::optional<ValueId> sums_by_index(Changed& loop, const TableRowAccess& rows, ValueId updates) {
    const Graph& body = *loop.attrs.body.graph;
    const TensorType& type = body.types[updates];
    const Dim& row = from_.types[rows.table].dims()[0];
    if (!type.is_known() || type.rank() != static_cast<int>(rows.order.size()) ||
        (row.is_named() && row == type.dims().back()))
      return std::nullopt;
    const ValueId indices = steps(loop, rows);
    const TensorType result = type.with({row, type.dims().back()});
    const AttrsRef attrs = by_whole_rows(*rows.attrs, rows.order.size() - 1);
    for (const Changed::SumByIndex& made : loop.sums_by_index)
      if (made.steps == indices && made.updates == updates && made.type == result &&
          attr::same(made.attrs, attrs))
        return made.sum;
    const ValueId term = put(*loop.body, {indices, updates}, [&](const Tensors& given) {
      return scatter_positions(zeros(result), given[0], given[1], attrs);
    });
    const ValueId sum = to_.to().add_value(loop.body->types[term]);
    loop.sums_by_index.push_back({indices, updates, result, attrs, sum});
    loop.sums.push_back({sum, term});
    return sum;
  }

  static void insert(std::vector<ValueId>& values, std::size_t number, ValueId v) {
    values.insert(values.begin() + static_cast<std::ptrdiff_t>(number), v);
  }

  void finish(const OpRecord& record, Changed loop) {
    LoopAttrs attrs = loop.attrs;
    if (loop.slices.empty() && loop.sums.empty()) {
      to_.to().append(record, make_attrs(std::move(attrs)), loop.inputs, loop.outputs);
      return;
    }
    const Graph before = *loop.body;
    GraphRewriter to_body(before);
    Graph& body = to_body.to();
    for (std::size_t r = 0; r < before.records.size(); ++r) {
      const OpRecord& of = before.records[r];
      const auto found = loop.gathers.find(r);
      if (found == loop.gathers.end())
        to_body.keep(of);
      else
        body.append(gather_op, found->second.attrs, {{found->second.table, found->second.indices}},
                    before.outputs_of(of), of.source, of.recompute);
    }
    for (const auto& [outside, inside] : loop.slices) {
      const LoopLeaf next{LeafKind::slice, attrs.slices.size()};
      insert(body.inputs, body_input_number(attrs, next), inside);
      insert(loop.inputs, operand_number(attrs, next), outside);
      attrs.slices.emplace_back();
      ++body.formal_count;
    }
    for (const auto& [outside, inside] : loop.captures)
      add_body_capture(attrs, loop.inputs, outside, body, inside);
    for (const auto& [outside, inside] : loop.sums) {
      insert(loop.outputs, result_number(attrs, {LeafKind::sum, attrs.sums.size()}), outside);
      body.outputs.push_back(inside);
      attrs.sums.emplace_back();
    }
    attrs.debug.remarks = loop.remarks.finish();
    DimEnv names = attrs.body.env();
    attrs.body = make_sub_graph(to_body.finish(), names);
    to_.to().append(record, make_attrs(std::move(attrs)), loop.inputs, loop.outputs);
    for (const Changed::Product& product : loop.products)
      to_.replace(product.out, product_over_rows(product));
  }

  const Graph& from_;
  const MultiplyTables& how_;
  FindTableRows find_;
  GraphRewriter to_;
  std::map<std::size_t, Scattered> scattered_;  ///< by record, a scatter_add
};

}  // namespace

Ref<Graph> hoist_embedding_products(const Graph& graph, const MultiplyTables& how) {
  Ref<Graph> result = Multiplying(graph, how).run();
  return result->types.size() == graph.types.size() ? result : drop_dead(*result);
}

}  // namespace reel
