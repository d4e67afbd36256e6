// Writers of ops on table rows, and on elements at places that are tensors.
//
// A number or place that means no row stands for a spare row behind the last one. This row is zero
// when rows are taken, and cut off when rows are changed. Tables may be empty.
#include <algorithm>
#include <limits>

#include "reel/core/ops/indexing/row_attrs.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

Name size_of_first_axis(GraphWriter& to, const Name& x) {
  return to.add("Shape", {x}, {{"end", integer(1)}});
}

/// Returns row numbers, with the spare row's number in place of numbers beyond the table.
/// rows: i64[1].
Name with_spare_numbers(GraphWriter& to, const Name& numbers, const Name& rows) {
  const Name is_row = to.add("And", {to.add("GreaterOrEqual", {numbers, to.model().integer(0)}),
                                     to.add("Less", {numbers, rows})});
  return to.add("Where", {is_row, numbers, rows});
}

/// Returns a table with a spare row of zeros.
Name with_spare_row(GraphWriter& to, const Name& table, const TensorType& type) {
  const auto rank = static_cast<std::size_t>(type.rank());
  std::vector<std::int64_t> pads(2 * rank);
  pads[rank] = 1;
  ModelWriter& model = to.model();
  if (type.dtype() == boolean)
    return to.cast(
        to.add("Pad", {to.cast(table, i32), model.integers(pads), model.integer(0, i32)}), boolean);
  return to.add("Pad", {table, model.integers(pads), model.number(0, type.dtype())});
}
Name without_spare_row(GraphWriter& to, const Name& x) {
  ModelWriter& model = to.model();
  const Name first = model.integers({0});
  return to.add("Slice", {x, first, model.integers({-1}), first});
}

/// Returns numbers (i64[n]) repeated to the sizes of rows. Not by Expand alone: onnxruntime expands
/// a size of 1 to 0 as 1.
Name repeated(GraphWriter& to, const Name& numbers, const Name& rows, int rank) {
  std::vector<int> behind;
  for (int axis = 1; axis < rank; ++axis) behind.push_back(axis);
  if (behind.empty()) return numbers;
  const Name zeros = to.add("Expand", {to.model().integer(0, i64), to.add("Shape", {rows})});
  return to.add("Add", {to.unsqueeze(numbers, behind), zeros});
}

/// Writes or adds rows into a table that has a spare row. numbers: all are rows of it.
Name scatter(GraphWriter& to, const Name& table, const Name& numbers, const Name& rows, int rank,
             const char* reduction) {
  return to.add("ScatterElements", {table, repeated(to, numbers, rows, rank), rows},
                {{"axis", integer(0)}, {"reduction", text(reduction)}});
}

Name zeros_of(GraphWriter& to, const Name& sizes, DType dtype) {
  return to.add("Expand", {to.model().number(0, dtype), sizes});
}

// ---- Row numbers --------------------------------------------------------------------------------

/// Returns indices of a gather as numbers: flat, and -1 in padding.
Names write_row_numbers(const WriteCall& call) {
  GraphWriter& to = call.to;
  ModelWriter& model = to.model();
  const auto& attrs = call.attr<RowNumbersAttrs>();
  const Name zero = model.integer(0), rows = model.integer(attrs.rows);
  Name numbers = to.cast(call.in(0), i64);
  if (attrs.rule == IndexRule::clip)
    numbers = to.add("Min", {to.add("Max", {numbers, zero}),
                             model.integer(std::max<std::int64_t>(attrs.rows - 1, 0))});
  if (attrs.rule == IndexRule::from_end)
    numbers =
        to.add("Where", {to.add("Less", {numbers, zero}), to.add("Add", {numbers, rows}), numbers});
  numbers = to.mask_padding(numbers, call.type_in(0).with(i64), model.integer(-1));
  return {to.add("Reshape", {numbers, model.integers({-1})})};
}
/// The check itself is left out.
Names write_check_rows(const WriteCall& call) { return {call.to.cast(call.in(0), i64)}; }

// ---- Rows ---------------------------------------------------------------------------------------

Names write_take_rows(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name rows = size_of_first_axis(to, call.in(0));
  return {to.add(
      "Gather",
      {with_spare_row(to, call.in(0), call.type_in(0)), with_spare_numbers(to, call.in(1), rows)},
      {{"axis", integer(0)}})};
}

/// Returns the table with changed rows. numbers: the spare row's number
/// stands for no row.
Name changed(const WriteCall& call, const Name& table, const TensorType& type, const Name& numbers,
             const char* reduction) {
  GraphWriter& to = call.to;
  return without_spare_row(to, scatter(to, with_spare_row(to, table, type), numbers, call.in(2),
                                       type.rank(), reduction));
}

