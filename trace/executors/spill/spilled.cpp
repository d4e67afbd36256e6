#include "reel/trace/executors/spill/spilled.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "reel/core/ops/list/list.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {
namespace {

std::atomic<bool> are_blocks_small{false};

}  // namespace

SmallSpillBlocks::SmallSpillBlocks() : before_(are_blocks_small.exchange(true)) {}
SmallSpillBlocks::~SmallSpillBlocks() { are_blocks_small = before_; }
bool are_spill_blocks_small() { return are_blocks_small; }

char* Spilled::place(const TensorType& step, std::int64_t position) {
  if (!type_) {
    type_ = step;
    if (!common_) common_ = step;
    bytes_ = step.bytes();
    const std::int64_t run = std::max<std::int64_t>(bytes_ * together_, 1);
    const std::int64_t least = are_blocks_small ? 1 : 1 << 20;
    steps_ = (least + run - 1) / run * together_;
    if (limit_) {
      const std::int64_t runs = (*limit_ + together_ - 1) / together_;
      steps_ = std::clamp<std::int64_t>(runs * together_, together_, steps_);
    }
    most_ = most_beside(0);
  }
  count_of_steps_ =
      std::max(count_of_steps_, std::min(position + together_, limit_.value_or(INT64_MAX)));
  Block& block = use(position / steps_);
  block.is_changed = true;
  make_longer(block, position % steps_ + together_);
  return at(block, position);
}

void Spilled::put(std::int64_t position, const Tensor& step) {
  common_ = common_ ? common_type(*common_, step.type()) : step.type();
  count_of_steps_ = std::max(count_of_steps_, position + 1);
  if (put_list(position, step)) return;
  if (step.type().is_list() || (type_ && !(*type_ == step.type()))) {
    count_as(others_[position] = step, what_);
    return;
  }
  char* to = place(step.type(), position);
  if (bytes_) std::memcpy(to, step.data<char>(), static_cast<std::size_t>(bytes_));
}

/// Stores the elements of a list. Returns false, and stores nothing, if the step is not a list of
/// tensors of the one type that all steps' elements have.
bool Spilled::put_list(std::int64_t position, const Tensor& step) {
  if (!takes_lists_ || !step.type().is_list()) return false;
  const Tensors elements = list_elements(step);
  for (const Tensor& element : elements) {
    if (!element.is_defined() || element.type().is_list()) return false;
    const std::optional<TensorType>& all = elements_ ? elements_->type_ : elements[0].type();
    if (!(element.type() == *all) || element.block()->kind == BlockKind::steps) return false;
  }
  if (!elements_)
    elements_ = Ref<Spilled>(new Spilled(file_, bytes_in_memory_, 1, {}, what_, false));
  lists_.insert_or_assign(position, ListOfStep{step.type().element(), put_, std::ssize(elements)});
  for (const Tensor& element : elements) elements_->put(put_++, element);
  return true;
}

Tensor Spilled::new_memory(std::int64_t bytes) const {
  Tensor memory(allocate_block(TensorType(boolean, {bytes})));
  count_as(memory, what_);
  return memory;
}

/// Returns the initial capacity of a block in steps: all that it will hold, if known. A loop of
/// unknown length may need little.
std::int64_t Spilled::first_room(std::int64_t number) const {
  if (!limit_) return number > 0 ? steps_ : together_;
  const std::int64_t left = *limit_ - number * steps_;
  return std::clamp((left + together_ - 1) / together_ * together_, together_, steps_);
}

/// Loads a block into memory and moves it to the front of the line.
Spilled::Block& Spilled::use(std::int64_t number) {
  if (number == used_) return *used_block_;  // in front, and in memory
  Block& block = blocks_[number];
  settle(block);
  if (!block.memory.is_defined() && block.offset >= 0) {
    begin_reading(number, false);
    settle(block);
  }
  if (!block.memory.is_defined()) block.memory = new_memory(first_room(number) * bytes_);
  if (line_.empty() || line_.front() != number) {
    line_.remove(number);
    line_.push_front(number);
    make_room();
  }
  used_ = number;
  used_block_ = &block;
  return block;
}

/// Grows a block to hold `steps` steps, at least doubling it.
void Spilled::make_longer(Block& block, std::int64_t steps) {
  const std::int64_t bytes = block.memory.type().bytes();
  if (bytes >= std::min(steps, steps_) * bytes_) return;
  const Tensor longer = new_memory(std::min(std::max(steps * bytes_, 2 * bytes), steps_ * bytes_));
  std::memcpy(longer.data<char>(), block.memory.data<char>(), static_cast<std::size_t>(bytes));
  block.memory = longer;
}

