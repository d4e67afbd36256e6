// trace/executors/spill/spilled.h — Spilled: residuals of a loop in a file, with a window in
// memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/executors/spill/spill_file.h"

namespace reel {

/// One value of every step of a loop, in blocks of 1 MiB or more. The blocks used last stay in
/// memory, as many as the window holds. The others are written to the file, and read ahead of the
/// gradient loop. A request for steps of several blocks gets a copy of them, which takes the place
/// of blocks in the window.
class Spilled final : public ResidualSource {
 public:
  /// together: number of consecutive steps that are requested at once; such requests begin at
  /// multiples of it.
  /// limit: number of steps; nothing if only a run tells. New positions then come in increasing
  /// order.
  /// what: memory class of the blocks.
  /// takes_lists: elements of lists belong to their step alone.
  Spilled(std::shared_ptr<SpillFile> file, std::int64_t bytes_in_memory, std::int64_t together,
          std::optional<std::int64_t> limit, MemoryClass what, bool takes_lists)
      : file_(std::move(file)),
        bytes_in_memory_(bytes_in_memory),
        together_(together),
        limit_(limit),
        what_(what),
        takes_lists_(takes_lists) {}

  /// Returns where to write the value of a step, followed by the values of the other steps of its
  /// request. Requires the same type in every step. Pointers returned before must not be written to
  /// any more. Throws IoError.
  char* place(const TensorType& step, std::int64_t position);
  /// Stores a tensor or a list. Values of another type than the first stay in memory. Throws
  /// IoError.
  void put(std::int64_t position, const Tensor& step);
  /// Frees the value of a step that will not be read again. Its space in a block is not reused.
  void forget(std::int64_t position) { others_.erase(position); }

  /// Returns the common type of the steps, with unknown size if plain sizes differ; nothing before
  /// the first step.
  const std::optional<TensorType>& type() const { return common_; }

  void need(std::int64_t first, std::int64_t count) override;
  /// have() and read_ahead() are the two parts of need(), for a caller that knows which step comes
  /// next. have() loads the steps. Returns true if the block used last has changed.
  bool have(std::int64_t first, std::int64_t count);
  /// Starts reading the block of a step, without waiting for it.
  void read_ahead(std::int64_t position);
  char* data(std::size_t, std::int64_t position) override;
  Tensor tensor(std::size_t, std::int64_t position) override;
  bool is_uniform() const override { return others_.empty(); }
  std::int64_t count() const override { return count_of_steps_; }

 private:
  struct Block {
    Tensor memory;             ///< undefined: in the file only, or in flight
    SpillFile::JobRef job;     ///< in flight
    std::int64_t offset = -1;  ///< in the file; -1: none yet
    std::int64_t bytes = 0;    ///< valid bytes in the file
    bool is_changed = false;   ///< the contents differ from the file
  };
  struct ListOfStep {
    TensorType element;
    std::int64_t first, count;  ///< positions of its elements in elements_
  };
  bool put_list(std::int64_t position, const Tensor& step);
  Block& use(std::int64_t number);
  void begin_reading(std::int64_t number, bool is_ahead);
  void settle(Block& block);
  Tensor new_memory(std::int64_t bytes) const;
  std::int64_t first_room(std::int64_t number) const;
  std::size_t most_beside(std::int64_t copied) const;
  void make_room();
  void make_room_for(std::int64_t copied);
  void make_longer(Block& block, std::int64_t steps);
  char* at(const Block& block, std::int64_t position) const {
    return block.memory.data<char>() + position % steps_ * bytes_;
  }

  static constexpr std::size_t kWriting = 2;  ///< blocks that may be in flight as writes

