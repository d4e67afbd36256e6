#include "reel/trace/executors/plan/loop_blocks.h"

#include <algorithm>

#include "reel/core/errors.h"
#include "reel/core/parallel.h"
#include "reel/trace/executors/plan/placed.h"

namespace reel {

void LoopBlocks::make(const PlannedLoop& whole) {
  blocks_.clear();
  whole_ = &whole;
  cut_ = find_row_cut(whole.loop(), whole.input_types);
  if (!cut_) return;
  for (const std::int64_t rows : cut_->blocks)
    if (!add(rows)) {
      blocks_.clear();
      return;
    }
}

bool LoopBlocks::add(std::int64_t rows) {
  const LoopAttrs& loop = whole_->loop();
  const Dim part = cut_->dim.is_named() ? Dim(cut_->dim.name(), rows) : Dim(rows);
  const auto on_part = [&](const TensorType& type, std::size_t axis) {
    Dims dims = type.dims();
    dims[axis] = part;
    return type.with(dims);
  };
  std::vector<TensorType> types = whole_->input_types;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (cut_->has_rows[i])
      types[i] = on_part(types[i], i >= loop.first_slice() && i < loop.first_capture() ? 1 : 0);
  auto block = std::make_unique<PlannedLoop>();
  try {
    if (!block->make(make_attrs(on_rows(loop, cut_->dim, part)), types)) return false;
  } catch (const Error&) {  // an op knows how many rows there are
    return false;
  }
  for (int j = 0; j < loop.stacks; ++j) {
    const std::size_t k = static_cast<std::size_t>(loop.carries + j);
    if (!(block->body->output_type(k) == on_part(whole_->body->output_type(k), 0))) return false;
  }
  blocks_.push_back(std::move(block));
  return true;
}

bool LoopBlocks::can_run(std::span<const Tensor> out) const {
  return !blocks_.empty() &&
         std::all_of(out.begin(),
                     out.begin() + static_cast<std::ptrdiff_t>(whole_->loop().first_sum()),
                     [](const Tensor& tensor) { return tensor.is_defined(); });
}

void LoopBlocks::run(OpInputs in, std::span<Tensor> out) {
  parallel_for(static_cast<int>(blocks_.size()),
               [&](int i) { run_block(static_cast<std::size_t>(i), in, out); });
}

/// The loop on the rows of one block, where they lie among the others.
void LoopBlocks::run_block(std::size_t number, OpInputs in, std::span<Tensor> out) {
  const LoopAttrs& loop = whole_->loop();
  PlannedLoop& block = *blocks_[number];
  std::int64_t first = 0;
  for (std::size_t i = 0; i < number; ++i) first += cut_->blocks[i];
  const std::int64_t all = cut_->dim.size();
  const auto rows_of = [&](const Tensor& whole, std::int64_t bytes, const TensorType& type) {
    return placed(type, whole.data<char>() + bytes / all * first);
  };

  Tensors inputs;
  Pitches pitches;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Tensor& input = *in[i].tensor;
    const bool is_slices = i >= loop.first_slice() && i < loop.first_capture();
    const std::int64_t bytes = is_slices ? slice_type(input.type()).bytes() : input.type().bytes();
    if (is_slices) pitches.slices.push_back(bytes);
    inputs.push_back(cut_->has_rows[i] ? rows_of(input, bytes, block.input_types[i]) : input);
  }
  Tensors outputs(out.size());
  for (int i = 0; i < loop.carries; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (cut_->carry_has_rows[k])
      outputs[k] =
          rows_of(out[k], out[k].type().bytes(), block.input_types[loop.first_carry() + k]);
    else if (number == 0)  // the same in all blocks
      outputs[k] = out[k];
  }
  for (int j = 0; j < loop.stacks; ++j) {
    const auto term = static_cast<std::size_t>(loop.carries + j);
    const std::size_t k = loop.first_stack() + static_cast<std::size_t>(j);
    pitches.stacks.push_back(whole_->body->output_type(term).bytes());
    outputs[k] = rows_of(
        out[k], pitches.stacks.back(),
        stacked(block.body->output_type(term), loop.stack_dims[static_cast<std::size_t>(j)]));
  }
  if (number == 0) outputs[loop.trips_output()] = out[loop.trips_output()];
  const std::vector<OpInput> views(inputs.begin(), inputs.end());
  LoopRun(block, views, outputs, &pitches).run();
  if (number == 0) out[loop.trips_output()] = outputs[loop.trips_output()];
}

}  // namespace reel
