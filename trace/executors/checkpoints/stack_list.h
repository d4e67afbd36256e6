// trace/executors/checkpoints/stack_list.h — StackList: a loop's stack that is a list.
#pragma once

#include <vector>

#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {

/// One stack of a loop that is a list: an element per iteration, or, for checkpoints, an element
/// per checkpoint that is kept.
class StackList {
 public:
  /// what: memory class of the elements.
  StackList(bool is_reverse, MemoryClass what)
      : is_reverse_(is_reverse), what_(what), begin_(next_block_id()) {}

  /// Stores the element of an iteration. limit: the trip count; read for reverse loops only.
  void put(std::int64_t position, std::int64_t limit, Tensor element) {
    count_as_made_since(begin_, element, what_);
    if (!is_reverse_) {
      elements_.push_back(std::move(element));
      return;
    }
    if (elements_.empty()) elements_.resize(static_cast<std::size_t>(limit));
    elements_[static_cast<std::size_t>(position)] = std::move(element);
  }
  /// Directs later checkpoints to a file.
  void spill_to(const Ref<Spilled>& file) { file_ = file; }
  /// Appends a checkpoint.
  void keep(Tensor element) {
    if (file_) {
      // Always at the end: in the place of a dropped checkpoint, its block would have to be read
      // again.
      places_.push_back(put_++);
      file_->put(places_.back(), element);
    } else {
      count_as_made_since(begin_, element, what_);
      elements_.push_back(std::move(element));
    }
  }
  /// Drops every second checkpoint, from the second one on.
  void thin() {
    for (std::size_t i = 1; i < places_.size(); i += 2) file_->forget(places_[i]);
    for (std::size_t i = 1; i < elements_.size(); i += 2) let_go_of(elements_[i]);
    reel::thin(elements_);
    for (const Tensor& kept : elements_) count_as_made_since(begin_, kept, what_);  // shared data
    reel::thin(places_);
  }
  /// Returns the checkpoints in the file, as the elements of a list; null if there is no file.
  Ref<ResidualSource> in_file() const {
    return file_ ? Ref<ResidualSource>(new SpilledList(file_, places_)) : Ref<ResidualSource>();
  }
  const Tensors& elements() const { return elements_; }

 private:
  /// Changes the memory class of a dropped checkpoint to values: it may still be referenced, for
  /// example as an element of another stack.
  void let_go_of(const Tensor& element) const {
    const TensorBlock& block = *element.block();
    if (block.kind == BlockKind::list) return;
    const TensorBlock& owner = block.storage ? *block.storage : block;
    if (is_id_since(owner.id, begin_) &&
        owner.memory_class.load(std::memory_order_relaxed) == what_)
      count_as(element, MemoryClass::values);
  }

  bool is_reverse_;
  MemoryClass what_;
  std::uint64_t begin_;
  Tensors elements_;
  Ref<Spilled> file_;
  std::int64_t put_ = 0;              ///< number of checkpoints written to the file
  std::vector<std::int64_t> places_;  ///< positions in the file of the checkpoints kept
};

}  // namespace reel
