#include "reel/core/ops/shape/new_dims.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"

namespace reel {

Dims with_dim(Dims dims, int axis, const Dim& dim) {
  dims[static_cast<std::size_t>(axis)] = dim;
  return dims;
}
Dims insert_dim(Dims dims, int axis, const Dim& dim) {
  dims.insert(dims.begin() + axis, dim);
  return dims;
}
Dims without_dim(Dims dims, int axis) {
  dims.erase(dims.begin() + axis);
  return dims;
}

bool has_unknown_size(const TensorType& type) {
  if (type.is_known()) return false;
  return std::any_of(type.dims().begin(), type.dims().end(), is_unknown);
}

bool has_no_entry(const Dim& dim) {
  return dim.is_ragged() && !dim.is_symbol() && !dim.node()->lengths->type.numel();
}

void refuse_size(std::string_view op, const Dim& to, std::int64_t size, const std::string& what) {
  throw ShapeError(
      str(op, ": dim ", to, " has size ", to.size(), ", but ", what, " has size ", size));
}

Tensor without_padding(const Tensor& g, int axis) {
  if (lengths_run_over(g.type(), {axis})) return mask_padding(g);
  return reduces_padding(g.type(), {axis}) ? mask_padding_along(g, axis) : g;
}

Tensor clear_padding(const Tensor& x, int axis, double value) {
  return lengths_run_over(x.type(), {axis}) ? mask_padding(x, value) : x;
}
Tensor clear_padding(const Tensor& x, int axis, const std::optional<Dim>& to, double value) {
  const bool is_given = to && !to->is_undefined() && !(canonical(*to) == dim_at(x.type(), axis));
  return is_given && reduces_padding(x.type(), {axis}) ? mask_padding(x, value)
                                                       : clear_padding(x, axis, value);
}

std::string names_of(const Dims& dims) {
  std::string names;
  for (const Dim& dim : dims) names += (names.empty() ? "" : ", ") + dim.name();
  return '{' + names + '}';
}

void refuse_padding(std::string_view op, const TensorType& x, int axis, const Dims& packed) {
  throw ShapeError(str(op, ": ", axis_name(x, axis), " is ragged, and its padding would become ",
                       "elements; use pack(x, ", names_of(packed),
                       ") for the valid elements alone, max_pool or mean_pool for windows of ",
                       "valid elements, or {.counts_padding = true} for padding as elements of ",
                       "value 0"));
}

const Dims& sample_dims() {
  static const Dims& dims = *[] {
    const Dim batch("batch", 2);
    return new Dims{batch, Dim("time", tensor({3, 1}, {batch})), Dim("feature", 2)};
  }();
  return dims;
}

}  // namespace reel
