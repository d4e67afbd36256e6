#include "reel/core/types/tensor.h"

#include <cmath>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/types/empty_tensor.h"
#include "reel/core/types/mode.h"

namespace reel {

void Tensor::refuse_empty() {
  throw ArgumentError(str("an empty Tensor has no type and no value", kEmptyTensorRepair));
}

void refuse_unranked(const TensorType& type) {
  throw TraceError(str("the rank of a tensor of type ", type,
                       " is known only when the graph runs, because the body of a while_loop "
                       "changes it; give it a shape with ensure_shape, or use it in print, stack, "
                       "or as result of the loop"));
}

void check_defined(std::string_view function, const Tensor& x) {
  if (!x.is_defined()) throw ArgumentError(str(function, ": ", kGivenEmptyTensor));
}

Dim Tensor::dim(std::string_view name) const {
  const Dim* found = nullptr;
  for (const Dim& dim : dims()) {
    if (!dim.is_named() || dim.name() != name) continue;
    if (found)
      throw ShapeError(str("dim(\"", name, "\"): ", type(),
                           " has two dims of that name; take one by its position"));
    found = &dim;
  }
  if (!found) throw ShapeError(str("dim(\"", name, "\"): ", type(), " has no dim of that name"));
  return *found;
}

Dim Tensor::dim(int axis) const {
  if (axis < -rank() || axis >= rank())
    throw IndexError(str("dim(", axis, "): ", type(), " has ", rank(), " axes"));
  return dims()[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)];
}

std::vector<std::int64_t> Tensor::shape() const {
  for (const Dim& dim : dims())
    if (!dim.has_size())
      throw TraceError(str("shape: the size of dim ", dim, " of ", type(),
                           " is not known while tracing; use dim.lengths(), or range(dim)"));
  return type().sizes();
}

std::int64_t Tensor::numel() const {
  if (!type().is_known())
    throw TraceError(
        str("numel: not all sizes of ", type(), " are known while tracing; use dim.lengths()"));
  return type().numel();
}

const void* Tensor::checked_data(DType expected, const char* what) const {
  if (!is_defined()) throw ArgumentError(str(what, ": ", kGivenEmptyTensor));
  const TensorBlock& block = checked();
  if (block.kind == BlockKind::promise && !is_tracing())
    throw TraceError(str(what, ": ", leak_text(block)));
  if (block.kind == BlockKind::promise)
    throw TraceError(str(
        what, ": the value of a tensor of type ", block.type,
        " is not known while tracing, so it cannot ",
        "steer C++; use cond, while_loop, scan or where, or return it from the traced function"));
  if (block.kind == BlockKind::list)
    throw ArgumentError(
        str(what, ": a TensorArray (", block.type, ") is no tensor; read or stack its elements"));
  if (block.type.dtype() != expected)
    throw DTypeError(str(what, ": asked for elements of type ", expected, " of a tensor of type ",
                         block.type, "; cast it to ", expected, ", or ask for ",
                         block.type.dtype()));
  return block.data;
}

const void* Tensor::checked_item() const {
  const void* data = checked_data(is_defined() ? dtype() : f32, "item");
  if (type().numel() != 1)
    throw ShapeError(
        str("item: a tensor of type ", type(), " has ", type().numel(), " elements, not one"));
  return data;
}

double Tensor::item_number() const {
  const void* data = checked_item();
  return visit(dtype(), [&](auto zero) {
    return static_cast<double>(*static_cast<const decltype(zero)*>(data));
  });
}

std::int64_t Tensor::item_integer(std::int64_t lowest, std::int64_t largest) const {
  const void* data = checked_item();
  return visit(dtype(), [&](auto zero) -> std::int64_t {
    const auto value = *static_cast<const decltype(zero)*>(data);
    bool fits = true;
    if constexpr (std::is_floating_point_v<decltype(zero)>)  // 2^63 itself does not fit
      fits = value >= -0x1p63 && value < 0x1p63 && std::trunc(value) == value;
    const auto integer = fits ? static_cast<std::int64_t>(value) : 0;
    if (!fits || integer < lowest || integer > largest)
      throw ArgumentError(str("item: ", value, " of type ", type(), " is no integer from ", lowest,
                              " to ", largest, "; ask for a type that holds it, or cast it"));
    return integer;
  });
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const T* data = static_cast<const T*>(checked_data(dtype_of<T>(), "to_vector"));
  return std::vector<T>(data, data + type().numel());
}

template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<std::int32_t> Tensor::to_vector<std::int32_t>() const;
template std::vector<std::int64_t> Tensor::to_vector<std::int64_t>() const;
template std::vector<bool> Tensor::to_vector<bool>() const;

}  // namespace reel
