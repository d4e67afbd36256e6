#include "reel/core/op/list_operands.h"

#include "reel/core/base/str.h"
#include "reel/core/types/tensor_type.h"

namespace reel {

void check_list_operand(const Op& op, std::size_t operand, const TensorType& type) {
  if (type.is_array() && !takes_list(op, operand))
    throw StructureError(str(op.name, ": operand ", operand, " is a TensorArray (", type,
                             "), but the op takes a tensor; pass its stack()"));
}

}  // namespace reel