void Spilled::begin_reading(std::int64_t number, bool is_ahead) {
  Block& block = blocks_[number];
  block.job = file_->read(block.offset, new_memory(block.bytes), is_ahead);
}

/// Waits for a transfer in flight. If writing failed, the block stays in memory.
void Spilled::settle(Block& block) {
  if (!block.job) return;
  const SpillFile::JobRef job = std::exchange(block.job, nullptr);
  try {
    block.memory = file_->wait(job);
  } catch (const IoError&) {
    if (job->writes) {
      block.memory = job->block;
      block.is_changed = true;
    }
    throw;
  }
}

void Spilled::make_room() {
  while (line_.size() > most_) {
    const std::int64_t number = line_.back();
    Block& block = blocks_[number];
    line_.pop_back();
    if (!block.is_changed) {
      block.memory = Tensor();
      continue;
    }
    if (block.offset < 0) block.offset = file_->take(steps_ * bytes_);
    block.bytes = block.memory.type().bytes();
    block.job = file_->write(block.offset, std::exchange(block.memory, Tensor()));
    block.is_changed = false;
    writing_.push_back(number);
    if (writing_.size() <= kWriting) continue;
    Block& oldest = blocks_[writing_.front()];
    writing_.pop_front();
    if (!oldest.job) continue;  // a later use has waited for it already
    settle(oldest);
    oldest.memory = Tensor();
  }
}

/// Returns how many blocks may be in memory beside a copy of `copied` steps.
std::size_t Spilled::most_beside(std::int64_t copied) const {
  const std::int64_t window = are_blocks_small ? 0 : bytes_in_memory_,
                     block = std::max<std::int64_t>(steps_ * bytes_, 1);
  return static_cast<std::size_t>(std::max<std::int64_t>((window - copied * bytes_) / block, 2));
}

/// Makes room for a copy of steps of several blocks, unless all blocks fit into the window.
void Spilled::make_room_for(std::int64_t copied) {
  if (blocks_.size() <= most_) return;
  most_ = most_beside(copied);
  make_room();
}

void Spilled::need(std::int64_t first, std::int64_t count) {
  const std::int64_t before = first_;
  if (!have(first, count)) return;
  // Reads the next block in the loop's direction ahead.
  const bool goes_back = first < before || before < 0;
  read_ahead((first / steps_ + (goes_back ? 0 : 1)) * steps_ - goes_back);
}

/// Starts reading the block of a step that is needed next.
void Spilled::read_ahead(std::int64_t position) {
  if (position < 0) return;
  const std::int64_t number = position / steps_;
  const auto found = blocks_.find(number);
  if (found == blocks_.end() || found->second.job || found->second.memory.is_defined() ||
      found->second.offset < 0)
    return;
  begin_reading(number, true);
}

bool Spilled::have(std::int64_t first, std::int64_t count) {
  if (const auto list = lists_.find(first); list != lists_.end() && list->second.count)
    elements_->need(list->second.first, 1);
  if ((first == first_ && count == count_) || !type_) return false;
  first_ = first;
  count_ = count;
  const std::int64_t number = first / steps_, last = (first + count - 1) / steps_;
  joined_ = Tensor();
  if (number == used_ && number == last) return false;
  if (number != last) {
    make_room_for(count);
    joined_ = new_memory(count * bytes_);
    char* to = joined_.data<char>();
    for (std::int64_t k = first; k < first + count; ++k, to += bytes_)
      std::memcpy(to, at(use(k / steps_), k), static_cast<std::size_t>(bytes_));
  }
  use(number);
  return true;
}

char* Spilled::data(std::size_t, std::int64_t position) {
  if (joined_.is_defined()) return joined_.data<char>() + (position - first_) * bytes_;
  return at(use(position / steps_), position);
}

Tensor Spilled::tensor(std::size_t, std::int64_t position) {
  if (const auto other = others_.find(position); other != others_.end()) return other->second;
  if (const auto list = lists_.find(position); list != lists_.end()) {
    Tensors elements;
    for (std::int64_t k = 0; k < list->second.count; ++k)
      elements.push_back(elements_->tensor(0, list->second.first + k));
    return make_list(list->second.element, elements);
  }
  if (joined_.is_defined()) return Tensor(allocate_view(*type_, joined_.ref(), data(0, position)));
  const Block& block = use(position / steps_);
  return Tensor(allocate_view(*type_, block.memory.ref(), at(block, position)));
}

}  // namespace reel
