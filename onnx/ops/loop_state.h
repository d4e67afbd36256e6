// onnx/ops/loop_state.h — values that go through Reel's loops and branches, as leaves.
#pragma once

#include "reel/core/types/leaf.h"
#include "reel/core/types/partial_shape.h"
#include "reel/onnx/value.h"

namespace reel::imported {

/// The kinds and element types of the values that a loop or branch has as leaves.
class Layout {
 public:
  Layout() = default;
  explicit Layout(const Values& values);

  /// Returns one leaf for each value: its tensor, or its sequence as a list. Throws ArgumentError,
  /// in the name of `what`, if a value has another kind or type than the layout.
  TreeLeaves leaves(const Values& values, const std::string& what) const;
  /// Returns the values that leaves stand for; the inverse of `leaves`.
  Values values(const TreeLeaves& leaves, std::size_t first = 0) const;
  std::size_t size() const { return slots_.size(); }

 private:
  struct Slot {
    bool is_sequence;
    ElementType type;
    std::optional<TensorType> element;  ///< of a sequence
  };
  std::vector<Slot> slots_;
};

/// Returns the type of all elements of a sequence. Sizes in which elements differ are unknown.
/// Throws TraceError if the sequence is empty, as the rank of its elements is not known, and if
/// elements have different ranks.
TensorType element_type(const Value& sequence);
/// Returns a sequence as an array: its length may change in a loop. Throws as element_type does.
TensorArray array_of(const Value& sequence);
/// Returns an array with elements of this type.
TensorArray array_of(const TensorType& type, const std::vector<Value>& elements);
/// Returns dims of unknown size, as many as these.
Dims unknown_sizes(const Dims& dims);

}  // namespace reel::imported
