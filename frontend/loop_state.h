// frontend/loop_state.h — checking that a loop's body hands on a state like the one it was given.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/leaf.h"
#include "reel/core/partial_shape.h"
#include "reel/frontend/dim_changes.h"

namespace reel {

/// The paths of leaves, made only when an error is to name them.
using PathsFn = std::function<std::vector<std::string>()>;

/// What every iteration of a loop must keep: the structure, and the type of each tensor.
///
/// A named Dim with a size that is a leaf of the state is a slot: body may return another one, made
/// of whatever it likes, with one size for all or lengths over the same dims as before. Tensors and
/// arrays of the state that have the old one (or one computed from it) have the new one then.
class StateRule {
 public:
  /// `what` names the loop in errors: while_loop "encoder". invariants: none, or one per tensor.
  /// Throws StructureError for an empty Tensor and for a Dim in two slots, ArgumentError or
  /// ShapeError when an invariant does not fit.
  StateRule(std::string what, const TreeLeaves& initial, PathsFn paths,
            std::vector<std::optional<PartialShape>> invariants = {});

  /// The state as the next iteration takes it: named dims in the order they had. Throws
  /// StructureError, DTypeError or ShapeError, and lists all leaves that differ.
  TreeLeaves checked(TreeLeaves returned) const;
  /// The type that each tensor of the state has inside a recorded body.
  TensorType formal_type(std::size_t leaf) const;

  const TreeLeaves& initial() const { return initial_; }
  /// Which leaves are Dims that may change.
  const std::vector<std::size_t>& slots() const { return slots_; }
  /// The Dims of the initial state, and those of another one in their place.
  DimChanges changes_to(const TreeLeaves& state) const;
  const std::string& what() const { return what_; }

 private:
  void find_slots();
  bool allows(std::size_t leaf, const TensorType& type, const DimChanges& changes) const;
  /// Whether a Dim of the state may become the other one.
  bool may_become(const Dim& before, const Dim& after, const DimChanges& changes) const;
  /// What an error says of the Dims that decide about the leaves that differ.
  std::string advice(const TreeLeaves& returned, const std::vector<std::size_t>& wrong) const;

  std::string what_;
  TreeLeaves initial_;
  std::vector<std::size_t> slots_;
  PathsFn paths_;
  std::vector<std::optional<PartialShape>> invariants_;  // by leaf
};

/// The condition of a loop, checked: a scalar (one-element tensors are reshaped). Throws DTypeError
/// or ShapeError.
Tensor checked_condition(const std::string& what, const Tensor& condition);

}  // namespace reel
