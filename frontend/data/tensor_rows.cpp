#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/data/batches.h"

namespace reel::detail {
namespace {

/// Returns the position of the axis, or -1 for a tensor that lacks a named one.
int axis_of(const Tensor& x, const Axis& axis) {
  check_defined("Batches", x);
  return axis.dim() && axis.dim()->is_named() ? find(x.dims(), *axis.dim()) : axis.in(x, "Batches");
}

/// True if a gradient is being computed with respect to the tensor, or to one that it comes from.
bool is_differentiated(const Tensor& x) {
  for (const Recorder* tape = thread_mode.tape; tape; tape = tape->outer)
    if (tape->is_tracked(x)) return true;
  return false;
}

[[noreturn]] void refuse_axis(const Tensors& tensors, const Dim& dim) {
  for (const Tensor& x : tensors)
    if (const std::string hint = lacking_dim_hint(dim, x.dims()); !hint.empty())
      throw ShapeError(
          str("Batches: no tensor has the dim of the rows, ", dim, "; one is ", x.type(), hint));
  throw ShapeError(str("Batches: no tensor has the dim of the rows, ", dim, "; the first one is ",
                       tensors[0].type()));
}

}  // namespace

TensorRows::TensorRows(const Tensors& tensors, const Axis& axis) : tensors_(tensors), axis_(axis) {
  const Dim* along = nullptr;
  for (const Tensor& x : tensors_) {
    if (x.is_traced())
      throw TraceError("Batches: its tensors are values of a trace; make it outside of the trace");
    // The thread that makes batches has no tapes.
    if (is_differentiated(x))
      throw ArgumentError(str("Batches: no gradient reaches ", x.type(),
                              " through batches; make them outside of the gradient, or take the "
                              "rows with gather"));
    const int at = axis_of(x, axis_);
    if (at < 0) continue;
    const Dim& dim = x.dims()[static_cast<std::size_t>(at)];
    if (dim.is_ragged())
      throw ShapeError(str("Batches: rows lie along a dim with one size, but ", dim, " of ",
                           x.type(), " is ragged"));
    if (along && !(*along == dim))
      throw ShapeError(str("Batches: the tensors have different numbers of rows, ", *along, " and ",
                           dim, ", the latter in ", x.type()));
    along = &dim;
  }
  if (tensors_.empty()) throw ShapeError("Batches: the data holds no tensor");
  if (!along) refuse_axis(tensors_, *axis_.dim());
  count_ = along->size();
  if (along->is_named()) axis_ = Axis(*along);  // batches get its name, also if it is a position
}

BatchOptions TensorRows::with_lengths(BatchOptions options) const {
  if ((!options.tokens && !options.bucket) || !options.lengths.empty()) return options;
  const ModeScope plain({});
  for (const Tensor& x : tensors_)
    for (const Dim& dim : x.dims())
      if (dim.is_ragged() && axis_.dim() && dim.length_dims() == Dims{*axis_.dim()}) {
        options.lengths = cast(dim.lengths(), i64).to_vector<std::int64_t>();
        return options;
      }
  return options;
}

Tensors TensorRows::take(const RowNumbers& rows, bool is_dynamic) const {
  const auto count = static_cast<std::int64_t>(rows.size());
  const Dim batch = batch_dim(axis_.dim() ? *axis_.dim() : Dim(count), count, is_dynamic);
  const Tensor numbers = tensor(rows, {batch});
  Tensors result;
  for (const Tensor& x : tensors_) {
    const int at = axis_of(x, axis_);
    result.push_back(at < 0 ? x : gather(x, numbers, at));
  }
  return result;
}

Dim batch_dim(const Dim& like, std::int64_t rows, bool is_dynamic) {
  if (!like.is_named()) return Dim(rows);
  return is_dynamic ? Dim(like.name(), scalar(rows)) : Dim(like.name(), rows);
}

}  // namespace reel::detail
