#include "reel/trace/executors/plan/row_cut.h"

#include <algorithm>

#include "reel/core/ops/element_loop.h"
#include "reel/core/ops/fused.h"
#include "reel/core/ops/join.h"
#include "reel/core/ops/packed.h"
#include "reel/core/ops/products.h"
#include "reel/core/ops/reduce.h"
#include "reel/trace/executors/plan/types.h"

namespace reel {
namespace {

/// So many rows of a product reach the speed of many.
constexpr std::int64_t kRows = 8;
/// Multiplications per row and iteration from which on a block is worth its own walk through the
/// body.
constexpr std::int64_t kWork = 16 * 1024;

constexpr int kNone = -1;

/// Follows the axis of the rows through a graph.
class Tracker {
 public:
  explicit Tracker(const Graph& graph) : axes(graph.types.size(), kNone), graph_(graph) {}

  std::vector<int> axes;  ///< by value: where the rows are, or kNone

  /// -> whether every op treats each row for itself.
  bool run() {
    return std::all_of(graph_.records.begin(), graph_.records.end(),
                       [&](const OpRecord& record) { return follow(record); });
  }

 private:
  const TensorType& type(ValueId v) const { return graph_.types[v]; }

  bool follow(const OpRecord& record) {
    const auto in = graph_.inputs_of(record), out = graph_.outputs_of(record);
    if (record.op->has_effect || has_effects(record)) return false;
    if (std::all_of(in.begin(), in.end(), [&](ValueId v) { return axes[v] == kNone; })) return true;
    const std::optional<int> axis = follow(record, in, type(out[0]));
    if (!axis) return false;
    for (const ValueId v : out) axes[v] = *axis;
    if (record.op == &fused_op) return follow_fused(record, in, out);
    return true;
  }

  /// Of ops whose outputs all have the rows in one place.
  std::optional<int> follow(const OpRecord& record, std::span<const ValueId> in,
                            const TensorType& result) const {
    if (element_loop(*record.op)) return meet(in, result);
    if (record.op == &fused_op) return 0;  // follow_fused() says where
    if (record.op == &dot_op || record.op == &packed_dot_op)
      return of_product(get<DotAttrs>(record.attrs.get()), in);
    const int axis = axes[in[0]];
    if (record.op == &split_op)
      return get<SplitAttrs>(record.attrs.get()).axis == axis ? std::nullopt : std::optional(axis);
    if (record.op == &concat_op) {
      const bool is_same =
          std::all_of(in.begin(), in.end(), [&](ValueId v) { return axes[v] == axis; });
      return is_same && get<ConcatAttrs>(record.attrs.get()).axis != axis ? std::optional(axis)
                                                                          : std::nullopt;
    }
    if (record.op == &spread_op) {
      int place = axis;
      for (const int added : get<SpreadAttrs>(record.attrs.get()).axes) place += added <= place;
      return place;
    }
    for (const Op* op : {&sum_op, &prod_op, &max_op, &min_op, &logsumexp_op})
      if (record.op == op) {
        const std::vector<int>& reduced = get<ReduceAttrs>(record.attrs.get()).axes;
        if (has(reduced, axis)) return std::nullopt;
        return axis - static_cast<int>(std::count_if(reduced.begin(), reduced.end(),
                                                     [&](int other) { return other < axis; }));
      }
    if (record.op == &softmax_op || record.op == &log_softmax_op)
      return has(get<ReduceAttrs>(record.attrs.get()).axes, axis) ? std::nullopt
                                                                  : std::optional(axis);
    return std::nullopt;
  }

  /// Element-wise ops: rows meet rows, or what repeats along them.
  std::optional<int> meet(std::span<const ValueId> in, const TensorType& result) const {
    int place = kNone;
    for (const ValueId v : in) {
      if (axes[v] == kNone) continue;
      const int here = result.is_named()
                           ? find(result.dims(), type(v).dims()[static_cast<std::size_t>(axes[v])])
                           : axes[v] + result.rank() - type(v).rank();
      if (place != kNone && here != place) return std::nullopt;
      place = here;
    }
    for (const ValueId v : in) {
      if (axes[v] != kNone) continue;
      if (result.is_named()) {
        if (find(type(v).dims(), result.dims()[static_cast<std::size_t>(place)]) >= 0)
          return std::nullopt;
        continue;
      }
      const int axis = place - (result.rank() - type(v).rank());
      if (axis >= 0 && type(v).sizes()[static_cast<std::size_t>(axis)] != 1) return std::nullopt;
    }
    return place;
  }

  /// A free axis of one operand, or a pair of axes that both run along.
  std::optional<int> of_product(const DotAttrs& dot, std::span<const ValueId> in) const {
    const int a = axes[in[0]], b = axes[in[1]];
    if (a != kNone && b != kNone) {
      for (std::size_t i = 0; i < dot.a_batch.size(); ++i)
        if (dot.a_batch[i] == a)
          return dot.b_batch[i] == b ? std::optional(static_cast<int>(i)) : std::nullopt;
      return std::nullopt;
    }
    const bool is_a = a != kNone;
    const int axis = is_a ? a : b;
    const auto& contract = is_a ? dot.a_contract : dot.b_contract;
    const auto& batch = is_a ? dot.a_batch : dot.b_batch;
    if (has(contract, axis) || has(batch, axis)) return std::nullopt;
    int place = static_cast<int>(batch.size());
    if (!is_a)
      place += type(in[0]).rank() - static_cast<int>(dot.a_contract.size() + dot.a_batch.size());
    for (int other = 0; other < axis; ++other) place += !has(contract, other) && !has(batch, other);
    return place;
  }

