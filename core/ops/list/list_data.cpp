#include "reel/core/ops/list/list_data.h"

#include <limits>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/runtime/residual_source.h"

namespace reel {
namespace {

/// True if x may be an element: same dtype and dims, except for sizes that one side lacks.
bool fits(const TensorType& x, const TensorType& element) {
  if (x.dtype() != element.dtype() || x.rank() != element.rank()) return false;
  for (int i = 0; i < x.rank(); ++i) {
    const Dim &a = x.dims()[i], &b = element.dims()[i];
    if (a == b) continue;
    if (a.is_named() || b.is_named() || (a.has_size() && b.has_size())) return false;
  }
  return true;
}

}  // namespace

Ref<ListData> editable(const KernelArgs& a, std::size_t i) {
  const Tensor& list = a.input(i);
  TensorBlock* block = list.block();
  if (a.may_take(i) && list.ref().unique() && block->attachment.unique())
    return Ref<ListData>(
        const_cast<ListData*>(static_cast<const ListData*>(block->attachment.get())));
  Ref<ListData> copy(new ListData);
  copy->items = items_of(list);
  copy->may_grow = data_of(list).may_grow;
  return copy;
}

void each_element(const Tensor& list, const std::function<void(std::int64_t, const Tensor&)>& fn) {
  const ResidualValue* const residual = residual_value(list);
  if (!residual) return items_of(list).each(fn);
  const std::lock_guard lock(residual->steps->mutex);
  for (std::int64_t i = residual->steps->count(); i-- > 0;) {
    residual->steps->need(i, 1);
    fn(i, residual->steps->tensor(residual->index, i));
  }
}

std::int64_t element_count(const Tensor& list) {
  const ResidualValue* const residual = residual_value(list);
  return residual ? residual->steps->count() : items_of(list).size();
}

void check_element(const TensorType& x, const TensorType& list, std::string_view op) {
  if (x.dtype() != list.dtype())
    throw DTypeError(str(op, ": an element of type ", x, " does not fit a TensorArray of ",
                         list.element(), ": dtypes differ; cast the element to ", list.dtype()));
  if (!fits(x, list.element()))
    throw ShapeError(str(op, ": an element of type ", x, " does not fit a TensorArray of ",
                         list.element(),
                         ": dims differ; give every element the dims of the array's, in which "
                         "sizes that differ are unknown",
                         one_dim_hint(x.dims(), list.element().dims())));
}

TensorType any_element(const TensorType& list) {
  const TensorType element = list.element();
  Dims dims = element.dims();
  for (Dim& dim : dims)
    if (is_unknown(dim)) dim = Dim::unknown();
  return element.with(dims);
}

Tensor element_or_zeros(const Tensor& list, std::int64_t index) {
  const Tensor& found = items_of(list).get(index);
  if (found.is_defined()) return found;
  const TensorType element = list.type().element();
  if (!element.is_known())
    throw IndexError(str("TensorArray: element ", index, " was never written, and its shape, ",
                         element, ", is not known"));
  return zeros(element);
}

void check_write(std::int64_t index, std::int64_t size, bool may_grow) {
  constexpr std::int64_t kMaxLength = std::numeric_limits<std::int32_t>::max();
  if (index < 0)
    throw IndexError(str("TensorArray write: index ", index,
                         " is negative; write counts positions from the front, and the array has ",
                         size, " elements"));
  if (index < size) return;
  if (index >= kMaxLength)
    throw IndexError(str("TensorArray write: index ", index, " is too large; an array has at most ",
                         kMaxLength, " elements"));
  if (may_grow) return;
  throw IndexError(str("TensorArray write: index ", index, " is out of range for ", size,
                       " elements; an array made with .dynamic_size = true grows"));
}

Dims behind(const Dim& dim, const TensorType& element) {
  return insert_dim(element.dims(), 0, dim);
}
TensorType without_first(const TensorType& x) { return x.with(without_dim(x.dims(), 0)); }

}  // namespace reel
