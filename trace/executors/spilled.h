// trace/executors/spilled.h — Spilled, what a loop saved, of which all but a window lies in a file.
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

#include "reel/core/ops/loop.h"
#include "reel/core/saved_steps.h"
#include "reel/trace/executors/chunks.h"
#include "reel/trace/executors/spill_file.h"

namespace reel {

/// One value of every step of a loop, in blocks of a MiB and more. As many blocks as are to stay in
/// memory do, those used last; others are written to the file, and read again ahead of the loop
/// that runs back. Where that asks for steps of several blocks, it gets a copy of these, and the
/// copy takes the place of blocks.
class Spilled final : public SavedSteps {
 public:
  /// together: so many steps are asked for, one behind the other, at a time; first positions of
  /// such runs are multiples of it. limit: there are no more steps; nothing where only a run tells,
  /// whose positions rise where they are new. what: the memory is for. takes_lists: elements of
  /// lists belong to their step alone.
  Spilled(std::shared_ptr<SpillFile> file, std::int64_t bytes_in_memory, std::int64_t together,
          std::optional<std::int64_t> limit, MemoryClass what, bool takes_lists)
      : file_(std::move(file)),
        bytes_in_memory_(bytes_in_memory),
        together_(together),
        limit_(limit),
        what_(what),
        takes_lists_(takes_lists) {}

  /// Where the value of a step is to be written, which is of the same type in every step; with
  /// those of the steps behind it that are put together. Places given before may not be written to
  /// any more. Throws IoError.
  char* place(const TensorType& step, std::int64_t position);
  /// The same for a tensor or a list. Those of another type than the first stay in memory.
  void put(std::int64_t position, const Tensor& step);
  /// Nobody will ask for it any more. What lies in a block stays there.
  void forget(std::int64_t position) { others_.erase(position); }

  /// What steps have in common: plain sizes that differ are unknown. Not known before the first is
  /// put.
  const std::optional<TensorType>& type() const { return common_; }

  void need(std::int64_t first, std::int64_t count) override;
  /// need() in two parts, for who knows which step comes next; whether it is another block now.
  bool have(std::int64_t first, std::int64_t count);
  void read_ahead(std::int64_t position);
  char* data(std::size_t, std::int64_t position) override;
  Tensor tensor(std::size_t, std::int64_t position) override;
  bool is_uniform() const override { return others_.empty(); }
  std::int64_t count() const override { return count_of_steps_; }

 private:
  struct Block {
    Tensor memory;             ///< undefined: in the file only, or on its way
    SpillFile::JobRef job;     ///< on its way
    std::int64_t offset = -1;  ///< in the file
    std::int64_t bytes = 0;    ///< that are there
    bool is_changed = false;   ///< what is in memory is not in the file
  };
  struct ListOfStep {
    TensorType element;
    std::int64_t first, count;  ///< where its elements are
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

  static constexpr std::size_t kWriting = 2;  ///< blocks on their way at a time

  std::shared_ptr<SpillFile> file_;
  std::int64_t bytes_in_memory_, together_;
  std::optional<std::int64_t> limit_;
  MemoryClass what_;
  bool takes_lists_;
  std::optional<TensorType> type_;      ///< of a step in a block
  std::optional<TensorType> common_;    ///< of all steps
  std::int64_t bytes_ = 0, steps_ = 1;  ///< of a step; of a block
  std::size_t most_ = 2;                ///< blocks in memory
  std::map<std::int64_t, Block> blocks_;
  std::int64_t used_ = -1;  ///< the block used last
  Block* used_block_ = nullptr;
  std::list<std::int64_t> line_;           ///< blocks in memory, those used last in front
  std::deque<std::int64_t> writing_;       ///< blocks that are being written
  std::map<std::int64_t, Tensor> others_;  ///< steps of another type
  std::map<std::int64_t, ListOfStep> lists_;
  Ref<Spilled> elements_;                ///< of all these lists, one behind the other
  std::int64_t put_ = 0;                 ///< how many
  std::int64_t count_of_steps_ = 0;      ///< behind the last one that was put
  std::int64_t first_ = -1, count_ = 0;  ///< what was asked for last
  Tensor piece_;                         ///< that, where it lies in two blocks
};

/// Some of what was spilled, as the elements of a list.
class SpilledList final : public SavedSteps {
 public:
  SpilledList(Ref<Spilled> all, std::vector<std::int64_t> places)
      : all_(std::move(all)), places_(std::move(places)) {}
  void need(std::int64_t first, std::int64_t) override {
    all_->have(place(first), 1);
    if (first > 0) all_->read_ahead(place(first - 1));  // loops run back over checkpoints
  }
  char* data(std::size_t, std::int64_t position) override { return all_->data(0, place(position)); }
  Tensor tensor(std::size_t, std::int64_t position) override {
    return all_->tensor(0, place(position));
  }
  std::int64_t count() const override { return std::ssize(places_); }

 private:
  std::int64_t place(std::int64_t position) const {
    return places_[static_cast<std::size_t>(position)];
  }

  Ref<Spilled> all_;
  std::vector<std::int64_t> places_;
};

/// While it lives, blocks are of a byte and more instead of a MiB, so that they have a step, and
/// windows of two of them: for tests, whose loops are small.
class SmallSpillBlocks {
 public:
  SmallSpillBlocks();
  ~SmallSpillBlocks();
  SmallSpillBlocks(const SmallSpillBlocks&) = delete;
  SmallSpillBlocks& operator=(const SmallSpillBlocks&) = delete;

  /// How many blocks were written to files since it was made, or since the last call.
  std::int64_t written() {
    const std::int64_t now = spill_traffic().writes;
    return now - std::exchange(written_, now);
  }

 private:
  bool before_;
  std::int64_t written_ = spill_traffic().writes;
};
bool are_spill_blocks_small();

/// Makes what a loop's stacks are spilled to: one file for all.
class Spills {
 public:
  /// For a stack of checkpoints. limit: so many are put, those that are dropped counted; nothing
  /// where only a run tells.
  Ref<Spilled> make_for_checkpoints(const LoopAttrs& attrs, int stack,
                                    std::optional<std::int64_t> limit) {
    return make(attrs, stack, 1, limit);
  }
  /// For what every step saves. chunks: of a loop in chunks. expected: steps of others, where that
  /// is known.
  Ref<Spilled> make_for_steps(const LoopAttrs& attrs, int stack, const Chunks& chunks,
                              std::optional<std::int64_t> expected) {
    return attrs.in_chunks ? make(attrs, stack, chunks.size, chunks.steps)
                           : make(attrs, stack, 1, expected);
  }

 private:
  /// together, limit: as of Spilled.
  Ref<Spilled> make(const LoopAttrs& attrs, int stack, std::int64_t together,
                    std::optional<std::int64_t> limit) {
    if (!file_) file_ = std::make_shared<SpillFile>(attrs.spill_folder, attrs.name);
    const auto count = std::count_if(attrs.stack_kinds.begin(), attrs.stack_kinds.end(),
                                     [](std::uint8_t kind) { return kind & LoopAttrs::kSpilled; });
    return Ref<Spilled>(new Spilled(file_, attrs.spill_window / std::max<std::int64_t>(count, 1),
                                    together, limit,
                                    attrs.memory_of(static_cast<std::size_t>(stack)),
                                    !attrs.is_checkpoint(static_cast<std::size_t>(stack))));
  }

  std::shared_ptr<SpillFile> file_;
};

}  // namespace reel
