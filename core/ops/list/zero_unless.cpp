#include "reel/core/ops/list/zero_unless.h"

#include <cstring>

#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/sizes.h"

namespace reel {

namespace {

/// Iterations that differ in the boolean select by where. An x of another size than its like
/// remains in its iteration.
Tensors zero_unless_across_iterations(const IterationBatch& at) {
  const Dims dims = at.with_time(at.step_out[0].dims());
  if (at.in[1].type().is_list()) return {};
  const Tensor x = at.many(1), &present = at.in[0];
  if (x.dims() != dims) return {};
  if (!at.is_many[0]) return {zero_unless(present, x)};
  if (x.type().is_named()) return {where(present, x, 0)};
  Dims behind(dims.size(), Dim(1));
  behind[0] = dims[0];
  return {where(reshape(present, behind), x, 0)};
}

}  // namespace

const Op zero_unless_op{
    .name = "zero_unless",
    .type =
        [](TypeArgs& a) {
          check_operand("zero_unless", "the condition", a.in[0], TensorType(boolean));
          a.out.push_back(a.in[a.in.size() - 1]);  // x, or its like
        },
    .kernel =
        [](KernelArgs& a) {
          const Tensor& x = a.input(1);
          if (x.type().is_list()) {
            ModeScope plain({});
            a.out[0] = *a.input(0).data<bool>() ? x : list_zeros_like(x);
            return;
          }
          Tensor& result = a.make();
          const auto bytes = static_cast<std::size_t>(result.type().bytes());
          char* out = result.data<char>();
          if (!bytes) return;
          if (!*a.input(0).data<bool>()) {  // x may then have other sizes
            std::memset(out, 0, bytes);
            return;
          }
          if (x.type().bytes() != result.type().bytes())
            check_operand("zero_unless", "the value", x.type(), result.type());
          std::memcpy(out, x.data<char>(), bytes);
        },
    .vjp = [](Vjp& at) { at.add(1, zero_unless(at.input(0), at.cotangent()), at.input(0)); },
    .reads = {.inputs = 0b01},
    .samples =
        [] {
          const Dim batch("batch", 3);
          const SampleInput present{TensorType(boolean), 0, 1, false};
          return OpSamples{
              {{present, {TensorType(f32, {batch, Dim("width", 2)})}}},
              {{present, {TensorType(f64)}}},
              {{present, {TensorType(f32, {0, 3})}}},
              {{present, {TensorType(f32, {2})}, {TensorType(f32, {2}), -2, 2, false}}}};
        },
    .takes_lists = 0b110,
    .iteration_batching = zero_unless_across_iterations,
    .takes_unranked = true,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          for (std::size_t i = 1; i < call.in.size(); ++i) axes_beside(-1, i, call, f);
        },
    // A present value must have the sizes of its like.
    .fails = [](const Attrs*) { return Failures{.values = 0b1}; },
};

Tensor zero_unless(const Tensor& present, Tensor x) {
  return bind(zero_unless_op, {present, std::move(x)});
}
Tensor zero_unless(const Tensor& present, Tensor x, const Tensor& like) {
  return bind(zero_unless_op, {present, std::move(x), like});
}

namespace {
const Op* const kOps[] = {&zero_unless_op};
}
std::span<const Op* const> zero_unless_ops() { return kOps; }

}  // namespace reel
