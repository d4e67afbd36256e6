#include "reel/trace/passes/row_axes.h"

#include <algorithm>

#include "reel/core/ops/creation.h"
#include "reel/core/ops/element_loop.h"
#include "reel/core/ops/fused.h"
#include "reel/core/ops/join.h"
#include "reel/core/ops/packed.h"
#include "reel/core/ops/products.h"
#include "reel/core/ops/reduce.h"
#include "reel/core/ops/shape.h"

namespace reel {

bool has_lengths_over(const TensorType& type, const Dim& dim) {
  return dim.is_named() &&
         std::any_of(type.dims().begin(), type.dims().end(),
                     [&](const Dim& axis) { return contains(axis.length_dims(), dim); });
}

RowAxes::RowAxes(const Graph& graph, const Dim& rows)
    : graph_(graph),
      rows_(rows),
      axes_(graph.types.size(), kNone),
      is_uniform_(graph.types.size(), 0) {}

void RowAxes::follow() {
  for (const OpRecord& record : graph_.records) {
    const auto in = graph_.inputs_of(record), out = graph_.outputs_of(record);
    if (record.op == &full_op) is_uniform_[out[0]] = 1;
    int axis = kNone;
    const auto is = [&](int kind) {
      return std::any_of(in.begin(), in.end(), [&](ValueId v) { return axes_[v] == kind; });
    };
    if (record.op->has_effect || has_effects(record) || is(kMixed) || is(kSummed))
      axis = kMixed;
    else if (!std::all_of(in.begin(), in.end(), [&](ValueId v) { return axes_[v] == kNone; }))
      axis = axis_of(record);
    for (const ValueId v : out) {
      // What has rows without being made of such may be anything, unless it is one number.
      const bool has_others = axis == kNone && record.op != &fused_op && !is_uniform_[v] &&
                              rows_.is_named() && contains(type(v).dims(), rows_);
      axes_[v] = has_others || has_lengths_over(type(v), rows_) ? kMixed : axis;
    }
    if (record.op == &fused_op && axis != kMixed) follow_fused(record);
    const bool is_mixed =
        std::any_of(out.begin(), out.end(), [&](ValueId v) { return axes_[v] == kMixed; });
    if (is_mixed && !first_mixing_) first_mixing_ = is(kSummed) ? summing_op(in) : record.op;
  }
}

/// The op that made a sum over rows, of which something else was made: that is what mixes them.
const Op* RowAxes::summing_op(std::span<const ValueId> in) const {
  for (const OpRecord& record : graph_.records)
    for (const ValueId v : graph_.outputs_of(record))
      if (axes_[v] == kSummed && std::find(in.begin(), in.end(), v) != in.end()) return record.op;
  return nullptr;
}

/// Of an op whose inputs have rows, or not, and whose outputs all have them in one place.
int RowAxes::axis_of(const OpRecord& record) const {
  const auto in = graph_.inputs_of(record);
  const TensorType& result = type(graph_.outputs_of(record)[0]);
  if (element_loop(*record.op)) return of_elements(in, result);
  if (record.op == &fused_op) return kNone;  // follow_fused() says where
  if (record.op == &dot_op || is_packed_dot(*record.op)) return of_product(record, in);
  if (record.op == &concat_op) return of_concat(record, in);
  const int axis = axes_[in[0]];
  if (record.op == &full_like_op) return axis;
  if (record.op == &split_op)
    return get<SplitAttrs>(record.attrs.get()).axis == axis ? kMixed : axis;
  if (record.op == &rename_op)
    return get<RenameAttrs>(record.attrs.get()).axis == axis ? kMixed : axis;
  if (record.op == &spread_op) {
    int place = axis;
    for (const int added : get<SpreadAttrs>(record.attrs.get()).axes) place += added <= place;
    return place;
  }
  for (const Op* op : {&sum_op, &prod_op, &max_op, &min_op, &logsumexp_op})
    if (record.op == op) {
      const std::vector<int>& reduced = get<ReduceAttrs>(record.attrs.get()).axes;
      if (has(reduced, axis)) return op == &sum_op ? kSummed : kMixed;
      return axis - static_cast<int>(std::count_if(reduced.begin(), reduced.end(),
                                                   [&](int other) { return other < axis; }));
    }
  if (record.op == &softmax_op || record.op == &log_softmax_op)
    return has(get<ReduceAttrs>(record.attrs.get()).axes, axis) ? kMixed : axis;
  return kMixed;
}

/// Element-wise ops: rows meet rows, or what is the same along them.
int RowAxes::of_elements(std::span<const ValueId> in, const TensorType& result) const {
  int place = kNone;
  for (const ValueId v : in) {
    if (axes_[v] == kNone) continue;
    const int here = result.is_named()
                         ? find(result.dims(), type(v).dims()[static_cast<std::size_t>(axes_[v])])
                         : axes_[v] + result.rank() - type(v).rank();
    if (place != kNone && here != place) return kMixed;
    place = here;
  }
  for (const ValueId v : in) {
    if (axes_[v] != kNone) continue;
    if (result.is_named()) {
      if (!is_uniform_[v] &&
          find(type(v).dims(), result.dims()[static_cast<std::size_t>(place)]) >= 0)
        return kMixed;
      continue;
    }
    const int axis = place - (result.rank() - type(v).rank());
    if (axis >= 0 && type(v).sizes()[static_cast<std::size_t>(axis)] != 1) return kMixed;
  }
  return place;
}

/// A free axis of one operand, or a pair of axes that both run along, or are summed over.
int RowAxes::of_product(const OpRecord& record, std::span<const ValueId> in) const {
  const auto& dot = get<DotAttrs>(record.attrs.get());
  const int a = axes_[in[0]], b = axes_[in[1]];
  if (a != kNone && b != kNone) {
    for (std::size_t i = 0; i < dot.a_batch.size(); ++i)
      if (dot.a_batch[i] == a) return dot.b_batch[i] == b ? static_cast<int>(i) : kMixed;
    for (std::size_t i = 0; i < dot.a_contract.size(); ++i)
      if (dot.a_contract[i] == a) return dot.b_contract[i] == b ? kSummed : kMixed;
    return kMixed;
  }
  const bool is_a = a != kNone;
  const int axis = is_a ? a : b;
  const auto& contract = is_a ? dot.a_contract : dot.b_contract;
  const auto& batch = is_a ? dot.a_batch : dot.b_batch;
  if (has(contract, axis) || has(batch, axis)) return kMixed;
  int place = static_cast<int>(batch.size());
  if (!is_a)
    place += type(in[0]).rank() - static_cast<int>(dot.a_contract.size() + dot.a_batch.size());
  for (int other = 0; other < axis; ++other) place += !has(contract, other) && !has(batch, other);
  return place;
}

int RowAxes::of_concat(const OpRecord& record, std::span<const ValueId> in) const {
  const int axis = axes_[in[0]];
  const bool is_same =
      std::all_of(in.begin(), in.end(), [&](ValueId v) { return axes_[v] == axis; });
  return is_same && get<ConcatAttrs>(record.attrs.get()).axis != axis ? axis : kMixed;
}

void RowAxes::follow_fused(const OpRecord& record) {
  const auto in = graph_.inputs_of(record), out = graph_.outputs_of(record);
  const Graph& body = *get<FusedAttrs>(record.attrs.get()).body.graph;
  RowAxes inside(body, rows_);
  for (std::size_t i = 0; i < in.size(); ++i) {
    inside.seed(body.inputs[i], axes_[in[i]]);
    inside.is_uniform_[body.inputs[i]] = is_uniform_[in[i]];
  }
  inside.follow();
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (axes_[out[k]] == kMixed) continue;
    axes_[out[k]] = inside[body.outputs[k]];
    if (axes_[out[k]] == kMixed && !first_mixing_) first_mixing_ = inside.first_mixing_;
  }
}

Dim entry_dim(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  return attrs.has_lengths ? inputs[attrs.has_bound].dims()[0] : attrs.entry_dims[0];
}

RowAxes entry_rows(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  const Dim entry = entry_dim(attrs, inputs);
  DimEnv env = body_env(attrs, inputs);
  const auto axis_in = [&](ValueId v) {
    const TensorType type = env.resolve(body.types[v]);
    return type.is_list() || has_lengths_over(type, entry) ? RowAxes::kMixed
                                                           : find(type.dims(), entry);
  };
  Dim rows = entry;
  for (const ValueId v : body.inputs)
    if (const int axis = axis_in(v); axis >= 0)
      rows = body.types[v].dims()[static_cast<std::size_t>(axis)];
  RowAxes result(body, rows);
  for (const ValueId v : body.inputs) result.seed(v, axis_in(v));
  result.follow();
  return result;
}

}  // namespace reel
