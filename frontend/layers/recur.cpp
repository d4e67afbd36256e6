#include "reel/frontend/layers/recur.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/axis.h"

namespace reel::detail {

void check_xs(const Tensor& xs, const Dim& dim, const Dim& in, std::string_view name) {
  if (!xs.is_defined()) throw ArgumentError(str(name, ": xs are an empty Tensor"));
  if (dim == in)
    throw ArgumentError(str(name, ": ", dim,
                            " is the input dim of the cell; run along another dim of ", xs.type()));
  for (const Dim& needed : {dim, in}) Axis(needed).in(xs.type(), str(name, ": xs"));
}

Dims state_dims(const Tensor& xs, const Dim& dim, const Dim& in) {
  Dims dims;
  for (const Dim& of : xs.dims())
    if (!(of == dim) && !(of == in)) dims.push_back(of);
  for (const Dim& of : dim.length_dims())
    if (!contains(dims, of)) dims.push_back(of);
  return dims;
}

}  // namespace reel::detail
