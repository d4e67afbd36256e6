#include "reel/trace/executors/plan/row_blocks/joined_blocks.h"

#include "reel/core/ops/elementwise/add_to.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/passes/rows/sums_by_block.h"

namespace reel {

bool JoinedBlocks::try_plan(const PlannedLoop& whole, const RowCut& cut) {
  std::vector<std::size_t> over_rows;
  for (std::size_t i = 0; i < cut.sums.size(); ++i)
    if (cut.sums[i] == RowCut::Sum::over_rows) over_rows.push_back(i);
  const std::int64_t count = std::ssize(cut.blocks);
  const Dim blocks = cut.dim.is_named() ? Dim("blocks", count) : Dim(count);
  loop_ = std::make_unique<PlannedLoop>(whole.context);
  if (!loop_->try_plan(make_attrs(with_sums_by_block(whole.loop(), over_rows, blocks)),
                       whole.input_types))
    return false;
  sums_.clear();
  for (const std::size_t i : over_rows) {
    const std::size_t k = body_output_number(whole.loop(), {LeafKind::sum, i});
    Sum sum{k, Tensor(allocate_block(loop_->body->output_type(k))), {}};
    count_as(sum.all, MemoryClass::buffers);
    const TensorType& of_block = whole.body->output_type(k);
    for (std::int64_t b = 0; b < count; ++b)
      sum.blocks.push_back(placed(of_block, sum.all.data<char>() + b * of_block.bytes()));
    sums_.push_back(std::move(sum));
  }
  return true;
}

void JoinedBlocks::run(OpInputs in, std::span<Tensor> out) {
  outputs_.assign(out.begin(), out.end());
  for (const Sum& sum : sums_) outputs_[sum.output] = sum.all;
  LoopRun(*loop_, in, outputs_).run();
  for (const Sum& sum : sums_) {
    Tensor& all = out[sum.output];
    copy_elements(all.data<void>(), sum.blocks[0]);
    for (std::size_t b = 1; b < sum.blocks.size(); ++b) add_to(all, sum.blocks[b]);
    outputs_[sum.output] = Tensor();
  }
  for (std::size_t k = 0; k < out.size(); ++k)
    if (outputs_[k].is_defined()) out[k] = std::move(outputs_[k]);
}

}  // namespace reel
