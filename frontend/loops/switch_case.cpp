#include "reel/frontend/loops/switch_case.h"

#include "reel/core/base/str.h"
#include "reel/core/ops.h"

namespace reel::detail {

Tensor checked_branch_index(const Tensor& index) {
  if (!index.is_defined()) throw ArgumentError("switch_case: index is an empty Tensor");
  if (!is_integer(index.dtype()))
    throw DTypeError(str("switch_case: index must be an integer, got ", index.type()));
  if (index.rank())
    throw ShapeError(str("switch_case: index must be a scalar, got ", index.type()));
  return cast(index, i64);
}

}  // namespace reel::detail
