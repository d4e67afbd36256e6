// Reads and writes of elements by index, and ops that read the number of results from values.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/checks.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/pack.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/core/functions/updates.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/loops/fold.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t product_of(const Sizes& sizes, std::size_t begin, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = begin; i < end; ++i) product *= sizes[i];
  return product;
}

/// Returns indices as positions from the front. Throws AssertionError for one out of range: in a
/// flat position it would name another element.
Tensor from_front(const Tensor& given, const Dim& axis) {
  const Tensor index = cast(given, i64), size = value_of_size(axis).tensor;
  const std::string among = axis.has_size() ? str("an axis of ", axis.size()) : "its axis";
  assert_that(index >= -size && index < size, str("an index is within ", among), index);
  return where(index < 0, index + size, index);
}

/// How updates change elements that are written.
enum class Update { replace, add, multiply, maximum, minimum };

Update update_of(const Call& call) {
  const std::string reduction = call.text("reduction", "none");
  if (reduction == "none") return Update::replace;
  if (reduction == "add") return Update::add;
  if (reduction == "mul") return Update::multiply;
  if (reduction == "max") return Update::maximum;
  if (reduction == "min") return Update::minimum;
  call.refuse(str("the reduction ", reduction, " is not supported"));
}

/// Returns x with updates at positions of its first axis. positions: [n]; updates: [n, ...].
Tensor updated(const Tensor& x, const Tensor& positions, const Tensor& updates, Update how) {
  if (how == Update::replace) return set_at(x, positions, updates, 0);
  if (how == Update::add) return scatter_add(x, positions, updates, 0);
  if (how == Update::maximum) return scatter_max(x, positions, updates, 0);
  if (how == Update::minimum) return -scatter_max(-x, positions, -updates, 0);
  return fori_loop(
      0, positions.dim(0).size(),
      [&](const Tensor& i, const Tensor& state) {
        const Tensor at = gather(positions, i, 0);
        return set_at(state, at, gather(state, at, 0) * gather(updates, i, 0), 0);
      },
      x);
}

// ---- Gather and scatter along an axis ---------------------------------------------------------

Values run_gather(const Call& call) {
  const Tensor &x = call.tensor(0), &indices = call.tensor(1);
  Value result = call.like(0, gather(x, indices, call.axis(0)));
  if (call.in(0).sizes && call.is_known(1)) {
    const Dims& sizes = *call.in(0).sizes;
    result.sizes.emplace();
    for (const std::int64_t at : call.known_integers(1))
      result.sizes->push_back(
          sizes[static_cast<std::size_t>(call.axis_in(at, static_cast<int>(sizes.size())))]);
    if (is_known(*result.sizes))  // the elements that are read may be known although others are not
      return {indices.rank() ? Value::integers(numbers_of(*result.sizes))
                             : Value::integer(result.sizes->at(0).size())};
  }
  return {result};
}

/// Returns the number of elements from one position of an axis to the next: a scalar.
Tensor stride_of(const Dims& sizes, std::size_t axis) {
  std::int64_t known = 1;
  Tensors unknown;
  for (std::size_t i = axis + 1; i < sizes.size(); ++i)
    if (sizes[i].has_size())
      known *= sizes[i].size();
    else
      unknown.push_back(value_of_size(sizes[i]).tensor);
  Tensor stride = Value::integer(known).tensor;
  for (const Tensor& size : unknown) stride = stride * size;
  return stride;
}

/// Returns the flat positions among `sizes` of the elements of a tensor with the dims `wanted`, as
/// if they were at the front of one axis.
Tensor positions_beside(const Dims& sizes, const Dims& wanted, std::size_t axis) {
  Tensor positions = Value::integer(0).tensor;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == axis) continue;
    Dims along(sizes.size(), Dim(1));
    along[i] = wanted[i];
    positions = positions + reshape_to(range(wanted[i], i64), along) * stride_of(sizes, i);
  }
  return positions;
}

/// Returns the flat position of every element that GatherElements reads: its own position, with the
/// index along one axis.
Tensor flat_positions(const Tensor& x, const Tensor& indices, int axis) {
  const Dims &sizes = x.dims(), &wanted = indices.dims();
  const auto at = static_cast<std::size_t>(axis);
  Tensor beside;
  if (is_known(sizes) && is_known(wanted)) {
    const ModeScope aside({});
    beside = positions_beside(sizes, wanted, at);
  } else {
    beside = positions_beside(sizes, wanted, at);
  }
  return beside + from_front(indices, sizes[at]) * stride_of(sizes, at);
}