Names write_add_rows(const WriteCall& call) {
  const Name rows = size_of_first_axis(call.to, call.in(0));
  return {changed(call, call.in(0), call.type_in(0), with_spare_numbers(call.to, call.in(1), rows),
                  "add")};
}

/// If numbers are equal, the last of their rows is written. ONNX leaves their order open, so the
/// other rows go to the spare row.
Names write_put_rows(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& type = call.type_in(0);
  const int axes = axes_of_rows(call.record.attrs.get());
  Name table = call.in(0);
  // With several axes of rows, the table is written with these as one. Their sizes are known.
  std::vector<std::int64_t> sizes{1};
  for (int axis = 0; axis < axes; ++axis) sizes[0] *= type.sizes()[static_cast<std::size_t>(axis)];
  sizes.insert(sizes.end(), type.sizes().begin() + axes, type.sizes().end());
  if (axes > 1) table = to.add("Reshape", {table, to.model().integers(sizes)});
  const Name rows = size_of_first_axis(to, table);
  Name numbers = with_spare_numbers(to, call.in(1), rows);
  if (known_size(call.type_in(1).dims()[0]) != 1) {
    const Name count = to.squeeze(size_of_first_axis(to, numbers), {0});
    const Name places = to.add("Range", {to.model().integer(0), count, to.model().integer(1)});
    const Name is_equal = to.add("Equal", {to.unsqueeze(numbers, {1}), to.unsqueeze(numbers, {0})});
    const Name is_later = to.add("Less", {to.unsqueeze(places, {1}), to.unsqueeze(places, {0})});
    const Name is_overwritten = to.any(to.add("And", {is_equal, is_later}), {1});
    numbers = to.add("Where", {is_overwritten, rows, numbers});
  }
  if (axes == 1) return {changed(call, table, type, numbers, "none")};
  const Name result = changed(
      call, table, TensorType(type.dtype(), Dims(sizes.begin(), sizes.end())), numbers, "none");
  return {to.add("Reshape", {result, to.model().integers(type.sizes())})};
}

/// Results: sums of rows with equal numbers, these numbers in ascending order, and for each input
/// row its place among them.
Names write_coalesce_rows(const WriteCall& call) {
  GraphWriter& to = call.to;
  ModelWriter& model = to.model();
  const Name &values = call.in(0), &numbers = call.in(1);
  const TensorType& type = call.type_in(0);
  const std::int64_t rows = call.attr<RowCountAttrs>().rows;
  const Name first = model.integers({0}), minus_one = model.integers({-1});
  const Name count = size_of_first_axis(to, numbers);
  // Numbers that mean no row are sorted behind all others.
  const Name none = model.integers({rows < 0 ? std::numeric_limits<std::int64_t>::max() : rows});
  const Name known = with_spare_numbers(to, numbers, none);
  const Names sorted =
      to.add("TopK", {known, count}, 2, {{"axis", integer(0)}, {"largest", integer(0)}});
  // Ranks along the sorted numbers: the number of changes so far.
  const Name before = to.concat({minus_one, without_spare_row(to, sorted[0])}, 0);
  const Name previous = to.add("Slice", {before, first, count, first});
  const Name is_first = to.logical_not(to.add("Equal", {sorted[0], previous}));
  const Name ranks = to.add(
      "Sub", {to.add("CumSum", {to.cast(is_first, i64), model.integer(0)}), model.integer(1)});
  const Name is_row = to.add("Less", {sorted[0], none});
  const Name zeros = zeros_of(to, count, i64);
  const Name places =
      to.add("ScatterElements", {zeros, sorted[1], to.add("Where", {is_row, ranks, minus_one})},
             {{"axis", integer(0)}});
  const Name distinct_count = rows < 0 ? count : to.add("Min", {count, model.integers({rows})});
  const Name spare = to.add("Add", {distinct_count, model.integers({1})});
  // Ranks are below the spare row, except ranks of numbers that mean no row.
  const Name targets = to.add("Where", {is_row, ranks, distinct_count});
  const Name no_numbers = to.add("Expand", {model.integer(-1), spare});
  const Name distinct = to.add(
      "ScatterElements", {no_numbers, targets, to.add("Where", {is_row, sorted[0], minus_one})},
      {{"axis", integer(0)}});
  Name sizes = spare;
  if (type.rank() > 1)
    sizes = to.concat({spare, to.add("Shape", {values}, {{"start", integer(1)}})}, 0);
  const Name goals = with_spare_numbers(to, places, distinct_count);
  const Name sums =
      scatter(to, zeros_of(to, sizes, type.dtype()), goals, values, type.rank(), "add");
  return {without_spare_row(to, sums), without_spare_row(to, distinct), places};
}

