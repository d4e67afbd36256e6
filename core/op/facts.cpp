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

bool is_linear_in(const Op& op, const Attrs* attrs, std::uint32_t in, std::uint32_t zeros,
                  std::size_t operands) {
  if (!op.vjp || !gives_zero(op, attrs, in | zeros, operands)) return false;
  const OpReads reads = reads_of(op, attrs, in);
  return !(reads.inputs & in) && !reads.outputs;
}

Failures failures_of(const Op& op, const Attrs* attrs) {
  if (op.has_effect) return {};
  if (op.fails) return op.fails(attrs);
  if (op.pointwise && !op.kernel_decides_types) return {0, op.storage != OpStorage::own};
  return {};
}

bool repeats_elements(const OpCall& call) {
  if (call.in.empty() || !call.op.axes || call.op.kernel_decides_types) return false;
  const AxisFactors factors = axis_factors(call);
  for (int axis = 0; axis < call.out[0].rank(); ++axis) {
    const int factor = factors.out(0, axis);
    if (factors.role(factor) == Role::repeated && factors.axis_in(0, factor) < 0) return true;
  }
  return false;
}

bool makes_view(const OpCall& call) {
  if (call.op.storage != OpStorage::input) return call.op.storage != OpStorage::own;
  return !call.op.makes_view || call.op.makes_view(call);
}

}  // namespace reel
