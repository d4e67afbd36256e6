#include "reel/trace/executors/spilled.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "reel/core/memory.h"

namespace reel {
namespace {

std::atomic<std::int64_t> least_bytes{1 << 20};  // of a block

}  // namespace

SpillBlocks::SpillBlocks(std::int64_t bytes) : before_(least_bytes.exchange(bytes)) {}
SpillBlocks::~SpillBlocks() { least_bytes = before_; }

char* Spilled::place(const TensorType& step, std::int64_t position) {
  if (!type_) {
    type_ = step;
    bytes_ = step.bytes();
    const std::int64_t run = std::max<std::int64_t>(bytes_ * together_, 1);
    steps_ = (least_bytes + run - 1) / run * together_;
    if (limit_) {
      const std::int64_t runs = (*limit_ + together_ - 1) / together_;
      steps_ = std::clamp<std::int64_t>(runs * together_, together_, steps_);
    }
    most_ = static_cast<std::size_t>(
        std::max<std::int64_t>(bytes_in_memory_ / std::max<std::int64_t>(steps_ * bytes_, 1), 2));
  }
  Block& block = use(position / steps_);
  block.is_changed = true;
  make_longer(block, position % steps_ + together_);
  return at(block, position);
}

void Spilled::put(std::int64_t position, const Tensor& step) {
  if (step.type().is_list() || (type_ && !(*type_ == step.type()))) {
    count_as(others_[position] = step, what_);
    return;
  }
  char* to = place(step.type(), position);
  if (bytes_) std::memcpy(to, step.data<char>(), static_cast<std::size_t>(bytes_));
}

Tensor Spilled::new_memory(std::int64_t steps) const {
  Tensor memory(allocate_block(TensorType(boolean, {steps * bytes_})));
  count_as(memory, what_);
  return memory;
}

/// The block in memory, in front of the line.
Spilled::Block& Spilled::use(std::int64_t number) {
  if (number == used_) return *used_block_;  // in front, and in memory
  Block& block = blocks_[number];
  settle(block);
  if (!block.memory.is_defined() && block.offset >= 0) {
    begin_reading(number);
    settle(block);
  }
  // How much a loop of unknown length will need is not known: perhaps little.
  if (!block.memory.is_defined())
    block.memory = new_memory(limit_ || number > 0 ? steps_ : together_);
  if (line_.empty() || line_.front() != number) {
    line_.remove(number);
    line_.push_front(number);
    make_room();
  }
  used_ = number;
  used_block_ = &block;
  return block;
}

/// Room for so many steps, and for twice as many as there was room for.
void Spilled::make_longer(Block& block, std::int64_t steps) {
  const std::int64_t bytes = block.memory.type().bytes();
  if (bytes >= std::min(steps, steps_) * bytes_) return;
  const Tensor longer = new_memory(std::min(std::max(steps, 2 * bytes / bytes_), steps_));
  std::memcpy(longer.data<char>(), block.memory.data<char>(), static_cast<std::size_t>(bytes));
  block.memory = longer;
}

void Spilled::begin_reading(std::int64_t number) {
  Block& block = blocks_[number];
  block.job = file_->read(block.offset, new_memory(steps_));
}

/// Waits for it where it is on its way.
void Spilled::settle(Block& block) {
  if (!block.job) return;
  const SpillFile::JobRef job = std::exchange(block.job, nullptr);
  file_->wait(job);
  block.memory = job->block;
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
    make_longer(block, steps_);
    block.job = file_->write(block.offset, std::exchange(block.memory, Tensor()));
    block.is_changed = false;
    writing_.push_back(number);
    if (writing_.size() <= kWriting) continue;
    Block& oldest = blocks_[writing_.front()];
    writing_.pop_front();
    if (!oldest.job) continue;  // somebody has waited for it already
    settle(oldest);
    oldest.memory = Tensor();
  }
}

void Spilled::need(std::int64_t first, std::int64_t count) {
  if ((first == first_ && count == count_) || !type_) return;
  const std::int64_t before = std::exchange(first_, first);
  count_ = count;
  const std::int64_t number = first / steps_, last = (first + count - 1) / steps_;
  piece_ = Tensor();
  if (number == used_ && number == last) return;
  if (number != last) {
    piece_ = new_memory(count);
    char* to = piece_.data<char>();
    for (std::int64_t k = first; k < first + count; ++k, to += bytes_)
      std::memcpy(to, at(use(k / steps_), k), static_cast<std::size_t>(bytes_));
  }
  use(number);
  // The next block as the loop goes, ahead of it.
  const std::int64_t next = first < before || before < 0 ? number - 1 : number + 1;
  const auto found = blocks_.find(next);
  if (found == blocks_.end() || found->second.job || found->second.memory.is_defined() ||
      found->second.offset < 0)
    return;
  begin_reading(next);
}

char* Spilled::data(std::size_t, std::int64_t position) {
  if (piece_.is_defined()) return piece_.data<char>() + (position - first_) * bytes_;
  return at(use(position / steps_), position);
}

Tensor Spilled::tensor(std::size_t, std::int64_t position) {
  if (const auto other = others_.find(position); other != others_.end()) return other->second;
  if (piece_.is_defined()) return Tensor(allocate_view(*type_, piece_.ref(), data(0, position)));
  const Block& block = use(position / steps_);
  return Tensor(allocate_view(*type_, block.memory.ref(), at(block, position)));
}

}  // namespace reel