// ---- Elements at places -------------------------------------------------------------------------

/// Returns the number of axes that a place indexes.
std::int64_t depth_of(const TensorType& places) {
  const std::int64_t depth = places.rank() < 2 ? 1 : known_size(places.dims()[1]);
  if (depth < 0) throw NotExpressible{"only a run determines how many axes a place has"};
  return depth;
}
/// A tensor with its indexed axes merged into one: the sizes, and the places as numbers of rows.
struct Merged {
  Name rows;     ///< i64[1]
  Name sizes;    ///< with the merged axis
  Name numbers;  ///< rows; the spare row's number stands for no place
};
/// sizes: of the tensor.
Merged merged_at(GraphWriter& to, const Name& sizes, int rank, const Name& places,
                 const TensorType& type) {
  ModelWriter& model = to.model();
  const std::int64_t depth = depth_of(type);
  const auto slice = [&](const Name& x, std::int64_t begin, std::int64_t end, std::int64_t axis) {
    return to.add("Slice",
                  {x, model.integers({begin}), model.integers({end}), model.integers({axis})});
  };
  Merged result;
  const Name indexed = slice(sizes, 0, depth, 0);
  result.rows = to.add("ReduceProd", {indexed}, {{"keepdims", integer(1)}});
  result.sizes =
      rank > depth ? to.concat({result.rows, slice(sizes, depth, rank, 0)}, 0) : result.rows;
  const Name columns = type.rank() < 2 ? to.unsqueeze(places, {1}) : places;
  Name flat, is_none;
  for (std::int64_t axis = 0; axis < depth; ++axis) {
    const Name place = to.squeeze(slice(columns, axis, axis + 1, 1), {1});
    const Name is_negative = to.add("Less", {place, model.integer(0)});
    flat = axis ? to.add("Add", {to.add("Mul", {flat, slice(sizes, axis, axis + 1, 0)}), place})
                : place;
    is_none = axis ? to.add("Or", {is_none, is_negative}) : is_negative;
  }
  result.numbers = to.add("Where", {is_none, result.rows, flat});
  return result;
}

Names write_scatter_places(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& updates = call.type_in(1);
  const int rank = call.type_out().rank();
  const Merged merged = merged_at(to, call.in(2), rank, call.in(0), call.type_in(0));
  const TensorType rows = updates.with(Dims(static_cast<std::size_t>(updates.rank()), Dim(0)));
  const Name table = with_spare_row(to, zeros_of(to, merged.sizes, updates.dtype()), rows);
  const Name sums = scatter(to, table, merged.numbers, call.in(1), updates.rank(), "add");
  return {
      to.add("Reshape", {without_spare_row(to, sums), call.in(2)}, {{"allowzero", integer(1)}})};
}
Names write_gather_places(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& x = call.type_in(0);
  const Merged merged =
      merged_at(to, to.add("Shape", {call.in(0)}), x.rank(), call.in(1), call.type_in(1));
  const Name rows = to.add("Reshape", {call.in(0), merged.sizes}, {{"allowzero", integer(1)}});
  return {to.add("Gather", {with_spare_row(to, rows, call.type_out()), merged.numbers},
                 {{"axis", integer(0)}})};
}
/// Places with a negative part become -1. Checks are left out.
Names write_matrix_places(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name is_negative = to.add("Less", {call.in(0), to.model().integer(0)});
  const Name is_none = to.unsqueeze(to.any(is_negative, {1}), {1});
  return {to.add("Where", {is_none, to.model().integer(-1), call.in(0)})};
}
Names write_shape_of(const WriteCall& call) { return {call.to.add("Shape", {call.in(0)})}; }

const Writer kWriters[] = {
    {"row_numbers", write_row_numbers},
    {"check_rows", write_check_rows},
    {"take_rows", write_take_rows},
    {"add_rows", write_add_rows},
    {"put_rows", write_put_rows},
    {"coalesce_rows", write_coalesce_rows},
    {"scatter_places", write_scatter_places},
    {"gather_places", write_gather_places},
    {"matrix_places", write_matrix_places},
    {"shape_of", write_shape_of},
};

}  // namespace

std::span<const Writer> row_writers() { return kWriters; }

}  // namespace reel::exported
