#include "reel/core/ops/shape/joined_lengths.h"

#include <algorithm>

#include "reel/core/ops.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/sliced_dims.h"

namespace reel {
namespace {

bool runs(const TensorType& x, int position, int axis) {
  return runs_along(x, position, {dim_at(x, axis)});
}

/// Returns true if a dim of x corresponds to the dim at a position of the first tensor: they are
/// equal, or slices of one dim, or have one name and lengths over the joined axis.
bool is_alike(const TensorType& first, int position, int axis, const TensorType& x, int place) {
  const Dim &wanted = dim_at(first, position), &dim = dim_at(x, place);
  if (dim == wanted || shared_whole(wanted, dim)) return true;
  if (dim.name() != wanted.name() || !runs(first, position, axis)) return false;
  // Which axis of x is joined is not known yet: the lengths run over one that the first lacks.
  return has_its_lengths(x, place) &&
         std::any_of(dim.length_dims().begin(), dim.length_dims().end(),
                     [&](const Dim& of) { return find_axis(first.dims(), of) < 0; });
}

/// Returns the axis of x for each axis of the first tensor; an empty list if one has no
/// counterpart.
std::vector<int> order_as(const TensorType& first, int axis, const TensorType& x) {
  if (x.rank() != first.rank()) return {};
  std::vector<int> order(static_cast<std::size_t>(first.rank()), -1);
  std::vector<bool> taken(order.size());
  const auto match = [&](bool exact) {
    for (int i = 0; i < first.rank(); ++i)
      for (int at = 0; at < x.rank() && i != axis && order[i] < 0; ++at) {
        if (taken[at] ||
            !(exact ? dim_at(x, at) == dim_at(first, i) : is_alike(first, i, axis, x, at)))
          continue;
        order[i] = at;
        taken[at] = true;
      }
  };
  match(true);
  match(false);
  const auto rest = std::find(taken.begin(), taken.end(), false);
  order[axis] = static_cast<int>(rest - taken.begin());
  return std::count(order.begin(), order.end(), -1) ? std::vector<int>{} : order;
}

Dims reordered(const Dims& dims, const std::vector<int>& order) {
  Dims result;
  for (const int axis : order) result.push_back(dims[static_cast<std::size_t>(axis)]);
  return result;
}

Dim whole_of_all(const Dims& dims) {
  Dim whole = dims[0];
  for (const Dim& dim : dims)
    if (const auto shared = shared_whole(whole, dim)) whole = *shared;
  return whole;
}

}  // namespace

std::optional<JoinedLengths> JoinedLengths::of(const Tensors& tensors, int axis) {
  const TensorType& first = tensors[0].type();
  const auto is_plain = [](const Tensor& x) { return x.type().is_list() || !x.type().is_named(); };
  if (std::none_of(tensors.begin(), tensors.end(),
                   [](const Tensor& x) { return x.type().is_ragged(); }) ||
      std::any_of(tensors.begin(), tensors.end(), is_plain))
    return std::nullopt;
  JoinedLengths result;
  result.axis_ = axis;
  std::vector<std::vector<int>> orders;
  for (const Tensor& x : tensors) {
    orders.push_back(order_as(first, axis, x.type()));
    if (orders.back().empty()) return std::nullopt;
    result.types_.push_back(x.type().with(reordered(x.dims(), orders.back())));
  }
  for (int i = 0; i < first.rank(); ++i) {
    if (i == axis) continue;
    Joined joined;
    bool is_joined = false, is_one = true;
    for (const TensorType& type : result.types_) {
      joined.dims.push_back(dim_at(type, i));
      is_joined = is_joined || runs(type, i, axis);
      is_one = is_one && joined.dims.back() == joined.dims[0];
    }
    if (is_joined) result.joined_.push_back(std::move(joined));
    if (!is_joined && !is_one) return std::nullopt;
  }
  if (result.joined_.empty()) return std::nullopt;
  const auto depth = [](const Joined& joined) {
    std::size_t most = 0;
    for (const Dim& dim : joined.dims) most = std::max(most, dim.length_dims().size());
    return most;
  };
  std::stable_sort(result.joined_.begin(), result.joined_.end(),
                   [&](const Joined& a, const Joined& b) { return depth(a) < depth(b); });
  result.to_extents_.resize(tensors.size());
  for (Joined& joined : result.joined_) {
    joined.extent = extent_dim(joined.dims);
    for (std::size_t k = 0; k < tensors.size(); ++k)
      result.to_extents_[k].add(joined.dims[k], joined.extent);
  }
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Tensor x = mask_padding(transposed(tensors[k], orders[k]));
    result.extended_.push_back(resized(x, result.to_extents_[k](x.dims())));
  }
  return result;
}

/// In the dims of the extended tensor, with the axis.
Tensor JoinedLengths::lengths_of(const Joined& joined, std::size_t tensor) const {
  const TensorType& type = types_[tensor];
  const Dim& dim = joined.dims[tensor];
  const bool has_lengths = has_its_lengths(type, find(type.dims(), dim));
  const Tensor own = has_lengths ? dim.lengths() : cast(extent_of(dim), i32);
  Dims over = own.dims();
  const auto add = [&](const Dim& of) {
    if (!contains(over, of) && contains(type.dims(), of)) over.push_back(of);
  };
  for (std::size_t k = 0; k < types_.size(); ++k)  // where lengths of the other tensors run
    for (const Dim& of : with_entries_of({dim_at(types_[k], axis_), joined.dims[k]}))
      if (const int place = find(types_[k].dims(), of); place >= 0 && !(of == joined.dims[k]))
        add(dim_at(type, place));
  const Tensor all = mask_padding(expand(own, over));
  return resized(all, to_extents_[tensor](all.dims()));
}

Tensor JoinedLengths::with_lengths(const Tensor& x, const Dim& dim) const {
  DimChanges to_joined;
  for (const Joined& joined : joined_) {
    const Tensor lengths = computed_plainly([&] {
      Tensors all;
      for (std::size_t k = 0; k < types_.size(); ++k) all.push_back(lengths_of(joined, k));
      const Axis axis(find(all[0].dims(), dim_at(types_[0], axis_)));
      const Tensor whole = concat(all, axis, dim);
      return resized(whole, to_joined(whole.dims()));
    });
    const Dim whole = whole_of_all(joined.dims);
    SliceKey key = key_along("concat", {dim});
    key.number(types_.size());
    for (std::size_t k = 0; k < types_.size(); ++k)
      key.dim(canonical(joined.dims[k])).dim(canonical(dim_at(types_[k], axis_)));
    to_joined.add(joined.extent, slice_of_dim(whole, lengths, key));
  }
  return resized(x, to_joined(x.dims()));
}

}  // namespace reel
