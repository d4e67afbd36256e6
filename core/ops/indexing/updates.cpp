// set_at and set_slice.
#include "reel/core/functions/updates.h"

#include <algorithm>
#include <string>

#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/indexing/rows.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

Tensor tensor_of(const Arg& arg, DType dtype) {
  if (!arg.is_number()) return arg.tensor();
  return arg.is_floating() ? full({}, arg.number(), dtype) : full({}, arg.integer(), dtype);
}

/// Returns the value with the dims of the elements that it replaces.
Tensor value_as(std::string_view function, const Tensor& x, const Tensor& value,
                const Dims& wanted) {
  check_defined(function, value);
  if (value.dtype() != x.dtype())
    throw DTypeError(str(function, ": dtypes differ: x ", x.type(), ", value ", value.type(),
                         "; cast one of them"));
  if (!value.rank()) return wanted.empty() ? value : expand(value, wanted);
  bool fits = value.dims().size() == wanted.size();
  for (std::size_t i = 0; fits && i < wanted.size(); ++i) {
    const Dim &dim = value.dims()[i], &at = wanted[i];
    fits = at.is_named() ? contains(value.dims(), at)
                         : !dim.is_named() && (dim == at || !dim.has_size() || !at.has_size());
  }
  if (!fits)
    throw ShapeError(str(function, ": value is ", value.type(), ", but x ", x.type(),
                         " has elements ", x.type().with(wanted), " there",
                         one_dim_hint(value.dims(), wanted)));
  return value.type().is_named() && value.dims() != wanted ? transpose(value, Axes(wanted)) : value;
}

Tensor spread(const Tensor& x, const Dims& dims) {
  return dims.empty() || x.dims() == dims ? x : expand(x, dims);
}

/// Returns the dims of x that have places of their own along `dim`: the dims of its lengths, and
/// the dims of the index.
Dims entries_of(const Tensor& x, const Dim& dim, const Dims& of_index) {
  Dims result;
  for (const Dims& dims : {dim.length_dims(), of_index})
    for (const Dim& of : dims)
      if (contains(x.dims(), of) && !contains(result, of)) result.push_back(of);
  return result;
}

/// Returns a mask of x: true at the place that the index names in each entry. Throws as gather, in
/// the name of the function.
Tensor mask_of_place(const std::string& function, const Tensor& x, const Tensor& index, int axis) {
  const Dim dim = x.dims()[static_cast<std::size_t>(axis)];
  if (!dim.is_named()) {
    const Tensor positions = range(dim, i64);
    const Tensor is_place = equal(positions, gather_for(function, positions, index, 0));
    Dims dims(static_cast<std::size_t>(x.rank() - axis), Dim(1));
    dims[0] = dim;
    return expand(reshape(is_place, dims), x.dims());
  }
  Dims entries = entries_of(x, dim, index.dims());
  Dims all = entries;
  all.push_back(dim);
  const Tensor positions = spread(range(dim, i64), all);
  const Tensor place = gather_for(function, positions, spread(index, entries), dim);
  return expand(equal(positions, expand(place, all)), x.dims());
}

/// Replaces one place in every entry. x may be ragged.
Tensor set_in_entries(const std::string& function, const Tensor& x, const Tensor& index,
                      const Tensor& value, int axis) {
  const Dim dim = x.dims()[static_cast<std::size_t>(axis)];
  Tensor along = value;
  if (!dim.is_named() && value.rank()) {  // plain axes: an axis of size 1 for the place
    Dims dims = value.dims();
    dims.insert(dims.begin() + axis, Dim(1));
    along = reshape(value, dims);
  }
  return where(mask_of_place(function, x, index, axis), expand(along, x.dims()), x);
}

