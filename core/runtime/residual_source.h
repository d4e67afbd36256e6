// core/runtime/residual_source.h — ResidualSource, residuals of a loop for all iterations; few are
// in memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "reel/core/types/block.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Residuals of a loop, for its gradient loop. Iterations are requested from the last to the first
/// as the loop ran, some at a time. They are numbered by the positions of their slices.
class ResidualSource : public BlockAttachment {
 public:
  /// Brings iterations [first, first + count) into memory. May evict others.
  virtual void need(std::int64_t first, std::int64_t count) = 0;
  /// Returns value i of an iteration that is in memory. Requires: not a list. Elements are in
  /// row-major order. If the loop runs along a dim, the iterations behind it that were requested
  /// together follow.
  virtual char* data(std::size_t i, std::int64_t step) = 0;
  /// Returns value i of the iteration as a tensor, which may be retained.
  virtual Tensor tensor(std::size_t i, std::int64_t step) = 0;
  /// Returns true if all iterations have one type, so that data() returns all of them.
  virtual bool is_uniform() const { return true; }
  /// Returns the number of iterations.
  virtual std::int64_t count() const = 0;
  /// Returns the bytes that these residuals alone hold in memory now, checkpoints included.
  virtual std::int64_t bytes_held() const { return 0; }

  /// Must be locked by readers if others may read at the same time (ResidualLock).
  std::recursive_mutex mutex;
  /// Grows with each object made. Objects made later may read those made before.
  const std::uint64_t number = next_number();

 private:
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> next{0};
    return next++;
  }
};

/// One value of ResidualSource: the attachment of a tensor that stands for its residuals of all
/// iterations. Only loops may read such a tensor, as slices.
struct ResidualValue : BlockAttachment {
  Ref<ResidualSource> steps;
  std::size_t index;
  ResidualValue(Ref<ResidualSource> steps, std::size_t index)
      : steps(std::move(steps)), index(index) {}
};

/// Returns a tensor that stands for value `index` of all iterations.
inline Tensor make_residual(const TensorType& type, const Ref<ResidualSource>& steps,
                            std::size_t index) {
  return Tensor(allocate_steps(type, Ref<const BlockAttachment>(new ResidualValue(steps, index))));
}
/// Returns the residual that a tensor stands for; null for other tensors.
inline const ResidualValue* residual_value(const Tensor& tensor) {
  return tensor.block()->kind == BlockKind::steps
             ? static_cast<const ResidualValue*>(tensor.block()->attachment.get())
             : nullptr;
}

/// Returns the value with other dims of the same sizes, given by `type`. A tensor that stands for
/// residuals still does so, without data.
inline Tensor with_dims_of(const Tensor& value, const TensorType& type) {
  const TensorBlock& block = *value.block();
  if (block.kind == BlockKind::steps) return Tensor(allocate_steps(type, block.attachment));
  if (block.kind == BlockKind::list) return Tensor(allocate_list(type, block.attachment));
  return Tensor(allocate_view(type, value.ref(), value.data<char>()));
}

/// Returns the value with the dims of `type` if they have the same names and sizes in the same
/// order; otherwise the value unchanged. Needed because an iteration that ran twice made its dims
/// twice.
inline Tensor named_alike(const Tensor& value, const TensorType& type) {
  if (value.type() == type || value.type().is_list()) return value;
  const auto are_alike = [](const Dim& a, const Dim& b) {
    return a == b || (a.is_named() && b.is_named() && a.name() == b.name() && a.has_size() &&
                      b.has_size() && a.raw_size() == b.raw_size());
  };
  return std::ranges::equal(value.dims(), type.dims(), are_alike)
             ? with_dims_of(value, value.type().with(type.dims()))
             : value;
}

/// Locks the residuals that a loop reads while it runs. Without the lock, two loops that read the
/// same iterations alternately would evict and recompute each other's window. Locks are taken in
/// order of decreasing `number`, so there is no deadlock.
class ResidualLock {
 public:
  /// values: residuals of slices; null ones are ignored.
  explicit ResidualLock(const std::vector<const ResidualValue*>& values) {
    for (const ResidualValue* value : values)
      if (value) steps_.push_back(value->steps);
    const auto number = [](const Ref<ResidualSource>& steps) { return steps->number; };
    std::ranges::sort(steps_, std::greater(), number);
    for (const Ref<ResidualSource>& steps : steps_) steps->mutex.lock();
  }
  ~ResidualLock() {
    for (const Ref<ResidualSource>& steps : steps_) steps->mutex.unlock();
  }
  ResidualLock(const ResidualLock&) = delete;
  ResidualLock& operator=(const ResidualLock&) = delete;

 private:
  std::vector<Ref<ResidualSource>> steps_;
};

}  // namespace reel