  bool follow_fused(const OpRecord& record, std::span<const ValueId> in,
                    std::span<const ValueId> out) {
    const Graph& body = *get<FusedAttrs>(record.attrs.get()).body.graph;
    Tracker inside(body);
    for (std::size_t i = 0; i < in.size(); ++i) inside.axes[body.inputs[i]] = axes[in[i]];
    if (!inside.run()) return false;
    for (std::size_t k = 0; k < out.size(); ++k) axes[out[k]] = inside.axes[body.outputs[k]];
    return true;
  }

  const Graph& graph_;
};

/// Multiplications of one iteration.
std::int64_t work_of(const Graph& body, const PlannedTypes& types) {
  std::int64_t work = 0;
  for (const OpRecord& record : body.records) {
    if (record.op != &dot_op && record.op != &packed_dot_op) continue;
    const auto in = body.inputs_of(record);
    const TensorType& a = types.types[in[0]];
    std::int64_t inner = 1;
    for (const int axis : get<DotAttrs>(record.attrs.get()).a_contract)
      inner *= a.sizes()[static_cast<std::size_t>(axis)];
    work += types.types[body.outputs_of(record)[0]].numel() * inner;
  }
  return work;
}

std::vector<std::int64_t> blocks_of(std::int64_t rows) {
  std::vector<std::int64_t> blocks;
  const std::int64_t count = rows / kRows;
  for (std::int64_t i = 0; i < count; ++i)
    blocks.push_back(rows * (i + 1) / count - rows * i / count);
  return blocks;
}

}  // namespace

std::optional<RowCut> find_row_cut(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  if (!attrs.is_full || attrs.cond || attrs.has_lengths || attrs.sums || attrs.makes_dim ||
      attrs.carries == 0)
    return std::nullopt;
  std::optional<Dim> rows;
  for (int i = 0; i < attrs.carries && !rows; ++i) {
    const TensorType& carry = inputs[attrs.first_carry() + i];
    if (carry.is_list()) return std::nullopt;
    if (carry.rank() > 0) rows = carry.dims()[0];
  }
  if (!rows || rows->is_ragged() || rows->size() < 2 * kRows) return std::nullopt;

  RowCut cut{*rows, std::vector<std::uint8_t>(inputs.size()), {}, blocks_of(rows->size())};
  Tracker tracker(body);
  std::vector<TensorType> types{TensorType(i64)};
  std::size_t input = 1;  // of the body: the position has none
  const auto mark = [&](std::size_t i, const TensorType& seen, bool may_have_rows) {
    types.push_back(seen);
    const ValueId v = body.inputs[input++];
    const int axis = find(seen.dims(), *rows);
    if (!rows->is_named() && (!may_have_rows || axis != 0)) return true;
    if (axis < 0) return true;
    cut.has_rows[i] = 1;
    tracker.axes[v] = 0;
    return axis == 0;
  };
  for (int i = 0; i < attrs.carries; ++i)
    if (!mark(attrs.first_carry() + i, inputs[attrs.first_carry() + i], true)) return std::nullopt;
  for (int i = 0; i < attrs.slices; ++i) {
    const TensorType& slices = inputs[attrs.first_slice() + i];
    if (slices.is_list() || !mark(attrs.first_slice() + i, slice_type(slices), true))
      return std::nullopt;
  }
  for (const int capture : attrs.body_captures) {
    const std::size_t i = attrs.first_capture() + static_cast<std::size_t>(capture);
    if (inputs[i].is_list() || !mark(i, inputs[i], false)) return std::nullopt;
  }
  if (!tracker.run()) return std::nullopt;
  for (int i = 0; i < attrs.carries; ++i) {
    const int axis = tracker.axes[body.outputs[static_cast<std::size_t>(i)]];
    if (axis != tracker.axes[body.inputs[static_cast<std::size_t>(1 + i)]]) return std::nullopt;
    cut.carry_has_rows.push_back(axis == 0);
  }
  for (int j = 0; j < attrs.stacks; ++j)
    if (attrs.is_list(j) ||
        tracker.axes[body.outputs[static_cast<std::size_t>(attrs.carries + j)]] != 0)
      return std::nullopt;
  if (work_of(body, plan_types(body, types, attrs.body.env())) < kWork * rows->size())
    return std::nullopt;
  return cut;
}

LoopAttrs on_rows(const LoopAttrs& attrs, const Dim& whole, const Dim& part) {
  LoopAttrs result = attrs;
  for (auto& [symbol, actual] : result.body.bindings)
    if (actual == whole) actual = part;
  return result;
}

}  // namespace reel