/// Throws ShapeError unless the indices have at most the sizes of x beside the axis. Checks sizes
/// that only a run knows in the run.
void check_same_rank(const Call& call, const Tensor& x, const Tensor& indices) {
  bool fits = x.rank() == indices.rank() && x.rank() > 0;
  for (int i = 0; fits && i < x.rank(); ++i) {
    const Dim &wanted = indices.dim(i), &size = x.dim(i);
    if (i == call.axis(0) || wanted == size) continue;
    if (wanted.has_size() && size.has_size())
      fits = wanted.size() <= size.size();
    else
      assert_that(value_of_size(wanted).tensor <= value_of_size(size).tensor,
                  str(call.node().op, ": indices fit axis ", i));
  }
  if (!fits)
    throw ShapeError(str(call.node().op, ": indices ", indices.type(), " do not fit ", x.type()));
}

Values run_gather_elements(const Call& call) {
  const Tensor &x = call.tensor(0), &indices = call.tensor(1);
  check_same_rank(call, x, indices);
  return {call.like(0, gather(reshape(x, {-1}), flat_positions(x, indices, call.axis(0)), 0))};
}

Values run_scatter_elements(const Call& call) {
  const Tensor &x = call.tensor(0), &indices = call.tensor(1), &updates = call.tensor(2);
  check_same_rank(call, x, indices);
  const Tensor at = reshape(flat_positions(x, indices, call.axis(0)), {-1});
  const Tensor flat = updated(reshape(x, {-1}), at, reshape(updates, {-1}), update_of(call));
  return {call.like(0, reshape_to(flat, x.dims()))};
}

// ---- Gather and scatter of slices -------------------------------------------------------------

/// Returns the flat positions of the slices that the last axis of the indices names, among axes
/// `first`, first + 1, ... of x.
Tensor slice_positions(const Call& call, const Sizes& sizes, const Tensor& indices,
                       std::size_t first) {
  const std::int64_t depth = indices.dim(-1).size();
  if (first + static_cast<std::size_t>(depth) > sizes.size())
    call.refuse(
        str("indices name ", depth, " axes behind ", first, ", but there are ", sizes.size()));
  Sizes shape = indices.shape();
  shape.pop_back();
  Tensor position = zeros(Dims(shape.begin(), shape.end()), i64);
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::int64_t size = sizes[first + static_cast<std::size_t>(i)];
    position = position * size + from_front(gather(indices, scalar(i, i64), -1), Dim(size));
  }
  return position;
}

Values run_gather_nd(const Call& call) {
  const Tensor &x = call.tensor(0), &indices = call.tensor(1);
  const Sizes sizes = x.shape(), wanted = indices.shape();
  const auto batch = static_cast<std::size_t>(call.integer("batch_dims", 0));
  if (wanted.empty() || batch >= wanted.size() || batch > sizes.size())
    call.refuse("indices do not fit");
  const auto depth = static_cast<std::size_t>(wanted.back());
  const Tensor positions = slice_positions(call, sizes, indices, batch);
  const std::int64_t rows = product_of(sizes, 0, batch);
  const Tensor flat =
      gather(reshape(x, {rows, product_of(sizes, batch, batch + depth),
                         product_of(sizes, batch + depth, sizes.size())}),
             reshape(positions, {rows, product_of(wanted, batch, wanted.size() - 1)}), 1,
             {.batch_dims = 1});
  Sizes result(wanted.begin(), wanted.end() - 1);
  result.insert(result.end(), sizes.begin() + static_cast<std::ptrdiff_t>(batch + depth),
                sizes.end());
  return {call.like(0, reshape(flat, result))};
}

Values run_scatter_nd(const Call& call) {
  const Tensor &x = call.tensor(0), &indices = call.tensor(1), &updates = call.tensor(2);
  if (indices.rank() == 2 && x.rank() > 0 && indices.dim(1) == Dim(1)) {  // rows; any sizes
    const Tensor rows = from_front(squeeze(indices, 1), x.dim(0));
    return {call.like(0, updated(x, rows, updates, update_of(call)))};
  }
  const Sizes sizes = x.shape(), wanted = indices.shape();
  if (wanted.empty()) call.refuse("indices have no axis");
  const auto depth = static_cast<std::size_t>(wanted.back());
  const Tensor positions = slice_positions(call, sizes, indices, 0);
  const std::int64_t rest = product_of(sizes, depth, sizes.size());
  const Tensor flat =
      updated(reshape(x, {product_of(sizes, 0, depth), rest}), reshape(positions, {-1}),
              reshape(updates, {positions.numel(), rest}), update_of(call));
  return {call.like(0, reshape(flat, sizes))};
}