/// Replaces the places along a dim of the index in every entry. x may be ragged.
Tensor set_places(const std::string& function, const Tensor& x, const Tensor& index,
                  const Tensor& value, int axis, int axis_of_places) {
  const Dim dim = x.dims()[static_cast<std::size_t>(axis)];
  const Dim places = index.dims()[static_cast<std::size_t>(axis_of_places)];
  if (lengths_run_over(value.type(), {axis}))
    throw ShapeError(str(function, ": lengths of value ", value.type(), " run over ", places,
                         ", which the index ", index.type(), " puts at places of ", dim, " in x ",
                         x.type(), "; rename it in index and value"));
  if (places.has_size() && places.size() == 0) return x;
  // Lengths of the places make some values padding in some entries.
  Dims matched = index.dims();
  std::erase(matched, places);
  for (const Dim& of : places.length_dims())
    if (!(of == dim)) matched.push_back(of);
  const Dims entries = dim.is_named() ? entries_of(x, dim, matched) : Dims();
  Dims all = entries, with_places = entries;
  all.push_back(dim);
  with_places.push_back(places);
  const Axis along = static_cast<int>(entries.size());
  const Tensor place =
      gather_for(function, spread(range(dim, i64), all), spread(index, with_places), along);
  // The number of the value at each position, the last one if there are several; -1 without a
  // value.
  const Tensor number = scatter_max(
      full(all, -1, i32), place, mask_padding(spread(range(places, i32), with_places), -1), along);
  // There may be no value at all in a run.
  const Tensor some = places.has_size() ? value : pad(value, Axis(axis), 0, 1);
  const Tensor values = gather(some, number, Axis(axis), {.clip = true});
  Tensor is_replaced = number >= 0;
  if (!dim.is_named()) {
    Dims dims(static_cast<std::size_t>(x.rank() - axis), Dim(1));
    dims[0] = dim;
    is_replaced = reshape(is_replaced, dims);
  }
  return where(expand(is_replaced, x.dims()), values, x);
}

bool is_known(const Tensor& x) {
  return std::all_of(x.dims().begin(), x.dims().end(),
                     [](const Dim& dim) { return dim.has_size(); });
}

/// Replaces whole rows of x, which are slices along the axis.
Tensor set_rows(const std::string& function, Tensor x, const Tensor& index, const Tensor& value,
                int axis) {
  const std::vector<std::int64_t> sizes = x.type().sizes();
  const std::int64_t rows = sizes[static_cast<std::size_t>(axis)];
  const std::int64_t count = index.type().numel();
  std::int64_t before = 1;  // places of the axes before this one; each place has the rows
  for (int i = 0; i < axis; ++i) before *= sizes[static_cast<std::size_t>(i)];
  Tensor numbers = row_numbers(index, rows, {.function = function});
  if (before != 1)
    numbers = reshape(reshape(range(before, i64) * rows, {before, 1}) + numbers, {before * count});
  std::vector<std::int64_t> sizes_of_value{before * count};
  sizes_of_value.insert(sizes_of_value.end(), sizes.begin() + axis + 1, sizes.end());
  return put_rows(std::move(x), numbers, reshape(value, sizes_of_value), axis + 1);
}

/// Bodies of loops choose element by element in tensors with fewer elements than this.
constexpr std::int64_t kMinElementsOfRows = 8192;

/// Returns true if the index names one place for each element of the axes before `axis`, and the
/// rows are to be written by their numbers, in place. In bodies of loops this is so for large
/// tensors only: an element-wise choice is fused with other ops, and stays on the rows of the loop,
/// which numbers over all rows do not. Entries that finish one by one are chosen in any case.
bool is_index_of_leading(const Tensor& x, const Tensor& index, int axis) {
  const GraphBuilder* builder = thread_mode.builder;
  if (thread_mode.entries || x.type().is_ragged()) return false;
  if (!is_known(x) || index.rank() != axis || !axis) return false;
  if (builder && builder->outer() &&
      (builder->is_in_entries() || x.type().numel() < kMinElementsOfRows))
    return false;
  return std::equal(index.dims().begin(), index.dims().end(), x.dims().begin());
}