  std::shared_ptr<SpillFile> file_;
  std::int64_t bytes_in_memory_, together_;
  std::optional<std::int64_t> limit_;
  MemoryClass what_;
  bool takes_lists_;
  std::optional<TensorType> type_;      ///< of a step in a block
  std::optional<TensorType> common_;    ///< of all steps
  std::int64_t bytes_ = 0, steps_ = 1;  ///< bytes of a step; steps of a block
  std::size_t most_ = 2;                ///< maximum number of blocks in memory
  std::map<std::int64_t, Block> blocks_;
  std::int64_t used_ = -1;  ///< block used last
  Block* used_block_ = nullptr;
  std::list<std::int64_t> line_;           ///< blocks in memory, last used in front
  std::deque<std::int64_t> writing_;       ///< blocks being written
  std::map<std::int64_t, Tensor> others_;  ///< steps of other types
  std::map<std::int64_t, ListOfStep> lists_;
  Ref<Spilled> elements_;                ///< elements of all these lists, consecutive
  std::int64_t put_ = 0;                 ///< number of elements in elements_
  std::int64_t count_of_steps_ = 0;      ///< position behind the last step stored
  std::int64_t first_ = -1, count_ = 0;  ///< the last request
  Tensor joined_;                        ///< copy of the last request, if it spans blocks
};

/// Selected steps of a Spilled, as the elements of a list.
class SpilledList final : public ResidualSource {
 public:
  SpilledList(Ref<Spilled> all, std::vector<std::int64_t> places)
      : all_(std::move(all)), places_(std::move(places)) {}
  void need(std::int64_t first, std::int64_t) override {
    all_->have(place(first), 1);
    if (first > 0) all_->read_ahead(place(first - 1));  // gradients visit them downwards
  }
  char* data(std::size_t, std::int64_t position) override { return all_->data(0, place(position)); }
  Tensor tensor(std::size_t, std::int64_t position) override {
    return all_->tensor(0, place(position));
  }
  bool is_uniform() const override { return all_->is_uniform(); }
  std::int64_t count() const override { return std::ssize(places_); }

 private:
  std::int64_t place(std::int64_t position) const {
    return places_[static_cast<std::size_t>(position)];
  }

  Ref<Spilled> all_;
  std::vector<std::int64_t> places_;
};

/// While it lives, blocks have at least one byte instead of 1 MiB, and windows have two blocks. For
/// tests, as their loops are small.
class SmallSpillBlocks {
 public:
  SmallSpillBlocks();
  ~SmallSpillBlocks();
  SmallSpillBlocks(const SmallSpillBlocks&) = delete;
  SmallSpillBlocks& operator=(const SmallSpillBlocks&) = delete;

  /// Returns the number of blocks written to files since construction or the last call.
  std::int64_t written() {
    const std::int64_t now = spill_traffic().writes;
    return now - std::exchange(written_, now);
  }

 private:
  bool before_;
  std::int64_t written_ = spill_traffic().writes;
};
bool are_spill_blocks_small();

/// Returns the bytes in memory of one stack in a file: its share of the loop's window.
inline std::int64_t window_of_stack(const LoopAttrs& attrs) {
  const auto count = std::count_if(attrs.stacks.begin(), attrs.stacks.end(),
                                   [](const LoopStack& stack) { return stack.is_in_file(); });
  return attrs.policy.spill_window / std::max<std::int64_t>(count, 1);
}

/// Creates the Spilled objects of a loop's stacks; they share one file.
class Spills {
 public:
  /// Returns storage for a stack of checkpoints.
  ///
  /// limit: number of checkpoints written, including those that are dropped later; nothing if
  /// unknown.
  Ref<Spilled> make_for_checkpoints(const LoopAttrs& attrs, std::size_t stack,
                                    std::optional<std::int64_t> limit) {
    return make(attrs, stack, 1, limit);
  }
  /// Returns storage for a stack of residuals.
  ///
  /// chunks: of a chunked loop. expected: number of iterations of other loops, if known.
  Ref<Spilled> make_for_steps(const LoopAttrs& attrs, std::size_t stack, const Chunks& chunks,
                              std::optional<std::int64_t> expected) {
    return attrs.chunking.over_chunks ? make(attrs, stack, chunks.size, chunks.steps)
                                      : make(attrs, stack, 1, expected);
  }

 private:
  /// together, limit: see Spilled.
  Ref<Spilled> make(const LoopAttrs& attrs, std::size_t stack, std::int64_t together,
                    std::optional<std::int64_t> limit) {
    if (!file_) file_ = std::make_shared<SpillFile>(attrs.policy.spill_folder, attrs.name);
    return Ref<Spilled>(new Spilled(file_, window_of_stack(attrs), together, limit,
                                    attrs.stacks[stack].memory_class(),
                                    !attrs.stacks[stack].is_checkpoint()));
  }

  std::shared_ptr<SpillFile> file_;
};

}  // namespace reel
