#include "reel/trace/executors/plan/row_blocks/loop_blocks.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

void LoopBlocks::make(const PlannedLoop& whole) {
  whole_ = &whole;
  cut_ = find_row_cut(whole.loop(), whole.input_types, whole.context.passes);
  if (cut_) find_body();
  blocks_.resize(cut_ ? cut_->blocks.size() : 0);
  for (std::size_t number = 0; number < blocks_.size(); ++number)
    if (!plan(blocks_[number], cut_->blocks[number], number)) blocks_.clear();
  make_partial_sums();
  is_joined_planned_ = false;
}

void LoopBlocks::find_body() {
  const GraphRef& whole = whole_->loop().body.graph;
  if (body_.whole != whole || body_.axes != cut_->axes)
    body_ = {whole, cut_->axes, body_on_rows(*whole, cut_->axes)};
}

void LoopBlocks::make_partial_sums() {
  partial_sums_.resize(blocks_.size());
  for (std::size_t number = 1; number < blocks_.size(); ++number) {
    partial_sums_[number].resize(cut_->sums.size());
    for (std::size_t i = 0; i < cut_->sums.size(); ++i)
      if (cut_->sums[i] == RowCut::Sum::over_rows)
        partial_sums_[number][i] = Tensor(allocate_block(
            whole_->body->output_type(body_output_number(whole_->loop(), {LeafKind::sum, i}))));
  }
}

bool LoopBlocks::plan(std::unique_ptr<PlannedLoop>& block, std::int64_t rows,
                      std::size_t profile) const {
  const LoopAttrs loop = on_body(whole_->loop(), body_.row_body);
  const Dim part = cut_->dim.is_named() ? Dim(cut_->dim.name(), rows) : Dim(rows);
  const auto on_part = [&](const TensorType& type, std::size_t axis) {
    Dims dims = type.dims();
    dims[axis] = part;
    return type.with(dims);
  };
  std::vector<TensorType> types = whole_->input_types;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (cut_->has_rows[i])
      types[i] = on_part(types[i], operand_at(loop, i).is(LeafKind::slice) ? 1 : 0);
  if (body_.row_body.takes_numbers) types.emplace_back(i64, Dims{Dim(rows + 1)});
  if (!block)  // otherwise rebound to other dims
    block =
        std::make_unique<PlannedLoop>(whole_->context.child(PlannedLoop::kFirstBlock + profile));
  try {
    if (!block->try_plan(make_attrs(restrict_to_rows(loop, cut_->dim, part)), types,
                         !loop.has_entries()))
      return false;
  } catch (const MemoryError&) {
    throw;  // with more memory it would be cut: results must not depend on free memory
  } catch (const Error&) {  // an op depends on the number of rows
    return false;
  }
  for (std::size_t k = 0; k < loop.body.graph->outputs.size(); ++k) {
    const LoopLeaf leaf = body_output_at(loop, k);
    if (leaf.is(LeafKind::carry)) continue;
    const TensorType &of_block = block->body->output_type(k),
                     &of_all = whole_->body->output_type(k);
    const bool has_rows =
        leaf.is(LeafKind::stack) || cut_->sums[leaf.index] == RowCut::Sum::has_rows;
    if (!(of_block == (has_rows ? on_part(of_all, 0) : of_all))) return false;
  }
  return true;
}

bool LoopBlocks::can_run(std::span<const Tensor> out) const {
  if (blocks_.empty()) return false;
  const auto results = results_of(whole_->loop(), out);
  const auto are_defined = [](std::span<const Tensor> tensors) {
    return std::all_of(tensors.begin(), tensors.end(),
                       [](const Tensor& tensor) { return tensor.is_defined(); });
  };
  return are_defined(results.carries) && are_defined(results.stacks) && are_defined(results.sums);
}

bool LoopBlocks::plan_joined() {
  if (!ends()) return joined_.try_plan(*whole_, *cut_);
  // Profiles count them as one: an iteration covers all rows that run in it.
  return shrinking_.try_plan(*cut_, [this](std::unique_ptr<PlannedLoop>& loop, std::int64_t rows) {
    return plan(loop, rows, 0);
  });
}

void LoopBlocks::run(OpInputs in, std::span<Tensor> out) {
  if (cut_->can_join && !is_joined_planned_ && threads() == 1) {
    cut_->can_join = plan_joined();
    is_joined_planned_ = true;
  }
  if (runs_joined())
    return ends() ? shrinking_.run(whole_->loop(), *cut_, in, out) : joined_.run(in, out);
  const std::vector<BlockOfRows> blocks = cut_->rows_of_blocks(whole_->loop(), in);
  parallel_for(static_cast<int>(blocks.size()), [&](int i) {
    const auto& [rows, lengths] = blocks[static_cast<std::size_t>(i)];
    PlannedLoop& block = *blocks_[static_cast<std::size_t>(i)];
    BlockRows here(block, *cut_, rows, lengths, in, out, i == 0,
                   partial_sums_[static_cast<std::size_t>(i)]);
    const std::vector<OpInput> views(here.inputs().begin(), here.inputs().end());
    LoopRun(block, views, here.outputs(), &here).run();
    here.finish();
  });
  const auto sums = results_of(whole_->loop(), out).sums;
  for (const Tensors& of_block : partial_sums_)
    for (std::size_t i = 0; i < of_block.size(); ++i)
      if (of_block[i].is_defined()) add_to(sums[i], of_block[i]);
}

}  // namespace reel
