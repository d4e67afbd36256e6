// frontend/loops/state/growing_dim_state.h — GrowingDimState, the state leaves of a scan that have
// changing Dims, while entries finish one by one.
#pragma once

#include <vector>

#include "reel/core/types/leaf.h"
#include "reel/frontend/loops/state/loop_state.h"

namespace reel {

/// Values of finished entries for leaves with changing Dims: those that the body sees, and those
/// after an iteration.
///
/// A Dim with lengths over the entries is kept per entry, like other leaves: a finished entry sees
/// the lengths and elements of a running one, and has its own afterwards. A Dim with one size
/// changes for all entries, so leaves with it cannot be kept: finished entries continue with their
/// own state and padding. These are the rules of RETURNN's scan (docs/decisions/0006).
class GrowingDimState {
 public:
  /// changing: the slots of the rule with Dims that change.
  GrowingDimState(const StateRule& rule, const std::vector<std::size_t>& changing,
                  const Dims& entry_dims);

  /// True for a tensor with a changing Dim.
  bool follows(std::size_t leaf) const { return follows_[leaf]; }
  bool is_empty() const { return !any_; }
  /// True if finished entries continue with their own state and slices.
  bool goes_on() const { return goes_on_; }

  /// Returns the state as the body sees it.
  TreeLeaves seen(TreeLeaves state, const Tensor& running) const;
  /// Returns a slice of xs as the body sees it if goes_on().
  static Tensor own_frame(const Tensor& x, const Tensor& running);
  /// Returns the state after an iteration, with finished entries of these leaves kept.
  TreeLeaves kept(TreeLeaves next, const TreeLeaves& before, const Tensor& running) const;

 private:
  std::vector<std::size_t> by_entry_;              ///< slots that are kept per entry
  std::vector<std::uint8_t> follows_, is_shared_;  ///< by leaf
  bool any_ = false, goes_on_ = false;
};

}  // namespace reel
