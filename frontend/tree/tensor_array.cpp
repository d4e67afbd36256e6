#include "reel/frontend/tree/tensor_array.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"
#include "reel/frontend/tree/leaves.h"

namespace reel {

TensorArray::TensorArray(TensorType element, TensorArrayOptions options) {
  if (options.size < 0)
    throw ArgumentError(str("TensorArray: size must not be negative, got ", options.size));
  checked_i32(options.size, "TensorArray", "size");
  list_ = list_new(element, options.size, options.dynamic_size);
}

TensorArray TensorArray::of_list(Tensor list) {
  TensorArray array;
  array.list_ = std::move(list);
  return array;
}

const Tensor& TensorArray::list_for(const char* op) const {
  if (!is_defined())
    throw ArgumentError(str("TensorArray ", op, ": the array was made without an element type"));
  return list_;
}

TensorArray TensorArray::unstack(const Tensor& x, const Axis& axis) {
  const int position = axis.in(x, "TensorArray unstack");
  const Tensor shown = clear_padding(x, position);
  if (position == 0) return of_list(list_unstack(shown));
  std::vector<Axis> order{position};
  for (int i = 0; i < x.rank(); ++i)
    if (i != position) order.push_back(i);
  return of_list(list_unstack(transpose(shown, order)));
}

Tensor TensorArray::checked(const Tensor& x, const char* op) const {
  const TensorType element = list_for(op).type().element();
  check_defined(str("TensorArray ", op), x);
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
  for (const Dim& mine : x.dims())
    for (const Dim& wanted : element.dims())
      if (!fits && mine.is_named() && !(mine == wanted) && shared_whole(mine, wanted))
        throw ShapeError(str("TensorArray ", op, ": ", mine, " of an element of type ", x.type(),
                             " has the lengths of a slice, which an array of ", element,
                             " cannot hold: its elements have one type; let a scan return such ",
                             "elements as ys, which have the lengths of each"));
  if (!fits)
    throw ShapeError(str("TensorArray ", op, ": an element of type ", x.type(),
                         " does not fit an array of ", element, ": ",
                         detail::dims_differ(x.type(), element),
                         "; give every element the dims of the array's, in which sizes that differ "
                         "are unknown"));
  return permuted ? transpose(x, element.dims()) : x;
}

TensorArray TensorArray::split(const Tensor& x, const Tensor& lengths) {
  return of_list(list_split(x, lengths));
}

TensorArray TensorArray::push_back(const Tensor& x) const {
  const Tensor element = checked(x, "push_back");
  return of_list(list_push(list_, element));
}
TensorArray TensorArray::write(const Tensor& index, const Tensor& x) const {
  const Tensor element = checked(x, "write");
  return of_list(list_write(list_, element, index));
}
TensorArray TensorArray::write(std::int64_t index, const Tensor& x) const {
  return write(scalar(index, i64), x);
}
TensorArray TensorArray::scatter(const Tensor& indices, const Tensor& x) const {
  return of_list(list_scatter(list_for("scatter"), x, indices));
}

Tensor TensorArray::read(const Tensor& index) const { return list_read(list_for("read"), index); }
Tensor TensorArray::read(std::int64_t index) const { return read(scalar(index, i64)); }
Tensor TensorArray::gather(const Tensor& indices) const {
  return list_gather(list_for("gather"), indices);
}

Tensor TensorArray::stack() const {
  return as_function("TensorArray stack",
                     [&] { return list_stack(list_for("stack"), std::nullopt); });
}
Tensor TensorArray::stack(const Dim& dim) const {
  return as_function("TensorArray stack", [&] { return list_stack(list_for("stack"), dim); });
}
Tensor TensorArray::concat() const { return list_concat(list_for("concat")); }
Tensor TensorArray::size() const { return list_size(list_for("size")); }

}  // namespace reel