/// Writes updates into a cache, from a position of each entry on; a circular cache goes on at its
/// begin.
Values run_tensor_scatter(const Call& call) {
  const Tensor &cache = call.tensor(0), &updates = call.tensor(1);
  const int axis = call.axis(-2);
  const std::string mode = call.text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    call.refuse(str("the mode ", mode, " is not supported"));
  if (axis == 0 || updates.rank() != cache.rank())
    call.refuse(str("updates ", updates.type(), " do not fit ", cache.type()));
  std::vector<Axis> order{0, axis};
  for (int i = 1; i < cache.rank(); ++i)
    if (i != axis) order.emplace_back(i);
  std::vector<Axis> back{0};
  for (int i = 1; i < cache.rank(); ++i) back.emplace_back(i < axis ? i + 1 : i == axis ? 1 : i);
  const Tensor rows = transpose(cache, Axes(order)), new_rows = transpose(updates, Axes(order));
  const Sizes sizes = rows.shape(), wanted = new_rows.shape();
  const std::int64_t width = product_of(sizes, 2, sizes.size());
  const Tensor first = call.has(2) ? reshape(cast(call.tensor(2), i64), {sizes[0], 1})
                                   : zeros({Dim(sizes[0]), Dim(1)}, i64);
  Tensor at = first + range(wanted[1], i64);
  if (mode == "circular")
    at = mod(at, std::max<std::int64_t>(sizes[1], 1));
  else
    at = from_front(at, Dim(sizes[1]));
  const Tensor flat = reshape(range(sizes[0], i64) * sizes[1], {sizes[0], 1}) + at;
  const Tensor written = set_at(reshape(rows, {sizes[0] * sizes[1], width}), reshape(flat, {-1}),
                                reshape(new_rows, {wanted[0] * wanted[1], width}), 0);
  return {call.like(0, transpose(reshape(written, sizes), Axes(back)))};
}

/// Negative indices count from the end; others out of range give no 1.
Values run_one_hot(const Call& call) {
  const Tensor indices = cast(call.tensor(0), i64);
  const double given = call.known_numbers(1).at(0);
  if (!(given >= 0 && given < 0x1p31)) call.refuse(str("the depth is ", given));
  const auto depth = static_cast<std::int64_t>(given);
  const Tensor& values = call.tensor(2);
  const int axis = call.axis_in(call.integer("axis", -1), indices.rank() + 1);
  Dims apart = indices.dims(), along(static_cast<std::size_t>(indices.rank()) + 1, Dim(1));
  apart.insert(apart.begin() + axis, Dim(1));
  along[static_cast<std::size_t>(axis)] = Dim(depth);
  const Tensor from_zero = where(indices < 0, indices + depth, indices);
  const Tensor is_on = equal(reshape_to(from_zero, apart), reshape_to(range(depth, i64), along));
  const auto value = [&](int i) { return gather(values, scalar(i), 0); };
  return {call.like(2, where(is_on, value(1), value(0)))};
}

// ---- Sizes by values --------------------------------------------------------------------------

Tensor with_axis_first(const Tensor& x, int axis) {
  std::vector<Axis> order{axis};
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.emplace_back(i);
  return transpose(x, Axes(order));
}
Tensor with_first_axis_at(const Tensor& x, int axis) {
  std::vector<Axis> order;
  for (int i = 0; i < x.rank(); ++i) order.emplace_back(i < axis ? i + 1 : i == axis ? 0 : i);
  return transpose(x, Axes(order));
}

/// The condition may be shorter than the axis: elements behind it are left out.
Values run_compress(const Call& call) {
  const bool is_flat = !call.has_attribute("axis");
  const Tensor x = is_flat ? reshape(call.tensor(0), {-1}) : call.tensor(0);
  const int axis = is_flat ? 0 : call.axis(0);
  const Tensor& condition = call.tensor(1);
  const Dim& given = condition.dims()[0];
  Tensor rows = with_axis_first(x, axis);
  if (given.has_size()) rows = slice(rows, 0, 0, given.size());  // it may be shorter than the axis
  return {call.like(0, with_first_axis_at(pack(rows, condition), axis))};
}

/// Returns the positions of elements that are not 0: one row for each axis of x.
Values run_non_zero(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Sizes sizes = x.rank() ? x.shape() : Sizes{1};
  const Tensor is_set = x.dtype() == boolean ? x : not_equal(x, 0);
  const Tensor at = pack(range(x.numel(), i64), reshape(is_set, {-1}));
  Tensors rows;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    rows.push_back(
        floor_divide(at, std::max<std::int64_t>(product_of(sizes, i + 1, sizes.size()), 1)) %
        std::max<std::int64_t>(sizes[i], 1));
  return {Value::of(stack(rows))};
}

