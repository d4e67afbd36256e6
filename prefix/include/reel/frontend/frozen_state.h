// frontend/frozen_state.h — FrozenState, what of a scan's state follows Dims that change, while
// entries end one by one.
#pragma once

#include <vector>

#include "reel/core/leaf.h"
#include "reel/frontend/loop_state.h"

namespace reel {

/// Leaves with Dims that change, as entries see them that have ended, and as they are kept.
///
/// A Dim with lengths over the entries is kept entry by entry, as other leaves are: an ended entry
/// sees the lengths and elements of a live one, and has its own afterwards. A Dim with one size
/// changes for everybody, so what follows it cannot be kept: ended entries go on with what they
/// have, and with their own padded frames. (The rules of RETURNN's scan, docs/decisions/0006.)
class FrozenState {
 public:
  /// changing: the slots of the rule that change.
  FrozenState(const StateRule& rule, const std::vector<std::size_t>& changing,
              const Dims& entry_dims);

  /// A tensor that has one of the Dims.
  bool follows(std::size_t leaf) const { return follows_[leaf]; }
  bool is_empty() const { return !any_; }
  /// Ended entries go on with their own state and frames.
  bool goes_on() const { return goes_on_; }

  /// What the body sees of a state (of those leaves), and of a slice of xs if entries go on.
  TreeLeaves seen(TreeLeaves state, const Tensor& live) const;
  static Tensor own_frame(const Tensor& x, const Tensor& live);
  /// Those leaves after an iteration.
  TreeLeaves kept(TreeLeaves next, const TreeLeaves& before, const Tensor& live) const;

 private:
  std::vector<std::size_t> by_entry_;              ///< slots that are kept entry by entry
  std::vector<std::uint8_t> follows_, is_shared_;  ///< by leaf
  bool any_ = false, goes_on_ = false;
};

}  // namespace reel
