// frontend/loops/state/loop_state.h — StateRule, which checks the state that a loop's body returns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/dim_changes.h"
#include "reel/core/types/leaf.h"
#include "reel/core/types/partial_shape.h"

REEL_API_BEGIN
namespace reel {

/// Returns the paths of leaves; called only for an error message.
using PathsFn = std::function<std::vector<std::string>()>;

/// The invariants of a loop's state: its structure, and the type of each tensor.
///
/// A leaf that is a named Dim with a size is a slot: body may return another Dim there, computed in
/// any way, with one size or with lengths over the same dims as before. Tensors and arrays of the
/// state that have the old Dim, or one computed from it, must then have the new one.
class StateRule {
 public:
  using Invariants = std::vector<std::optional<PartialShape>>;
  /// `what` names the loop in errors, as in while_loop "encoder". returned_paths: paths of a state
  /// that came back with another structure. invariants: empty, or one per tensor. asks:
  /// shape_invariants if the caller of the loop can give some, so that errors advise them. Throws
  /// StructureError for empty Tensors and for a Dim in two slots; ArgumentError or ShapeError if an
  /// invariant does not fit.
  enum class Asks { nothing, shape_invariants };
  StateRule(std::string what, const TreeLeaves& initial, PathsFn paths, PathsFn returned_paths,
            const Invariants& invariants, Asks asks);

  /// Returns the state for the next iteration, with named dims in their original order. Throws
  /// StructureError, DTypeError or ShapeError; the message lists all leaves that differ.
  TreeLeaves checked(TreeLeaves returned) const;
  /// Returns true for a tensor under PartialShape::unknown_rank().
  bool lets_rank_change(std::size_t leaf) const {
    return invariants_[leaf] && !invariants_[leaf]->has_rank();
  }
  /// Returns the type of a tensor of the state inside a recorded body, if neither its rank nor its
  /// named dims change.
  TensorType formal_type(std::size_t leaf) const;

  /// Returns the initial state. Elements of a TensorArray have the invariant's type if it lets them
  /// differ.
  const TreeLeaves& initial() const { return initial_; }
  /// Returns the final state of a loop without iterations. A trace knows only the invariants of it.
  TreeLeaves unchanged() const;
  /// Returns the leaves that are Dims which may change.
  const std::vector<std::size_t>& slots() const { return slots_; }
  /// Returns the changes of the slots' Dims from the initial state to `state`.
  DimChanges changes_to(const TreeLeaves& state) const;
  const std::string& what() const { return what_; }

 private:
  void find_slots();
  /// Returns the shape that the shape of a leaf must be at least as specific as.
  PartialShape invariant(std::size_t leaf) const;
  bool allows(std::size_t leaf, const TensorType& type, const DimChanges& changes) const;
  /// True if a Dim of the state may become `after`.
  bool may_become(const Dim& before, const Dim& after, const DimChanges& changes) const;
  [[noreturn]] void refuse_structure(const TreeLeaves& returned) const;
  /// Returns the part of an error message about the Dims that cause the leaves to differ.
  std::string advice(const TreeLeaves& returned, const std::vector<std::size_t>& wrong) const;
  std::string why_not(std::size_t leaf, const TensorType& type, const DimChanges& changes) const;

  std::string what_;
  TreeLeaves initial_;
  std::vector<std::size_t> slots_;
  PathsFn paths_, returned_paths_;
  bool takes_invariants_;
  Invariants invariants_;  // by leaf
};

/// Returns the checked condition of a loop: a scalar; one-element tensors are reshaped. Throws
/// StructureError for an empty Tensor, DTypeError or ShapeError for others.
Tensor checked_condition(const std::string& what, const Tensor& condition);

}  // namespace reel
REEL_API_END
