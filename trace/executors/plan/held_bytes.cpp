// How many bytes plans hold between runs, about: tensors and the parts that grow with the graph.
#include <numeric>

#include "reel/trace/executors/plan/cond_plan.h"
#include "reel/trace/executors/plan/loop_plan.h"
#include "reel/trace/executors/plan/plan.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {
namespace {

/// Returns the sum of bytes(element) over a range.
template <class Range, class Bytes>
std::int64_t sum_of(const Range& range, const Bytes& bytes) {
  return std::accumulate(
      range.begin(), range.end(), std::int64_t{0},
      [&](std::int64_t sum, const auto& element) { return sum + bytes(element); });
}

/// Returns the sum of held_bytes() over pointers; null pointers count as 0.
template <class Pointers>
std::int64_t held_by(const Pointers& pointers) {
  return sum_of(pointers, [](const auto& at) { return at ? at->held_bytes() : 0; });
}

}  // namespace

std::int64_t JoinedBlocks::sum_bytes() const {
  return sum_of(sums_, [](const Sum& sum) { return sum.all.type().bytes(); });
}

std::int64_t JoinedBlocks::held_bytes() const {
  return (loop_ ? loop_->held_bytes() : 0) + sum_bytes();
}

std::int64_t ShrinkingBlock::held_bytes() const {
  return sum_of(sizes_, [](const Size& size) { return size.loop ? size.loop->held_bytes() : 0; });
}

std::int64_t LoopBlocks::partial_sum_bytes() const {
  return sum_of(partial_sums_, [](const Tensors& sums) {
    return sum_of(sums, [](const Tensor& sum) {
      return sum.is_defined() ? sum.type().bytes() : std::int64_t{0};
    });
  });
}

std::int64_t LoopBlocks::sum_bytes() const { return partial_sum_bytes() + joined_.sum_bytes(); }

std::int64_t LoopBlocks::held_bytes() const {
  const auto of_batch = [](const ShrinkingBlock& batch) { return batch.held_bytes(); };
  return held_by(blocks_) + partial_sum_bytes() + joined_.held_bytes() +
         sum_of(batches_, of_batch) + sum_of(spare_batches_, of_batch);
}

std::int64_t Plan::held_bytes() const {
  // A slot has a value, a header, a type and an address.
  constexpr std::size_t kSlot =
      2 * sizeof(Tensor) + 2 * sizeof(TensorBlock) + sizeof(TensorType) + sizeof(void*);
  std::int64_t result =
      static_cast<std::int64_t>(slots_.size() * kSlot + instructions_.size() * sizeof(Instruction) +
                                operands_.size() * sizeof(OpInput));
  if (memory_.data) result += memory_.bytes();
  for (std::size_t s = 0; s < slots_.size(); ++s)
    if (places_[s] == Place::constant && slots_[s].is_defined() && slot_types_[s].is_known() &&
        !slot_types_[s].is_list())
      result += slot_types_[s].bytes();
  return result + held_by(loops_) + held_by(conds_) + held_by(tiles_);
}

}  // namespace reel
