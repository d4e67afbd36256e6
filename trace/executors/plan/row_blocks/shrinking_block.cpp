#include "reel/trace/executors/plan/row_blocks/shrinking_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/block_rows.h"
#include "reel/trace/executors/plan/loop/loop_run.h"

namespace reel {
namespace {

/// The carries of all rows between two phases. Rows that have not begun have their first carries.
class RowCarries {
 public:
  RowCarries(const LoopAttrs& attrs, const RowCut& cut, OpInputs in)
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

bool ShrinkingBlock::try_plan(const std::vector<std::int64_t>& sizes, const PlanRows& plan) {
  are_planned_ = false;
  std::vector<Size> before = std::exchange(sizes_, std::vector<Size>(sizes.size()));
  for (std::size_t size = 0; size < sizes.size(); ++size)
    sizes_[size].rows = static_cast<std::size_t>(sizes[size]);
  take_loops(before);
  return are_planned_ = plan(sizes_.back().loop, sizes.back());
}

/// Gives each size the loop of a former size: of the same number of rows, or any that is left. The
/// latter's plans are then resized.
void ShrinkingBlock::take_loops(std::vector<Size>& from) {
  for (Size& size : sizes_)
    for (Size& other : from)
      if (other.rows == size.rows && other.loop && !size.loop) size.loop = std::move(other.loop);
  const auto has_loop = [](const Size& size) { return size.loop != nullptr; };
  for (Size& size : sizes_) {
    if (size.loop) continue;
    const auto left = std::ranges::find_if(from, has_loop);
    if (left == from.end()) return;
    size.loop = std::move(left->loop);
  }
}

bool ShrinkingBlock::is_planned(const std::vector<std::int64_t>& sizes) const {
  return are_planned_ && std::ranges::equal(sizes_, sizes, {}, [](const Size& size) {
           return static_cast<std::int64_t>(size.rows);
         });
}

bool ShrinkingBlock::choose_sizes(const BlockOfRows& batch, const PlanRows& plan,
                                  const PriceOfPlan& price) {
  const auto try_plan_again = [&](Size& size) {
    return plan(size.loop, static_cast<std::int64_t>(size.rows));
  };
  for (Size& size : sizes_) size.is_used = false;
  for (const std::size_t size : cheapest_sizes(batch, price))
    sizes_[size].is_used = try_plan_again(sizes_[size]);
  return sizes_.back().is_used;
}

/// Returns sizes, with the largest among them, such that iterations of rows and prices of plans add
/// up to the least.
std::vector<std::size_t> ShrinkingBlock::cheapest_sizes(const BlockOfRows& batch,
                                                        const PriceOfPlan& price) const {
  const std::size_t count = sizes_.size();
  // Positions at which a size begins if it is used: the rows that it lacks have finished.
  std::vector<std::int64_t> begins(count, 0);
  for (std::size_t size = 0; size + 1 < count; ++size)
    begins[size] = batch.lengths[sizes_[size].rows];
  // The least price of all iterations from there on, and the next smaller size for it.
  std::vector<double> least(count);
  std::vector<std::size_t> next(count);
  for (std::size_t size = 0; size < count; ++size) {
    const auto rows = static_cast<double>(sizes_[size].rows);
    least[size] = rows * static_cast<double>(batch.lengths[0] - begins[size]);
    next[size] = size;
    for (std::size_t smaller = 0; smaller < size; ++smaller) {
      const double both =
          least[smaller] + rows * static_cast<double>(begins[smaller] - begins[size]);
      if (both >= least[size]) continue;
      least[size] = both;
      next[size] = smaller;
    }
    least[size] += price(sizes_[size].loop.get(), static_cast<std::int64_t>(sizes_[size].rows));
  }
  std::vector<std::size_t> result{count - 1};
  while (next[result.back()] != result.back()) result.push_back(next[result.back()]);
  return result;
}

std::vector<ShrinkingBlock::Phase> ShrinkingBlock::phases(const BlockOfRows& batch,
                                                          bool is_reverse) const {
  std::vector<Phase> result;
  std::int64_t end = batch.lengths[0];
  for (std::size_t size = 0; size < sizes_.size(); ++size) {
    if (!sizes_[size].is_used) continue;
    const bool is_largest = size + 1 == sizes_.size();
    const std::int64_t begin = is_largest ? 0 : batch.lengths[sizes_[size].rows];
    if (end > begin || (is_largest && result.empty())) result.push_back({size, begin, end});
    end = begin;
  }
  std::reverse(result.begin(), result.end());
  if (is_reverse) std::reverse(result.begin(), result.end());
  return result;
}

namespace {

BlockOfRows longest_rows(const BlockOfRows& batch, std::size_t count) {
  const auto first = [&](const std::vector<std::int64_t>& all) {
    return std::vector<std::int64_t>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  };
  return {first(batch.rows), first(batch.lengths)};
}

/// Returns the captures of the rows of a batch, in its order, by input of the op; empty Tensors for
/// inputs without rows and other inputs.
Tensors captures_of(const LoopAttrs& attrs, const RowCut& cut, const BlockOfRows& batch,
                    OpInputs in) {
  Tensors result(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    // Inputs behind the op's own are lengths and masks: captures with rows.
    if (!cut.has_rows[i] ||
        (i < operand_count(attrs) && !operand_at(attrs, i).is(LeafKind::capture)))
      continue;
    const std::int64_t bytes = in[i].tensor->type().bytes() / cut.dim.size();
    result[i] = Tensor(allocate_block(TensorType(boolean, {bytes * std::ssize(batch.rows)})));
    char* to = result[i].data<char>();
    for (std::size_t r = 0; r < batch.rows.size(); ++r, to += bytes)
      std::memcpy(to, in[i].tensor->data<char>() + batch.rows[r] * bytes,
                  static_cast<std::size_t>(bytes));
  }
  return result;
}

}  // namespace

void ShrinkingBlock::run(const LoopAttrs& whole, const RowCut& cut, const BlockOfRows& batch,
                         OpInputs in, std::span<Tensor> out, bool is_first) {
  Profile* const profile = sizes_.back().loop->context.profile;  // of all sizes
  const std::int64_t begin = profile ? nanoseconds_now() : 0;
  const std::int64_t last = batch.lengths[0];
  const std::vector<Phase> all_phases = phases(batch, whole.trips.is_reverse);
  // A batch that is sorted already, in either direction, is read in place.
  std::vector<BlockOfRows> blocks;
  for (const Size& size : sizes_) blocks.push_back(rows_from(batch, 0, size.rows));
  const bool is_in_place = std::ranges::all_of(
      blocks, [](const BlockOfRows& block) { return are_adjacent(block.rows); });
  const Tensors captures = is_in_place ? Tensors() : captures_of(whole, cut, batch, in);
  if (!is_in_place)
    for (std::size_t i = 0; i < sizes_.size(); ++i) blocks[i] = longest_rows(batch, sizes_[i].rows);
  RowCarries carried(whole, cut, in);
  for (const Phase& phase : all_phases) {
    const Size& size = sizes_[phase.size];
    const BlockOfRows& block = blocks[phase.size];
    const bool is_last = &phase == &all_phases.back(), writes = is_last && is_first;
    BlockRows here(*size.loop, cut, block.rows, block.lengths, carried.inputs(), out, writes, {},
                   captures);
    const std::vector<OpInput> views(here.inputs().begin(), here.inputs().end());
    LoopRun run(*size.loop, views, here.outputs(), &here);
    run.skip(whole.trips.is_reverse ? last - phase.end : phase.begin);
    run.start();
    for (std::int64_t left = phase.end - phase.begin; left > 0; --left) run.advance();
    run.finish();
    if (writes) results_of(whole, out).trips = results_of(whole, here.outputs()).trips;
    if (!is_last)
      carried.take(block, whole.trips.is_reverse ? phase.begin : phase.end, here.outputs());
  }
  const BlockOfRows& rows = blocks.back();
  BlockRows all(*sizes_.back().loop, cut, rows.rows, rows.lengths, in, out, false, {}, captures);
  all.finish_rows(rows.lengths);
  if (profile) profile->nanoseconds += nanoseconds_now() - begin;
}

}  // namespace reel
