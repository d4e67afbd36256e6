#include "reel/trace/executors/plan/row_blocks/shrinking_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/block_rows.h"
#include "reel/trace/executors/plan/loop/loop_run.h"

namespace reel {
namespace {

/// Limit of plans: each number of rows has plans of its own.
constexpr std::size_t kMostSizes = 4;

std::int64_t longest(const BlockOfRows& block) {
  return *std::max_element(block.lengths.begin(), block.lengths.end());
}

/// Returns the rows of some blocks as one block, in increasing order.
BlockOfRows together(std::span<const BlockOfRows> blocks) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const BlockOfRows& block : blocks)
    for (std::size_t r = 0; r < block.rows.size(); ++r)
      all.emplace_back(block.rows[r], block.lengths[r]);
  std::sort(all.begin(), all.end());
  BlockOfRows result;
  for (const auto& [row, length] : all) {
    result.rows.push_back(row);
    result.lengths.push_back(length);
  }
  return result;
}

/// The carries of all rows between two phases. Rows that have not begun have their first carries.
class Carried {
 public:
  Carried(const LoopAttrs& attrs, const RowCut& cut, OpInputs in)
      : attrs_(attrs), cut_(cut), in_(in.begin(), in.end()) {}

  OpInputs inputs() const { return in_; }

  /// Takes over the carries `made` by a phase with these rows that ended at `position`, for rows
  /// that run on.
  void take(const BlockOfRows& block, std::int64_t position, std::span<const Tensor> made) {
    if (all_.empty()) make();
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!cut_.carry_has_rows[i]) {
        all_[i] = made[i];
        continue;
      }
      const std::int64_t bytes = all_[i].type().bytes() / cut_.dim.size();
      const char* from = made[i].data<char>();
      for (std::size_t r = 0; r < block.rows.size(); ++r, from += bytes)
        if (block.lengths[r] > position)
          std::memcpy(all_[i].data<char>() + block.rows[r] * bytes, from,
                      static_cast<std::size_t>(bytes));
    }
    std::copy(all_.begin(), all_.end(), operands_of(attrs_, in_).carries.begin());
  }

 private:
  void make() {
    for (const OpInput& initial : operands_of(attrs_, in_).carries) {
      all_.push_back(Tensor(allocate_block(initial.tensor->type())));
      copy_elements(all_.back().data<void>(), *initial.tensor);
    }
  }

  const LoopAttrs& attrs_;
  const RowCut& cut_;
  std::vector<OpInput> in_;
  Tensors all_;
};

}  // namespace

bool ShrinkingBlock::try_plan(const RowCut& cut, const PlanRows& plan) {
  const std::size_t blocks = cut.blocks.size(), count = std::min(blocks, kMostSizes);
  sizes_.resize(count);
  std::int64_t rows = 0;
  std::size_t taken = 0;
  for (std::size_t size = 0; size < count; ++size) {
    for (const std::size_t most = blocks * (size + 1) / count; taken < most; ++taken)
      rows += cut.blocks[taken];
    sizes_[size].blocks = taken;
    if (!plan(sizes_[size].loop, rows)) return false;
  }
  return true;
}

std::vector<ShrinkingBlock::Phase> ShrinkingBlock::phases(std::span<const BlockOfRows> blocks,
                                                          bool is_reverse) const {
  std::vector<Phase> result;
  std::int64_t begin = 0;
  for (std::size_t size = sizes_.size(); size-- > 0;) {
    // The longest block that is not in the next smaller size.
    const std::int64_t end = longest(blocks[size ? sizes_[size - 1].blocks : 0]);
    if (end > begin || (size == 0 && result.empty())) result.push_back({size, begin, end});
    begin = end;
  }
  if (is_reverse) std::reverse(result.begin(), result.end());
  return result;
}

void ShrinkingBlock::run(const LoopAttrs& whole, const RowCut& cut, OpInputs in,
                         std::span<Tensor> out) {
  const std::vector<BlockOfRows> blocks = cut.rows_of_blocks(whole, in);
  const std::int64_t last = longest(blocks[0]);
  const std::vector<Phase> all_phases = phases(blocks, whole.trips.is_reverse);
  Carried carried(whole, cut, in);
  for (const Phase& phase : all_phases) {
    const Size& size = sizes_[phase.size];
    const BlockOfRows block = together(std::span(blocks).first(size.blocks));
    const bool is_last = &phase == &all_phases.back();
    BlockRows here(*size.loop, cut, block.rows, block.lengths, carried.inputs(), out, is_last, {});
    const std::vector<OpInput> views(here.inputs().begin(), here.inputs().end());
    LoopRun run(*size.loop, views, here.outputs(), &here);
    run.skip(whole.trips.is_reverse ? last - phase.end : phase.begin);
    run.start();
    for (std::int64_t left = phase.end - phase.begin; left > 0; --left) run.advance();
    run.finish();
    if (is_last)
      results_of(whole, out).trips = results_of(whole, here.outputs()).trips;
    else
      carried.take(block, whole.trips.is_reverse ? phase.begin : phase.end, here.outputs());
  }
  // Rows in the iterations that no phase ran.
  const BlockOfRows rows = together(blocks);
  BlockRows all(*sizes_.back().loop, cut, rows.rows, rows.lengths, in, out, false, {});
  std::vector<std::int64_t> ends(rows.rows.size());
  for (std::size_t size = 0, b = 0; size < sizes_.size(); ++size) {
    const std::int64_t end = longest(blocks[b]);
    for (; b < sizes_[size].blocks; ++b)
      for (const std::int64_t row : blocks[b].rows) ends[static_cast<std::size_t>(row)] = end;
  }
  for (std::size_t r = 0; r < ends.size(); ++r) all.finish_row(r, ends[r]);
}

}  // namespace reel
