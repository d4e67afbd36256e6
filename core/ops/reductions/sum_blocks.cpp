#include "reel/core/ops/reductions/sum_blocks.h"

#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"

namespace reel {
namespace {

void sum_blocks_rule(TypeArgs& a) {
  const SumBlocksAttrs& attrs = a.attr<SumBlocksAttrs>();
  Dims dims = reduced_type(a.in[0], attrs.axes).dims();
  dims.insert(dims.begin(), attrs.blocks);
  a.out.push_back(a.in[0].with(dims));
}

void sum_blocks_kernel(KernelArgs& args) {
  const SumBlocksAttrs& attrs = args.attr<SumBlocksAttrs>();
  const Tensor& x = args.input(0);
  const Reduced all = view_axes(x.type(), attrs.axes);
  reduction_table().sum[static_cast<int>(x.dtype())](
      x.data<void>(), args.make().data<void>(),
      {attrs.blocks.size(), all.n / attrs.blocks.size(), all.inner});
}

}  // namespace

const Op sum_blocks_op{
    .name = "sum_blocks",
    .type = sum_blocks_rule,
    .kernel = sum_blocks_kernel,
    .no_vjp = "made of graphs whose gradients are taken already",
    .samples =
        [] {
          const auto sample = [](const Dims& dims, std::vector<int> axes, const Dim& blocks) {
            return OpSample{{{TensorType(f32, dims)}},
                            make_attrs(SumBlocksAttrs{std::move(axes), blocks})};
          };
          return OpSamples{sample({4, 3}, {0}, 2), sample({6, 2, 5}, {0, 1}, 3),
                           sample({Dim("batch", 4), Dim("feature", 7)}, {0}, Dim("blocks", 4))};
        },
};

namespace {
const Op* const kSumBlocksOps[] = {&sum_blocks_op};
}
std::span<const Op* const> sum_blocks_ops() { return kSumBlocksOps; }

}  // namespace reel
