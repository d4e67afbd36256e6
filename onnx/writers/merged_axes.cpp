#include "reel/onnx/writers/merged_axes.h"

#include <algorithm>

namespace reel::exported {
namespace {

Dims all_of(const MergedAxes& axes) {
  Dims dims;
  for (const Dims& axis : axes) dims.insert(dims.end(), axis.begin(), axis.end());
  return dims;
}

std::vector<int> order_of(const Dims& from, const Dims& to) {
  std::vector<int> order;
  for (const Dim& dim : to) order.push_back(find(from, dim));
  return order;
}

/// Returns the size of an axis, i64[1].
Name size_of(GraphWriter& to, const Dims& axis) {
  std::int64_t known = 1;
  Name result;
  for (const Dim& dim : axis)
    if (known_size(dim) >= 0)
      known *= known_size(dim);
    else
      result = result.empty() ? to.size(dim) : to.add("Mul", {result, to.size(dim)});
  const Name factor = to.model().integers({known});
  if (result.empty()) return factor;
  return known == 1 ? result : to.add("Mul", {result, factor});
}

bool is_unknown(const Dims& axis) {
  return std::any_of(axis.begin(), axis.end(), [](const Dim& dim) { return known_size(dim) < 0; });
}

/// Returns the sizes of all axes. Reshape computes the only unknown one, unless others are 0.
Name shape_of(GraphWriter& to, const MergedAxes& axes) {
  std::vector<std::int64_t> sizes;
  for (const Dims& axis : axes) {
    std::int64_t size = 1;
    for (const Dim& dim : axis) size *= known_size(dim);
    sizes.push_back(is_unknown(axis) ? -1 : size);
  }
  if (std::count(sizes.begin(), sizes.end(), -1) <= 1 && !std::count(sizes.begin(), sizes.end(), 0))
    return to.model().integers(sizes);
  Names parts;
  for (const Dims& axis : axes) parts.push_back(size_of(to, axis));
  return to.concat(parts, 0);
}

}  // namespace

Dims dims_without(Dims dims, const Dims& others) {
  std::erase_if(dims, [&](const Dim& dim) { return contains(others, dim); });
  return dims;
}

Name to_axes(GraphWriter& to, const Name& x, const Dims& from, const MergedAxes& axes) {
  const Name ordered = to.transpose(x, order_of(from, all_of(axes)));
  if (std::any_of(axes.begin(), axes.end(), [](const Dims& axis) { return axis.size() > 1; }))
    return to.add("Reshape", {ordered, shape_of(to, axes)}, {{"allowzero", integer(1)}});
  std::vector<int> empty;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].empty()) empty.push_back(static_cast<int>(i));
  return to.unsqueeze(ordered, empty);
}

Name from_axes(GraphWriter& to, const Name& x, const MergedAxes& axes, const Dims& dims) {
  const Dims all = all_of(axes);
  const bool is_plain =
      std::all_of(axes.begin(), axes.end(), [](const Dims& axis) { return axis.size() == 1; });
  return to.transpose(is_plain ? x : to.reshape(x, all), order_of(all, dims));
}

Name broadcast_to_axes(GraphWriter& to, const Name& x, const Dims& from, const MergedAxes& axes) {
  MergedAxes own;
  for (const Dims& axis : axes) {
    const bool has_some =
        std::any_of(axis.begin(), axis.end(), [&](const Dim& dim) { return contains(from, dim); });
    own.push_back(has_some ? axis : Dims());
  }
  const Dims all = all_of(own);
  if (all.size() == from.size()) return to_axes(to, x, from, own);
  return to_axes(to, to.expand(to.aligned(x, from, all), all), all, own);
}

}  // namespace reel::exported
