// frontend/loop_state.h — checking that a loop's body hands on a state like the one it was given.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/dim_changes.h"
#include "reel/core/leaf.h"
#include "reel/core/partial_shape.h"

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
  using Invariants = std::vector<std::optional<PartialShape>>;
  /// `what` names the loop in errors: while_loop "encoder". returned_paths: of a state that came
  /// back with another structure. invariants: none, or one per tensor; asks: whether the loop has
  /// them from its caller, whom errors advise then. Throws StructureError for empty Tensors and for
  /// a Dim in two slots, ArgumentError or ShapeError when an invariant does not fit.
  enum class Asks { nothing, shape_invariants };
  StateRule(std::string what, const TreeLeaves& initial, PathsFn paths, PathsFn returned_paths,
            const Invariants& invariants, Asks asks);

  /// The state as the next iteration takes it: named dims in the order they had. Throws
  /// StructureError, DTypeError or ShapeError, and lists all leaves that differ.
  TreeLeaves checked(TreeLeaves returned) const;
  /// The type that each tensor of the state has inside a recorded body.
  TensorType formal_type(std::size_t leaf) const;

  /// The state that goes in; a TensorArray whose invariant lets elements differ is one of such
  /// elements.
  const TreeLeaves& initial() const { return initial_; }
  /// The state that comes out where no iteration runs: a trace knows of it what the invariants say.
  TreeLeaves unchanged() const;
  /// Which leaves are Dims that may change.
  const std::vector<std::size_t>& slots() const { return slots_; }
  /// The Dims of the initial state, and those of another one in their place.
  DimChanges changes_to(const TreeLeaves& state) const;
  const std::string& what() const { return what_; }

 private:
  void find_slots();
  /// What the shape of a leaf must be at least as specific as.
  PartialShape invariant(std::size_t leaf) const;
  bool allows(std::size_t leaf, const TensorType& type, const DimChanges& changes) const;
  /// Whether a Dim of the state may become the other one.
  bool may_become(const Dim& before, const Dim& after, const DimChanges& changes) const;
  [[noreturn]] void refuse_structure(const TreeLeaves& returned) const;
  /// What an error says of the Dims that decide about the leaves that differ.
  std::string advice(const TreeLeaves& returned, const std::vector<std::size_t>& wrong) const;
  std::string why_not(std::size_t leaf, const TensorType& type, const DimChanges& changes) const;

  std::string what_;
  TreeLeaves initial_;
  std::vector<std::size_t> slots_;
  PathsFn paths_, returned_paths_;
  bool takes_invariants_;
  Invariants invariants_;  // by leaf
};

/// The condition of a loop, checked: a scalar (one-element tensors are reshaped). Throws DTypeError
/// or ShapeError.
Tensor checked_condition(const std::string& what, const Tensor& condition);

}  // namespace reel
