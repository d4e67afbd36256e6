// trace/executors/checkpoints/stack_list.h — StackList: a loop's stack that is a list.
#pragma once

#include <optional>

#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"
#include "reel/trace/executors/checkpoints/policy_costs.h"
#include "reel/trace/executors/loop/iterations.h"
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

/// Decides for all checkpoint stacks of a loop when checkpoints are taken, and which values they
/// hold.
class CheckpointTimes {
 public:
  explicit CheckpointTimes(const LoopAttrs& attrs);

  bool takes_any() const { return takes_any_; }
  /// Returns the body input that the stack takes, position and slices counted; -1 if an op of the
  /// body makes the value.
  int source(std::size_t stack) const { return sources_[stack]; }

  /// Prepares the decision for the iteration behind the first `steps` steps.
  ///
  /// bytes_of_carry(i): present size of a carry. States count with their largest size so far.
  /// Arrays count with their initial size, since checkpoints share their elements.
  template <class F>
  void begin(std::int64_t steps, F&& bytes_of_carry) {
    opens_file_ = !kept_ && spills_;
    if (opens_file_) find_out_about_file(bytes_of_carry);
    if (!kept_) kept_.emplace(attrs_.policy.steps, attrs_.policy.bytes);  // slots at most
    if (attrs_.policy.bytes && kept_->is_due(steps)) {
      std::int64_t bytes = 0;
      for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
        if (is_array(i) && steps == 0) bytes_of_arrays_ += bytes_of_carry(i);
        if (!is_array(i)) bytes += bytes_of_carry(i);
      }
      kept_->allow(slots_of(attrs_, bytes + bytes_of_arrays_));
    }
    now_ = kept_->before(steps);
  }
  /// Returns whether to take a checkpoint in this iteration, and how often to drop every second one
  /// before.
  const CheckpointSchedule::Decision& now() const { return now_; }
  /// Returns true if spilled stacks go to a file from now on. Valid after begin(); true once at
  /// most.
  bool opens_file() const { return opens_file_; }
  /// Returns how many checkpoints are written to the file; nothing if the trip count is unknown.
  ///
  /// units: iterations of the loop, if known. unit: time steps of one.
  std::optional<std::int64_t> puts(const std::optional<std::int64_t>& units,
                                   std::int64_t unit) const {
    if (!units) return std::nullopt;
    return checkpoints_taken(attrs_, first_slots_, *units, unit);
  }

 private:
  template <class F>
  void find_out_about_file(F&& bytes_of_carry) {
    std::int64_t arrays = 0;
    std::vector<std::int64_t> carries;
    for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
      const std::int64_t bytes = bytes_of_carry(i);
      is_array(i) ? arrays += bytes : carries.emplace_back(bytes);
    }
    const FileOfCheckpoints file(attrs_, carries, arrays);
    opens_file_ = file.is_used() || are_spill_blocks_small();
    first_slots_ = file.slots();
  }
  bool is_array(std::size_t carry) const {
    return attrs_.body.graph->types[body_inputs(attrs_).carries[carry]].is_list();
  }

  const LoopAttrs& attrs_;
  bool takes_any_, spills_ = false, opens_file_ = false;
  std::int64_t first_slots_ = 0;  ///< checkpoint slots of a budget, before the first iteration
  std::vector<int> sources_;      ///< by stack, see source()
  std::optional<CheckpointSchedule> kept_;
  std::int64_t bytes_of_arrays_ = 0;  ///< before the first iteration
  CheckpointSchedule::Decision now_;
};

}  // namespace reel
