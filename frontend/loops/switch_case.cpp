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

BranchNames names_of_branches(std::size_t first, std::size_t second) {
  return {.function = "switch_case",
          .true_branch = str("branch ", first),
          .false_branch = str("branch ", second),
          .on_true = str("in branch ", first),
          .on_false = str("in branch ", second)};
}

}  // namespace reel::detail
