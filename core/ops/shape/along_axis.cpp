#include "reel/core/ops/shape/along_axis.h"

#include <algorithm>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/types/dim_expression.h"

namespace reel {

bool runs_along(const TensorType& x, int position, const Dims& axes) {
  const Dim& dim = dim_at(x, position);
  if (contains(axes, dim) || !has_its_lengths(x, position)) return false;
  return std::any_of(dim.length_dims().begin(), dim.length_dims().end(), [&](const Dim& of) {
    return contains(axes, of) || (of.is_ragged() && runs_along(x, find(x.dims(), of), axes));
  });
}

bool has_lengths_along(const TensorType& x, const std::vector<int>& axes) {
  if (x.is_list() || !x.is_ragged()) return false;
  Dims dims;
  for (const int axis : axes) dims.push_back(dim_at(x, axis));
  for (int i = 0; i < x.rank(); ++i)
    if (runs_along(x, i, dims)) return true;
  return false;
}
bool has_lengths_along(const TensorType& x, int axis) {
  return x.is_ragged() && has_lengths_along(x, std::vector<int>{axis});
}

SliceKey key_along(std::string_view name, const Dims& axes) {
  SliceKey key;
  key.text(name).number(axes.size());
  for (const Dim& axis : canonical(axes)) key.dim(axis);
  return key;
}

SliceKey key_of_element(const Dim& axis, std::int64_t index) {
  return key_along("element", {axis}).number(static_cast<std::uint64_t>(index)).by_value();
}

Dims with_entries_of(const Dims& axes) {
  Dims result;
  const auto add = [&](const auto& self, const Dim& dim) -> void {
    for (const Dim& of : dim.length_dims()) self(self, of);
    if (!contains(result, dim)) result.push_back(dim);
  };
  for (const Dim& axis : axes) add(add, axis);
  return result;
}

Dim extent_dim(const Dims& dims) {
  return Dim(dims[0].name(), computed_plainly([&] {
               Tensor result = extent_of(dims[0]);
               for (std::size_t i = 1; i < dims.size(); ++i)
                 if (!(dims[i] == dims[0])) result = maximum(result, extent_of(dims[i]));
               return result;
             }));
}

Tensor AlongAxis::lengths_of(const Dim& dim) {
  for (const auto& [known, lengths] : lengths_)
    if (known == dim) return lengths;
  return lengths_.emplace_back(dim, dim.lengths()).second;
}

/// Expands lengths over options_.entries: each of these entries ends at another place.
Tensor AlongAxis::with_entries(const Tensor& lengths, const TensorType& x) const {
  Dims dims = lengths.dims();
  for (const Dim& dim : options_.entries)
    if (!contains(dims, dim) && contains(x.dims(), dim)) dims.push_back(dim);
  return dims.size() == lengths.dims().size() ? lengths : mask_padding(expand(lengths, dims));
}

void AlongAxis::find_slice(const Dim& dim, const TensorType& x) {
  if (changes_.affects(dim)) return;
  const DimExpression* expression = expression_of(dim);
  if (expression && !options_.makes_places) {
    for (const Dim& of : expression->operands)
      if (of.is_ragged()) find_slice(of, x);
    return;
  }
  if (options_.undoes)
    if (const auto whole = whole_of_known(dim, options_.undoes())) return add(dim, *whole);
  const Tensor lengths = computed_plainly([&] {
    const Tensor all = with_entries(lengths_of(dim), x);
    const bool has_axis = std::any_of(axes_.begin(), axes_.end(),
                                      [&](const Dim& axis) { return contains(all.dims(), axis); });
    return has_axis ? (*this)(all) : resized(all, changes_(all.dims()));
  });
  changes_.add(dim, slice_of_dim(dim, lengths, options_.key ? options_.key() : SliceKey()));
}

const DimChanges& AlongAxis::slices_of(const TensorType& x) {
  if (x.is_ragged() && axes_[0].is_named())
    for (int i = 0; i < x.rank(); ++i)
      if (runs_along(x, i, axes_)) find_slice(dim_at(x, i), x);
  return changes_;
}

Tensor AlongAxis::operator()(const Tensor& x, int axis) {
  const bool has_slices = slices_of(x.type()).affects(x.type());
  return with_original_dims(has_slices ? taken(x, axis) : take_(x, axis), options_.undoes);
}

Tensor with_original_dims(const Tensor& x, const AlongAxis::KeyOf& undoes) {
  if (!undoes || !has_slices() || !x.type().is_ragged()) return x;
  DimChanges to_whole;
  for (int i = 0; i < x.rank(); ++i)
    if (const Dim& dim = dim_at(x.type(), i); dim.is_ragged() && !has_its_lengths(x.type(), i))
      if (const auto whole = whole_of_known(dim, undoes())) to_whole.add(dim, *whole);
  return to_whole.empty() ? x : resized(x, to_whole(x.dims()));
}

// If the axis stays, lengths belong to other elements until slices replace the dims. No rule may
// mask by them meanwhile.
Tensor AlongAxis::taken(const Tensor& x, int axis) {
  Tensor shown = x;
  DimChanges to_slices = changes_;
  if (options_.keeps_axis) {
    DimChanges extents;
    for (int i = 0; i < x.rank(); ++i)
      if (const Dim& dim = dim_at(x.type(), i); changes_.affects(dim)) {
        extents.add(dim, extent_dim({dim}));
        to_slices.add(extents(dim), changes_(dim));
      }
    for (int i = 0; i < x.rank(); ++i)
      if (const Dim& dim = dim_at(x.type(), i); extents.affects(dim))
        shown = renamed(shown, i, extents(dim));  // with zeros in padding
  }
  const Tensor result = take_(shown, axis);
  return resized(result, to_slices(result.dims()));
}

}  // namespace reel
