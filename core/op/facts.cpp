#include "reel/core/op/facts.h"

namespace reel {

bool gives_zero(const Op& op, const Attrs* attrs, std::uint32_t zeros, std::size_t operands) {
  if (op.zero_if) return op.zero_if(attrs, zeros);
  if (!operands || !op.vjp) return false;
  // The cotangent of an operand of a product is a product with the other operand.
  if (op.reads_by == reads_the_other) return (zeros & 0b11) != 0;
  const OpReads reads = reads_of(op, attrs, kAll);
  return !reads.inputs && !reads.outputs && zeros == kAll;
}

Failures failures_of(const Op& op, const Attrs* attrs) {
  if (op.has_effect) return {};
  if (op.fails) return op.fails(attrs);
  if (op.pointwise && !op.kernel_decides_types) return {0, op.storage != OpStorage::own};
  return {};
}

bool makes_view(const OpCall& call) {
  if (call.op.storage != OpStorage::input) return call.op.storage != OpStorage::own;
  return !call.op.makes_view || call.op.makes_view(call);
}

}  // namespace reel
