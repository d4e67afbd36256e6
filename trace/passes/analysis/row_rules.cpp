#include "reel/trace/passes/analysis/row_rules.h"

#include <algorithm>

#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/creation/draw_checks.h"
#include "reel/core/ops/indexing/sort.h"
#include "reel/core/ops/reductions/cumulative.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/merge.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/stride.h"
#include "reel/trace/passes/analysis/row_axes.h"

namespace reel {
namespace {

constexpr int kMixed = RowAxes::kMixed;

bool is_one_of(const Op* op, std::initializer_list<const Op*> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

/// Returns the axis that an op works along, if it leaves the other axes as they are.
std::optional<int> worked_axis(const Op* op, const Attrs* attrs) {
  if (is_one_of(op, {&slice_op, &slice_unknown_op, &unslice_op}))
    return get<SliceAttrs>(attrs).axis;
  if (is_one_of(op, {&stride_op, &stride_unknown_op, &unstride_op}))
    return get<StrideAttrs>(attrs).axis;
  if (is_one_of(op, {&cumsum_op, &product_before_op, &recurrence_op}))
    return get<CumulativeAttrs>(attrs).axis;
  if (op == &pad_op) return get<PadAttrs>(attrs).axis;
  if (op == &shift_op) return get<ShiftAttrs>(attrs).axis;
  if (op == &reverse_op) return get<ReverseAttrs>(attrs).axis;
  if (op == &concat_op) return get<ConcatAttrs>(attrs).axis;
  if (op == &unconcat_op) return get<UnconcatAttrs>(attrs).axis;
  if (op == &split_op) return get<SplitAttrs>(attrs).axis;
  if (op == &rename_op) return get<RenameAttrs>(attrs).axis;
  if (op == &argsort_op) return get<SortAttrs>(attrs).axis;
  return std::nullopt;
}

/// Axes first to first + count - 1 become `result` axes, and each new axis depends on all old ones.
int beside(int axis, int first, int count, int result) {
  return axis < first ? axis : axis < first + count ? kMixed : axis - count + result;
}

int place_of(const std::vector<int>& axes, int axis) {
  const auto found = std::find(axes.begin(), axes.end(), axis);
  return found == axes.end() ? kMixed : static_cast<int>(found - axes.begin());
}

/// Returns the number of elements before `axis`; -1 if only a run knows it.
std::int64_t size_before(const TensorType& type, int axis) {
  std::int64_t size = 1;
  for (int i = 0; i < axis; ++i) {
    const Dim& dim = type.dims()[static_cast<std::size_t>(i)];
    if (!dim.has_size()) return -1;
    size *= dim.size();
  }
  return size;
}

/// Returns the axis of the result with the same elements in each row as in x; kMixed if there is
/// none.
int after_reshape(const TensorType& x, int axis, const TensorType& result) {
  const Dim& rows = x.dims()[static_cast<std::size_t>(axis)];
  for (int i = 0; i < result.rank(); ++i) {
    if (!(result.dims()[static_cast<std::size_t>(i)] == rows)) continue;
    const bool is_same_before =
        i == axis && std::equal(x.dims().begin(), x.dims().begin() + axis, result.dims().begin());
    const std::int64_t before = size_before(x, axis);
    if (is_same_before || (before >= 0 && size_before(result, i) == before)) return i;
  }
  return kMixed;
}

int after_reduction(const OpRecord& record, int axis) {
  const std::vector<int>& reduced = get<ReduceAttrs>(record.attrs.get()).axes;
  if (has(reduced, axis)) return record.op == &sum_op ? RowAxes::kSummed : kMixed;
  return axis - static_cast<int>(std::count_if(reduced.begin(), reduced.end(),
                                               [&](int other) { return other < axis; }));
}

}  // namespace

int rows_after(const OpRecord& record, const TensorType& x, int axis, const TensorType& result) {
  const Op* op = record.op;
  const Attrs* attrs = record.attrs.get();
  if (const auto worked = worked_axis(op, attrs)) return *worked == axis ? kMixed : axis;
  if (op == &full_like_op || op == &one_hot_op) return axis;
  if (op == &transpose_op) return place_of(get<TransposeAttrs>(attrs).order, axis);
  if (op == &expand_op) return place_of(get<ExpandAttrs>(attrs).from, axis);
  if (op == &reshape_op) {
    const int place = after_reshape(x, axis, result);
    return place < 0 || result.is_named() || with_open_axis(result, place) ? place : kMixed;
  }
  if (op == &stack_op) return axis + 1;
  if (op == &unstack_op) return axis == 0 ? kMixed : axis - 1;
  if (op == &spread_op) {
    int place = axis;
    for (const int added : get<SpreadAttrs>(attrs).axes) place += added <= place;
    return place;
  }
  if (op == &merge_dims_op) {
    const auto& merged = get<MergeDimsAttrs>(attrs);
    return beside(axis, merged.axis, merged.count, 1);
  }
  if (op == &split_dim_op) {
    const auto& split = get<SplitDimAttrs>(attrs);
    return beside(axis, split.axis, 1, static_cast<int>(split.parts.size()));
  }
  if (op == &top_k_op) {
    const auto& best = get<TopKAttrs>(attrs);
    return beside(axis, best.axis, best.count, 1);
  }
  if (is_one_of(op, {&sum_op, &prod_op, &max_op, &min_op, &logsumexp_op, &argmax_op, &argmin_op,
                     &any_op, &all_op}))
    return after_reduction(record, axis);
  if (op == &softmax_op || op == &log_softmax_op || op == &checked_logits_op)
    return has(get<ReduceAttrs>(attrs).axes, axis) ? kMixed : axis;
  return kMixed;
}

bool is_extreme_of(const OpRecord& record, int axis) {
  return is_one_of(record.op, {&max_op, &min_op, &any_op, &all_op}) &&
         has(get<ReduceAttrs>(record.attrs.get()).axes, axis);
}

AttrsRef with_open_axis(const TensorType& result, int axis) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < result.rank(); ++i) {
    const Dim& dim = result.dims()[static_cast<std::size_t>(i)];
    if (i != axis && !dim.has_size()) return {};
    sizes.push_back(i == axis ? -1 : dim.size());
  }
  return make_attrs(ReshapeAttrs{std::move(sizes), {}});
}

}  // namespace reel
