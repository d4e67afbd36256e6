#include "reel/frontend/losses.h"

#include <algorithm>

#include "reel/core/errors.h"
#include "reel/core/ops.h"
#include "reel/core/str.h"

namespace reel {
namespace {

void check_dtypes(const TensorType& logits, const TensorType& targets) {
  if (!is_float(logits.dtype()))
    throw DTypeError(str("cross_entropy: logits must be f32 or f64, got ", logits, "; cast them"));
  if (!is_integer(targets.dtype()))
    throw DTypeError(
        str("cross_entropy: targets must be i32 or i64, the positions of the right classes, got ",
            targets));
}

/// Targets have the dims of logits without the classes; sizes that a trace does not know fit.
void check_dims(const TensorType& logits, const TensorType& targets, int axis) {
  Dims expected = logits.dims();
  expected.erase(expected.begin() + axis);
  bool fits = expected.size() == targets.dims().size();
  for (std::size_t i = 0; fits && i < expected.size(); ++i) {
    const Dim& dim = targets.dims()[i];
    if (logits.is_named() || targets.is_named())
      fits = dim.is_named() && contains(expected, dim);
    else
      fits = dim == expected[i] || !dim.has_size() || !expected[i].has_size();
  }
  if (!fits)
    throw ShapeError(str("cross_entropy: targets must have the dims of logits but the classes, ",
                         expected, ": logits ", logits, ", classes ",
                         logits.dims()[static_cast<std::size_t>(axis)], ", targets ", targets));
}

/// Plain axes get names, so that gather takes one element for every position.
void name_axes(Tensor& logits, Tensor& targets, int axis) {
  Dims dims;
  for (const Dim& dim : logits.dims()) dims.emplace_back("axis", dim.size());
  logits = reshape(logits, dims);
  dims.erase(dims.begin() + axis);
  targets = reshape(targets, dims);
}

}  // namespace

Tensor cross_entropy(const Tensor& given_logits, const Tensor& given_targets, const Axis& classes) {
  Tensor logits = given_logits, targets = given_targets;
  check_dtypes(logits.type(), targets.type());
  const int axis = classes.in(logits.type(), "cross_entropy");
  check_dims(logits.type(), targets.type(), axis);
  // A negative target would count from the end, as indices do: further below it is out of range for
  // gather too.
  if (const Dim& dim = logits.dims()[static_cast<std::size_t>(axis)]; dim.has_size())
    targets = where(targets < 0, targets - dim.size(), targets);
  if (!logits.type().is_named() && logits.rank() > 1) name_axes(logits, targets, axis);
  // NaN in padding would reach its gradient through softmax; selected away, it is nowhere.
  const Tensor log_p = log_softmax(mask_padding(logits), axis);
  return -mean(gather(log_p, targets, axis));
}

}  // namespace reel