/// Replaces one row for each element of the axes before the axis.
Tensor set_row_of_each(const std::string& function, Tensor x, const Tensor& index,
                       const Tensor& value, int axis) {
  const std::vector<std::int64_t> sizes = x.type().sizes();
  const std::int64_t rows = sizes[static_cast<std::size_t>(axis)], count = index.type().numel();
  const Tensor first = range(count, i64) * rows;
  const Tensor numbers = first + row_numbers(reshape(index, {count}), rows, {.function = function});
  std::vector<std::int64_t> sizes_of_value{count};
  sizes_of_value.insert(sizes_of_value.end(), sizes.begin() + axis + 1, sizes.end());
  return put_rows(std::move(x), numbers, reshape(value, sizes_of_value), axis + 1);
}

/// set_at, with messages that begin with the name of the function that the user called.
Tensor set_elements(const std::string& function, Tensor x, const Tensor& index,
                    const Arg& given_value, int axis) {
  const TensorType type = x.type();
  const GatherAttrs attrs =
      match_dims(x.type(), index.type(), {.axis = axis, .function = function});
  check_indices(function, x.type(), index.type(), attrs);
  const Tensor elements = as_function(function, [&] { return tensor_of(given_value, x.dtype()); });
  const Tensor value =
      value_as(function, x, elements, gathered_dims(x.type(), index.type(), attrs));
  const auto is_matched = [](int axis) { return axis >= 0; };
  const bool all_match = std::all_of(attrs.matched.begin(), attrs.matched.end(), is_matched);
  const bool any_match = std::any_of(attrs.matched.begin(), attrs.matched.end(), is_matched);
  if (!any_match && !x.type().is_ragged() && !index.type().is_ragged() && is_known(x) &&
      is_known(index))
    try {
      return set_rows(function, std::move(x), index, value, axis);
    } catch (const IndexError&) {  // it names a vector of the rows; this one names x
      if (!is_tracing()) places_of(function, index, type, attrs);
      throw;
    }
  if (all_match && is_index_of_leading(x, index, axis)) try {
      return set_row_of_each(function, std::move(x), index, value, axis);
    } catch (const IndexError&) {  // as above
      if (!is_tracing()) places_of(function, index, type, attrs);
      throw;
    }
  if (all_match) return set_in_entries(function, x, index, value, axis);
  if (std::count_if(attrs.matched.begin(), attrs.matched.end(), is_matched) + 1 != index.rank())
    throw ShapeError(str(function, ": index ", index.type(), " names places along several dims in ",
                         x.type(),
                         "; one dim only may stand for places if either has ragged dims or sizes "
                         "that only a run knows, or x has dims of the index; merge these dims of "
                         "index and value"));
  const auto places = std::find_if_not(attrs.matched.begin(), attrs.matched.end(), is_matched);
  return set_places(function, x, index, value, axis,
                    static_cast<int>(places - attrs.matched.begin()));
}

}  // namespace

Tensor set_at(Tensor x, const Arg& given_index, const Arg& value, const Axis& axis) {
  check_defined("set_at", x);
  const Tensor index = tensor_of(given_index, i64);
  check_defined("set_at", index);
  if (!is_integer(index.dtype()))
    throw DTypeError(str("set_at: index must be i32 or i64, got ", index.type()));
  const int position = axis.in(x, "set_at");
  return set_elements("set_at", std::move(x), index, value, position);
}

Tensor set_slice(Tensor x, const Arg& given_begin, const Tensor& value, const Axis& given_axis) {
  check_defined("set_slice", x);
  check_defined("set_slice", value);
  const Tensor begin = tensor_of(given_begin, i64);
  check_defined("set_slice", begin);
  if (!is_integer(begin.dtype()) || begin.rank())
    throw DTypeError(str("set_slice: begin must be an integer scalar, got ", begin.type()));
  const int axis = given_axis.in(x, "set_slice");
  const Dim& along = x.dims()[static_cast<std::size_t>(axis)];
  if (value.rank() != x.rank() || !along.has_size() || along.is_ragged())
    throw ShapeError(str("set_slice: value ", value.type(), " must have as many axes as x ",
                         x.type(), ", and the axis one size"));
  const Dim& taken = value.dims()[static_cast<std::size_t>(axis)];
  const Tensor first = cast(begin, i64);
  return set_elements("set_slice", std::move(x),
                      where(first < 0, first + along.size(), first) + range(taken, i64), value,
                      axis);
}

}  // namespace reel
