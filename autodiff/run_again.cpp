#include "reel/autodiff/run_again.h"

#include "reel/core/functions/shape.h"
#include "reel/core/ops/list/list.h"

namespace reel {

Tensor with_named_dims_of(const Tensor& x, const TensorType& again) {
  if (is_unranked(x)) return x;
  Dims dims = x.dims();
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    if (again.dims()[axis].is_named()) dims[axis] = again.dims()[axis];
  if (dims == x.dims()) return x;
  if (x.type().is_list()) return list_resized(x, dims);
  Tensor result = x;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!(dims[axis] == x.dims()[axis])) result = rename(result, axis, dims[axis]);
  return result;
}

void add_cotangents_of(Vjp& at, RecordingTape& tape, const Tensors& outputs,
                       const Tensors& cotangents, const Tensors& sources,
                       const std::vector<std::size_t>& places) {
  Tensors targets, given, presences;
  std::vector<TableRows> rows;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!cotangents[k].is_defined()) continue;
    targets.push_back(outputs[k]);
    given.push_back(cotangents[k]);
  }
  const Tensors gradients = tape.gradient(targets, given, sources, &presences, &rows);
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (rows[k].values.is_defined()) at.add_rows(places[k], rows[k].values, rows[k].numbers);
    if (gradients[k].is_defined() && presences[k].is_defined())
      at.add(places[k], gradients[k], presences[k]);
    else if (gradients[k].is_defined())
      at.add(places[k], gradients[k]);
  }
}

}  // namespace reel
