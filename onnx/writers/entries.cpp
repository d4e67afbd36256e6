#include "reel/onnx/writers/entries.h"

#include <algorithm>
#include <numeric>

#include "reel/core/ops.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {

std::optional<EntryWriter::Mask> EntryWriter::mask_of(const TensorType& type) {
  if (type.is_list() || !type.is_named()) return std::nullopt;
  Mask mask{running_, {}};
  std::vector<int> missing;
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (contains(type.dims(), dims_[i]))
      mask.dims.push_back(dims_[i]);
    else
      missing.push_back(static_cast<int>(i));
  }
  if (mask.dims.empty()) return std::nullopt;
  mask.name = to_.any(running_, missing);
  return mask;
}

EntryWriter::Rows EntryWriter::rows_of(const Name& x, const TensorType& type, const Mask& mask) {
  Rows rows;
  for (const Dim& dim : mask.dims) rows.order.push_back(find(type.dims(), dim));
  for (int axis = 0; axis < type.rank(); ++axis)
    if (!std::count(rows.order.begin(), rows.order.end(), axis)) rows.order.push_back(axis);
  rows.x = to_.transpose(x, rows.order);
  rows.mask = mask.name;
  const auto entries = static_cast<int>(mask.dims.size());
  if (entries > 1) {
    rows.shape = to_.add("Shape", {rows.x});
    // The size -1 does not go together with sizes of 0.
    const Name of_entries = to_.add("Shape", {rows.x}, {{"end", integer(entries)}});
    Names sizes{to_.add("ReduceProd", {of_entries}, {{"keepdims", integer(1)}})};
    if (type.rank() > entries)
      sizes.push_back(to_.add("Shape", {rows.x}, {{"start", integer(entries)}}));
    rows.x = to_.add("Reshape", {rows.x, to_.concat(sizes, 0)}, {{"allowzero", integer(1)}});
    rows.mask = to_.add("Reshape", {rows.mask, to_.model().integers({-1})});
  }
  rows.rank = type.rank() - entries + 1;
  rows.first = to_.add("ArgMax", {to_.cast(rows.mask, i32)}, {{"axis", integer(0)}});
  std::vector<int> behind;
  for (int i = 1; i < rows.rank; ++i) behind.push_back(i);
  rows.mask = to_.unsqueeze(rows.mask, behind);
  return rows;
}

Name EntryWriter::from_rows(const Rows& rows, const Name& result) {
  const Name split = rows.shape.empty()
                         ? result
                         : to_.add("Reshape", {result, rows.shape}, {{"allowzero", integer(1)}});
  std::vector<int> back(rows.order.size());
  for (std::size_t i = 0; i < back.size(); ++i)
    back[static_cast<std::size_t>(rows.order[i])] = static_cast<int>(i);
  return to_.transpose(split, back);
}

Name EntryWriter::seen(const Name& x, const TensorType& type, FinishedFill fill) {
  if (fill == FinishedFill::as_is) return x;
  if (fill == FinishedFill::zero) return zero_finished(x, type);
  const std::optional<Mask> mask = mask_of(type);
  if (!mask) return x;
  const Rows rows = rows_of(x, type, *mask);
  const Name row = to_.add("Gather", {rows.x, rows.first}, {{"axis", integer(0)}});
  return from_rows(rows, to_.where(rows.mask, rows.x, row, type.dtype()));
}

Name EntryWriter::collected(const Name& x, const TensorType& type) {
  const std::optional<Mask> mask = mask_of(type);
  if (!mask) return x;
  const Rows rows = rows_of(x, type, *mask);
  const Name own = to_.add("Where", {rows.mask, rows.x, zero(type)});
  const Name others = to_.add("Where", {rows.mask, zero(type), rows.x});
  const Name total = to_.add("ReduceSum", {others, to_.model().integers({0})});
  // Adds the sum to one row: updates at the first running entry.
  const Name count = to_.add("Shape", {rows.x}, {{"end", integer(1)}});
  const Name places =
      to_.add("Range", {to_.model().integer(0), to_.squeeze(count, {0}), to_.model().integer(1)});
  std::vector<int> behind;
  for (int i = 1; i < rows.rank; ++i) behind.push_back(i);
  const Name is_first = to_.unsqueeze(to_.add("Equal", {places, rows.first}), behind);
  const Name moved = to_.add("Where", {is_first, total, zero(type)});
  return from_rows(rows, to_.add("Add", {own, moved}));
}

Name EntryWriter::zero_finished(const Name& x, const TensorType& type) {
  const std::optional<Mask> mask = mask_of(type);
  if (!mask) return x;
  return to_.where(
      to_.aligned(mask->name, mask->dims, type.dims()), x,
      type.dtype() == boolean ? to_.model().constant(full({}, false, boolean)) : zero(type),
      type.dtype());
}

