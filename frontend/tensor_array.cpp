#include "reel/frontend/tensor_array.h"

#include <algorithm>

#include "reel/core/errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list.h"
#include "reel/core/ops/new_dims.h"
#include "reel/core/str.h"

namespace reel {

TensorArray::TensorArray(TensorType element, TensorArrayOptions options)
    : may_grow_(options.dynamic_size) {
  if (options.size < 0)
    throw ArgumentError(str("TensorArray: size must not be negative, got ", options.size));
  list_ = list_new(element, options.size);
}

TensorArray TensorArray::of_list(Tensor list) {
  TensorArray array;
  array.list_ = std::move(list);
  return array;
}

TensorArray TensorArray::with_list(Tensor list) const {
  TensorArray array = *this;
  array.list_ = std::move(list);
  return array;
}

TensorArray TensorArray::unstack(const Tensor& x, const Axis& axis) {
  const int position = axis.in(x.type(), "TensorArray unstack");
  const Tensor shown = clear_padding(x, position);
  if (position == 0) return of_list(list_unstack(shown));
  std::vector<Axis> order{position};
  for (int i = 0; i < x.rank(); ++i)
    if (i != position) order.push_back(i);
  return of_list(list_unstack(transpose(shown, order)));
}

Tensor TensorArray::checked(const Tensor& x, const char* op) const {
  if (!is_defined())
    throw ArgumentError(str("TensorArray ", op, ": the array was made without an element type"));
  const TensorType element = element_type();
  if (x.dtype() != element.dtype())
    throw DTypeError(str("TensorArray ", op, ": an element of type ", x.type(),
                         " does not fit an array of ", element, ": dtypes differ; cast it to ",
                         element.dtype()));
  bool fits = x.rank() == element.rank();
  bool permuted = false;
  for (int i = 0; fits && i < x.rank(); ++i) {
    const Dim &mine = x.dims()[i], &wanted = element.dims()[i];
    if (mine == wanted) continue;
    if (mine.is_named() && wanted.is_named() && contains(element.dims(), mine)) {
      permuted = true;
      continue;
    }
    const bool either_unknown =
        !mine.is_named() && !wanted.is_named() && !(mine.has_size() && wanted.has_size());
    fits = either_unknown;
  }
  if (!fits)
    throw ShapeError(str("TensorArray ", op, ": an element of type ", x.type(),
                         " does not fit an array of ", element, ": dims differ"));
  return permuted ? transpose(x, element.dims()) : x;
}

TensorArray TensorArray::push_back(const Tensor& x) const {
  const Tensor element = checked(x, "push_back");
  return with_list(list_write(list_, element, list_size(list_), true));
}

TensorArray TensorArray::write(const Tensor& index, const Tensor& x) const {
  const Tensor element = checked(x, "write");
  return with_list(list_write(list_, element, index, may_grow_));
}
TensorArray TensorArray::write(std::int64_t index, const Tensor& x) const {
  return write(scalar(index), x);
}

Tensor TensorArray::read(const Tensor& index) const {
  return list_read(list_, list_index(list_, index));
}
Tensor TensorArray::read(std::int64_t index) const { return read(scalar(index)); }

Tensor TensorArray::stack() const { return list_stack(list_, std::nullopt); }
Tensor TensorArray::stack(const Dim& dim) const { return list_stack(list_, dim); }
Tensor TensorArray::size() const { return list_size(list_); }

}  // namespace reel