/// Returns the positions of rows in ascending order, by their first elements, then their second
/// ones and so on; equal rows in the order of their positions. rows: [count, width].
Tensor order_of_rows(const Tensor& rows) {
  Tensor order = range(rows.dim(0).size(), i32);
  for (std::int64_t i = rows.dim(1).size(); i-- > 0;) {
    const Tensor column = gather(rows, scalar(i), 1);
    order = gather(order, argsort(gather(column, order, 0), 0), 0);
  }
  return order;
}

/// Returns the elements, or the slices along an axis, without repetitions. Also returns the
/// positions of their first occurrences, for each element the position of its equal in the result,
/// and their counts.
Values run_unique(const Call& call) {
  const bool is_flat = !call.has_attribute("axis");
  const int axis = is_flat ? 0 : call.axis(0);
  const Tensor x = is_flat ? reshape(call.tensor(0), {-1}) : call.tensor(0);
  if (!is_known(x.dims()))
    throw TraceError("Unique: the sizes of its input are known only when the graph runs");
  const std::int64_t count = x.dim(axis).size();
  const Tensor rows = reshape(with_axis_first(x, axis), {count, count ? x.numel() / count : 0});
  const Tensor order = order_of_rows(rows), sorted = gather(rows, order, 0);
  const Tensor is_new = any(not_equal(sorted, shift(sorted, 0, 1)), {1}) || range(count) == 0;
  const Tensor group = cumsum(cast(is_new, i32), 0) - 1;
  const Tensor begins = pack(range(count), is_new);
  Tensor first = pack(order, is_new), inverse = gather(group, argsort(order, 0), 0),
         counts = shift(begins, 0, -1, static_cast<double>(count)) - begins;
  if (!call.flag("sorted", true)) {
    const Tensor by_place = argsort(first, 0);
    first = gather(first, by_place, 0);
    counts = gather(counts, by_place, 0);
    inverse = gather(argsort(by_place, 0), inverse, 0);
  }
  return {call.like(0, gather(x, first, axis)), Value::of(cast(first, i64)),
          Value::of(cast(inverse, i64)), Value::of(cast(counts, i64))};
}

/// Returns the results of TopK with a k that only a run knows: the first of all elements in order.
/// Throws AssertionError if the axis has fewer than k elements.
Values top_k_of_a_run(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = call.axis(-1);
  const Tensor k = cast(scalar_of(call.tensor(1)), i64);
  assert_that(k >= 0 && k <= value_of_size(x.dim(axis)).tensor, "TopK: the axis has k elements", k);
  const Tensor first = range(bounded_size_of_a_run(k), i64);
  const bool descending = call.flag("largest", true);
  return {call.like(0, gather(sort(x, axis, descending), first, axis)),
          Value::of(cast(gather(argsort(x, axis, descending), first, axis), i64))};
}

/// Returns the k largest or smallest elements, in order. Until version 9, k is an attribute.
Values run_top_k(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = call.axis(-1);
  if (call.version() >= 10 && !call.is_known(1)) return top_k_of_a_run(call);
  const std::int64_t k = call.version() < 10 ? call.integer("k", 0) : call.known_integer(1);
  if (k < 0 || k > x.dim(axis).size())
    call.refuse(str("k is ", k, ", but the axis has ", x.dim(axis).size(), " elements"));
  if (call.flag("largest", true)) {
    const TopK top = top_k(x, axis, Dim(k));
    return {call.like(0, top.values), Value::of(cast(top.indices, i64))};
  }
  return {call.like(0, slice(sort(x, axis), axis, 0, k)),
          Value::of(cast(slice(argsort(x, axis), axis, 0, k), i64))};
}

const Rule kRules[] = {
    {"Compress", run_compress, "", 9},
    {"Gather", run_gather},
    {"GatherElements", run_gather_elements, "", 11},
    {"GatherND", run_gather_nd, "", 11},
    {"NonZero", run_non_zero, "", 9},
    with_numbers({1}, {"OneHot", run_one_hot, "", 9}),
    {"Scatter", run_scatter_elements, "", 9, 10},
    {"ScatterElements", run_scatter_elements, "", 11},
    {"ScatterND", run_scatter_nd, "", 11},
    {"TensorScatter", run_tensor_scatter, "", 24},
    with_numbers({1}, {"TopK", run_top_k}),
    {"Unique", run_unique, "", 11},
};

}  // namespace

std::span<const Rule> indexing_rules() { return kRules; }

}  // namespace reel::imported