Name EntryWriter::keep_finished(const Name& next, const Name& before, const TensorType& type) {
  const std::optional<Mask> mask = mask_of(type);
  if (!mask) return next;
  return to_.where(to_.aligned(mask->name, mask->dims, type.dims()), next, before, type.dtype());
}

// ---- The ops fill_running and collect_running: vmap records them before branches ----------------

namespace {

/// Returns the mask of a record; the value has the mask's dims in front. If no entry is running,
/// the result is true for all entries, so that all keep their values.
Name mask_of_record(const WriteCall& call) {
  GraphWriter& to = call.to;
  std::vector<int> axes(static_cast<std::size_t>(call.type_in(1).rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return to.add("Or", {call.in(1), to.logical_not(to.any(call.in(1), axes))});
}

/// The operands of a record with several rows, each with its own first running entry.
struct OwnRows {
  Name x, mask, first, shape;  ///< [rows, entries, elements], [rows, entries, 1], [rows, 1], of x
};
OwnRows own_rows_of(const WriteCall& call, int rows) {
  GraphWriter& to = call.to;
  const int entries = call.type_in(1).rank(), rank = call.type_in(0).rank();
  const auto size = [&](int begin, int end) {
    if (begin == end) return to.model().integers({1});
    const Name part =
        to.add("Shape", {call.in(0)}, {{"start", integer(begin)}, {"end", integer(end)}});
    return to.add("ReduceProd", {part}, {{"keepdims", integer(1)}});
  };
  const auto reshaped = [&](const Name& x, const Names& sizes) {
    return to.add("Reshape", {x, to.concat(sizes, 0)}, {{"allowzero", integer(1)}});
  };
  const Name some = size(0, rows), each = size(rows, entries);
  const Name mask = reshaped(call.in(1), {some, each});
  const Name none = to.unsqueeze(to.logical_not(to.any(mask, {1})), {1});
  return {reshaped(call.in(0), {some, each, size(entries, rank)}),
          to.unsqueeze(to.add("Or", {mask, none}), {2}),
          to.add("ArgMax", {to.cast(mask, i32)}, {{"axis", integer(1)}}),
          to.add("Shape", {call.in(0)})};
}
Name with_shape_of(const WriteCall& call, const OwnRows& of, const Name& x) {
  return call.to.add("Reshape", {x, of.shape}, {{"allowzero", integer(1)}});
}

Names fill_own_rows(const WriteCall& call, int rows) {
  GraphWriter& to = call.to;
  const OwnRows of = own_rows_of(call, rows);
  const Name row = to.add("GatherND", {of.x, of.first}, {{"batch_dims", integer(1)}});
  return {with_shape_of(call, of,
                        to.where(of.mask, of.x, to.unsqueeze(row, {1}), call.type_in(0).dtype()))};
}
Names collect_own_rows(const WriteCall& call, int rows) {
  GraphWriter& to = call.to;
  const OwnRows of = own_rows_of(call, rows);
  const Name zero = to.model().number(0, call.type_in(0).dtype());
  const Name total =
      to.add("ReduceSum", {to.add("Where", {of.mask, zero, of.x}), to.model().integers({1})});
  const Name count =
      to.squeeze(to.add("Shape", {of.mask}, {{"start", integer(1)}, {"end", integer(2)}}), {0});
  const Name places = to.add("Range", {to.model().integer(0), count, to.model().integer(1)});
  const Name is_first = to.unsqueeze(to.add("Equal", {to.unsqueeze(places, {0}), of.first}), {2});
  return {with_shape_of(call, of,
                        to.add("Add", {to.add("Where", {of.mask, of.x, zero}),
                                       to.add("Where", {is_first, total, zero})}))};
}

/// True if names do not tell the axes of the entries, or if entries lie in rows.
bool has_own_rows(const WriteCall& call) {
  return rows_of_entry_op(call.record.attrs.get()) || !call.type_in(1).is_named();
}
Names write_fill_running(const WriteCall& call) {
  const int rows = rows_of_entry_op(call.record.attrs.get());
  if (has_own_rows(call)) return fill_own_rows(call, rows);
  EntryWriter entries(call.to, mask_of_record(call), call.type_in(1).dims());
  return {entries.seen(call.in(0), call.type_in(0), FinishedFill::running)};
}
Names write_collect_running(const WriteCall& call) {
  const int rows = rows_of_entry_op(call.record.attrs.get());
  if (has_own_rows(call)) return collect_own_rows(call, rows);
  EntryWriter entries(call.to, mask_of_record(call), call.type_in(1).dims());
  return {entries.collected(call.in(0), call.type_in(0))};
}

const Writer kWriters[] = {{"fill_running", write_fill_running},
                           {"collect_running", write_collect_running}};

}  // namespace

std::span<const Writer> entry_writers() { return kWriters; }

}  // namespace reel::exported
