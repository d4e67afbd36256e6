// frontend/loops/state/state_dims.h — FormalState, the formal values of a loop's state and its
// changing Dims.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/types/leaf.h"
#include "reel/frontend/loops/state/loop_state.h"

namespace reel {

/// The formal state in a loop's graphs: a promise for each tensor, and a formal Dim with its token
/// for each Dim that iterations change. Tensors with such a Dim have the formal Dim too.
///
/// Only the returned state shows which Dims and ranks change. Therefore the body is first recorded
/// with Dims and ranks of the initial state. If some have changed, it is recorded again with formal
/// Dims and unknown ranks.
class FormalState {
 public:
  /// Requires a trace.
  explicit FormalState(const StateRule& rule);

  /// Adds the state to the inputs of the graph that is being recorded.
  TreeLeaves add_inputs(GraphBuilder& builder) const;
  /// Notes the Dims and ranks that have changed. Returns true if some of them are new: the
  /// recording must then be discarded and made again.
  bool learns(const TreeLeaves& returned);
  /// Returns the state with new Dims in place of the changing ones that the code of `builder` made:
  /// of the state that the body returned, or of the initial state (FreshDims). Requires that
  /// `builder` is the innermost one.
  TreeLeaves with_fresh_dims(TreeLeaves state, const GraphBuilder& builder) const;
  /// Makes the ranks unknown that may change. Returns false if none has been known.
  bool forget_ranks();
  /// Returns the changing Dims: their leaves in the state, and their formal Dims in the recorded
  /// graphs.
  const std::vector<std::size_t>& changing() const { return changing_; }
  const Dims& formal() const { return formal_; }

  /// Returns the loop's carries: the tensors of a state, then tokens of the changing Dims.
  Tensors carries(const TreeLeaves& state) const;
  /// Returns the final state, given the loop's final carries.
  TreeLeaves result(const Tensors& outputs) const;

 private:
  bool learns_dims(const TreeLeaves& returned);
  bool learns_ranks(const TreeLeaves& returned);

  const StateRule& rule_;
  std::vector<std::size_t> changing_;
  Dims formal_;
  std::vector<std::uint8_t> is_unranked_;  ///< by leaf: its rank, or a named dim, changes
};

}  // namespace reel
