// frontend/loop_state.h — checking that a loop's body hands on a state like the one it was given.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/leaf.h"
#include "reel/core/partial_shape.h"

namespace reel {

/// The paths of leaves, made only when an error is to name them.
using PathsFn = std::function<std::vector<std::string>()>;

/// What every iteration of a loop must keep.
class StateRule {
 public:
  /// `what` names the loop in errors: while_loop "encoder". invariants: none, or one per tensor.
  /// Throws StructureError when there is no tensor, ArgumentError or ShapeError when an invariant
  /// does not fit.
  StateRule(std::string what, const TreeLeaves& initial, PathsFn paths,
            std::vector<std::optional<PartialShape>> invariants = {});

  /// The state as the next iteration takes it: named dims in the order they had. Throws
  /// StructureError, DTypeError or ShapeError, and lists all leaves that differ.
  TreeLeaves checked(TreeLeaves returned) const;
  /// The type that each tensor of the state has inside a recorded body.
  TensorType formal_type(std::size_t leaf) const;

  const TreeLeaves& initial() const { return initial_; }
  const std::string& what() const { return what_; }

 private:
  bool allows(std::size_t leaf, const TensorType& type) const;

  std::string what_;
  TreeLeaves initial_;
  PathsFn paths_;
  std::vector<std::optional<PartialShape>> invariants_;  // by leaf
};

/// The condition of a loop, checked: a scalar (one-element tensors are reshaped). Throws DTypeError
/// or ShapeError.
Tensor checked_condition(const std::string& what, const Tensor& condition);

}  // namespace reel
