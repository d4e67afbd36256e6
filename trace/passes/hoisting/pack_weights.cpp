#include "reel/trace/passes/hoisting/pack_weights.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "reel/core/graph/graph_rewriter.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/products/packed.h"
#include "reel/core/ops/products/products.h"
#include "reel/trace/passes/analysis/row_axes.h"
#include "reel/trace/passes/support/loop_leaves.h"
#include "reel/trace/passes/support/sub_graphs.h"

namespace reel {
namespace {

/// Returns true if the body sees another form of the type once entries have finished: it has the
/// entries, or a ragged dim with lengths over them, with or without the entries themselves.
bool changes_with_entries(const LoopAttrs& attrs, const TensorType& type) {
  return std::ranges::any_of(attrs.entries.dims, [&](const Dim& entry) {
    return contains(type.dims(), entry) || has_lengths_over(type, entry);
  });
}

/// Returns true if packed_dot reads all of the matrix whenever the body runs. Returns false if its
/// columns are the rows of the loop's state, which may run in row blocks (row_cut.h), or
/// entries that finish.
bool may_pack(const LoopAttrs& attrs, const DotAttrs& dot, const TensorType& a,
              const TensorType& matrix) {
  if (!can_be_packed(dot, a, matrix)) return false;
  if (changes_with_entries(attrs, matrix)) return false;
  const Graph& body = *attrs.body.graph;
  const std::vector<TensorType> carries = body.types_of(body_inputs(attrs).carries);
  const std::optional<Dim> rows = dim_of_rows(attrs, carries);
  return !rows || !rows->is_named() ||
         !(matrix.dims()[static_cast<std::size_t>(1 - dot.b_contract[0])] == *rows);
}

PackedOps ops_of(Packs packs, const DotAttrs& dot, const TensorType& a, const TensorType& matrix) {
  if (packs == Packs::all) return {pack_turned_op, packed_turned_dot_op};
  return packed_ops_of(dot, a, matrix);
}

/// Packs the captures of one loop.
class Packing {
 public:
  /// inputs: the loop's, in `outside`, which receives the pack records.
  Packing(Graph& outside, LoopAttrs attrs, std::vector<ValueId>& inputs, Packs packs)
      : outside_(outside),
        attrs_(std::move(attrs)),
        inputs_(inputs),
        packs_(packs),
        body_(*attrs_.body.graph) {
    const auto captures = body_inputs(attrs_).captures;
    for (std::size_t i = 0; i < captures.size(); ++i) capture_of_[captures[i]] = i;
  }

  LoopAttrs run() {
    const Graph& body = *attrs_.body.graph;
    DimEnv names = attrs_.body.env();
    for (const OpRecord& record : body.records) {
      const InheritProvenance scope(record);
      std::vector<ValueId> in = body_.inputs_of(record);
      const auto out = body.outputs_of(record);
      const Op* op = record.op;
      if (is_pack(*op) && is_constant(in[0])) {  // from a loop inside
        body_.replace(out[0], packed(*op, in[0], get<PackAttrs>(record.attrs.get()).contract));
        continue;
      }
      // Products over all time steps of a chunk have enough rows without packing.
      if (op == &dot_op && !attrs_.chunking.over_chunks && is_constant(in[1]) &&
          !is_constant(in[0])) {
        const auto& dot = get<DotAttrs>(record.attrs.get());
        const TensorType &a = body.types[in[0]], &matrix = body.types[in[1]];
        if (may_pack(attrs_, dot, a, matrix)) {
          const PackedOps ops = ops_of(packs_, dot, a, matrix);
          in[1] = packed(ops.pack, in[1], dot.b_contract[0]);
          op = &ops.dot;
        }
      }
      body_.to().append(*op, record.attrs, in, out);
    }
    attrs_.body = make_sub_graph(body_.finish(), names);
    return std::move(attrs_);
  }

 private:
  /// Returns true for a capture that is the same in every iteration, whichever entries have
  /// finished.
  bool is_constant(ValueId v) const {
    return capture_of_.count(v) && !changes_with_entries(attrs_, body_.to().types[v]);
  }

  /// Returns the body's capture of the packed matrix; packs it if it is new.
  ValueId packed(const Op& pack, ValueId capture, int contract) {
    auto [it, is_new] = packed_.try_emplace({&pack, capture, contract}, 0);
    if (!is_new) return it->second;
    const ValueId given = body_capture(attrs_, inputs_, capture_of_.at(capture));
    const ValueId made = outside_.add_value(outside_.types[given]);
    outside_.append(pack, make_attrs(PackAttrs{contract}), {{given}}, {{made}});
    it->second = body_.to().add_value(body_.to().types[capture]);
    add_body_capture(attrs_, inputs_, made, body_.to(), it->second);
    return it->second;
  }

  Graph& outside_;
  LoopAttrs attrs_;
  std::vector<ValueId>& inputs_;
  Packs packs_;
  GraphRewriter body_;
  std::map<ValueId, std::size_t> capture_of_;  ///< value -> its place among the body's captures
  std::map<std::tuple<const Op*, ValueId, int>, ValueId> packed_;
};

}  // namespace

Packs packs_of(const Passes& passes) {
  if (!passes.pack_weights) return Packs::none;
  return passes.pack_small ? Packs::all : Packs::large;
}

SumOrder order_in_steps(const LoopAttrs& attrs, const DotAttrs& dot, const TensorType& a,
                        const TensorType& matrix, Packs packs) {
  if (packs == Packs::none || !may_pack(attrs, dot, a, matrix)) return dot_order(dot, a, matrix);
  return packed_order(ops_of(packs, dot, a, matrix).dot, dot, a, matrix);
}

Ref<Graph> pack_weights(const Graph& graph, Packs packs) {
  GraphRewriter to(graph);
  for (const OpRecord& record : graph.records) {
    std::vector<ValueId> inputs = to.inputs_of(record);
    AttrsRef attrs = with_all_sub_graphs(
        record, [&](const Graph& inside) { return pack_weights(inside, packs); });
    if (record.op == &loop_op)
      attrs = make_attrs(Packing(to.to(), get<LoopAttrs>(attrs.get()), inputs, packs).run());
    to.keep(record, attrs, inputs);
  }
  return to.finish();
}

}  // namespace reel
