#include "reel/core/ops/loop/loop_sums.h"

#include <array>

#include "reel/core/ops/elementwise/elementwise.h"

namespace reel {

ValueId append_to_sum(Graph& to, ValueId total, ValueId term) {
  const ValueId next = to.add_value(TensorType(to.types[term]));
  to.append(add_op, {}, std::array{total, term}, std::array{next});
  return next;
}

}  // namespace reel
