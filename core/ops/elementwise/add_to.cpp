#include "reel/core/ops/elementwise/add_to.h"

#include "reel/core/op/op.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/runtime/memory.h"

namespace reel {

void add_to(const Tensor& to, const Tensor& term) {
  const Tensor copy = to;
  Tensor out = to;
  const OpInput in[] = {copy, term};
  KernelArgs args{add_op, nullptr, in, false, {&to.type(), 1}, {&out, 1}};
  add_op.kernel(args);
}

__attribute__((optimize("O3"))) void add_block(Tensor& blocks, const Tensor& block) {
  const bool is_first = !blocks.is_defined();
  if (is_first) blocks = Tensor(allocate_block(block.type().with(f64)));
  double* __restrict to = blocks.data<double>();
  const float* __restrict from = block.data<float>();
  for (std::int64_t i = 0, count = block.numel(); i < count; ++i)
    to[i] = is_first ? static_cast<double>(from[i]) : to[i] + static_cast<double>(from[i]);
}

}  // namespace reel
