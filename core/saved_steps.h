// core/saved_steps.h — SavedSteps, what a loop saved of its steps, of which few are in memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "reel/core/block.h"
#include "reel/core/tensor.h"

namespace reel {

/// Values that a loop saved of each of its steps, for the loop that runs back over them: steps are
/// asked for from the last one to the first, as the loop went, some at a time. They are numbered by
/// the positions of their slices.
class SavedSteps : public BlockAttachment {
 public:
  /// Has the steps from `first` on, so many, in memory; others may be let go of.
  virtual void need(std::int64_t first, std::int64_t count) = 0;
  /// Value i of a step that was asked for, no list: elements in row-major order, those of the steps
  /// behind it that were asked for with it one behind the other, where the loop runs along a dim.
  virtual char* data(std::size_t i, std::int64_t step) = 0;
  /// The same as a tensor; it may be kept.
  virtual Tensor tensor(std::size_t i, std::int64_t step) = 0;
  /// All steps are of one type: data() has them all.
  virtual bool is_uniform() const { return true; }
  /// How many steps there are.
  virtual std::int64_t count() const = 0;
  /// The bytes that these steps alone hold in memory now, checkpoints included.
  virtual std::int64_t bytes_held() const { return 0; }

  /// Held by who reads steps where others may do so at the same time.
  std::recursive_mutex mutex;
  /// Those made later may read those made before.
  const std::uint64_t number = next_number();

 private:
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> next{0};
    return next++;
  }
};

/// One value of them, as the attachment of a tensor that stands for all steps of it: a loop may
/// take it as its slices, and nobody else reads it.
struct SavedValue : BlockAttachment {
  Ref<SavedSteps> steps;
  std::size_t index;
  SavedValue(Ref<SavedSteps> steps, std::size_t index) : steps(std::move(steps)), index(index) {}
};

inline Tensor make_saved(const TensorType& type, const Ref<SavedSteps>& steps, std::size_t index) {
  return Tensor(allocate_steps(type, Ref<const BlockAttachment>(new SavedValue(steps, index))));
}
/// The saved value that a tensor stands for; null if it stands for itself.
inline const SavedValue* saved_value(const Tensor& tensor) {
  return tensor.block()->kind == BlockKind::steps
             ? static_cast<const SavedValue*>(tensor.block()->attachment.get())
             : nullptr;
}

/// The same value with other dims, which are as long: `type` says them. A tensor that stands for
/// steps stands for them still, and has no data to look at.
inline Tensor with_dims_of(const Tensor& value, const TensorType& type) {
  const TensorBlock& block = *value.block();
  if (block.kind == BlockKind::steps) return Tensor(allocate_steps(type, block.attachment));
  if (block.kind == BlockKind::list) return Tensor(allocate_list(type, block.attachment));
  return Tensor(allocate_view(type, value.ref(), value.data<char>()));
}

/// The value with the dims of `type` if they have the same names and sizes in the same order, else
/// the value as it is: a step that ran twice made its dims twice.
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

/// Holds what a loop reads for as long as the loop runs: two loops that took turns would have the
/// same steps run again for every turn. All take the latest first, and do not wait in a circle.
class SavedReading {
 public:
  /// values: of some slices; null ones are left out.
  explicit SavedReading(const std::vector<const SavedValue*>& values) {
    for (const SavedValue* value : values)
      if (value) steps_.push_back(value->steps);
    const auto number = [](const Ref<SavedSteps>& steps) { return steps->number; };
    std::ranges::sort(steps_, std::greater(), number);
    for (const Ref<SavedSteps>& steps : steps_) steps->mutex.lock();
  }
  ~SavedReading() {
    for (const Ref<SavedSteps>& steps : steps_) steps->mutex.unlock();
  }
  SavedReading(const SavedReading&) = delete;
  SavedReading& operator=(const SavedReading&) = delete;

 private:
  std::vector<Ref<SavedSteps>> steps_;
};

}  // namespace reel
