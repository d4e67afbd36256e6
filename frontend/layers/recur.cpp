#include "reel/frontend/layers/recur.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/axis.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/types/empty_tensor.h"
#include "reel/frontend/layers/bidirectional.h"

namespace reel::detail {

void check_xs(const Tensor& xs, const Dim& dim, const Dim& in, std::string_view name) {
  if (!xs.is_defined())
    throw ArgumentError(str(name, ": xs are an empty Tensor", kEmptyTensorRepair));
  if (dim == in)
    throw ArgumentError(str(name, ": ", dim,
                            " is the input dim of the cell; run along another dim of ", xs.type()));
  Axis(dim).in(xs.type(), str(name, ": xs"));
  if (find(xs.dims(), in) >= 0) return;
  if (!in.is_named())
    throw ArgumentError(str(name, ": the cell has no input dim; make it with init"));
  const std::string hint = missing_dim_hint(xs.type(), in);
  throw ShapeError(str(name, ": xs ", xs.type(), " has no dim ", in, ", which the cell takes",
                       hint.empty() ? "; make the cell with a dim of xs" : hint));
}

void check_features(const std::string& function, const Dim& forward, const Dim& backward,
                    const Dim& out, const std::string& taker) {
  if (!forward.has_size() || !backward.has_size() || !out.has_size()) return;
  const std::int64_t size = forward.size() + backward.size();
  if (out.size() == size) return;
  throw ShapeError(str(function, ": both directions together have ", forward.size(), " + ",
                       backward.size(), " = ", size, " features, but ", taker, " is ", out,
                       "; make it of size ", size));
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
