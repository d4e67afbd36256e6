// frontend/state_dims.h — Dims in the state of a loop, which may change from iteration to
// iteration.
#pragma once

#include <vector>

#include "reel/core/graph_builder.h"
#include "reel/core/leaf.h"
#include "reel/frontend/loop_state.h"

namespace reel {

/// What a loop's graphs take for a state: a promise for each tensor, a formal Dim for each Dim that
/// iterations change, and a token that says what it is. Tensors have the formal Dim too.
///
/// Which Dims change is known only when the body has returned: it is recorded with those of the
/// initial state first, and only if some came back changed with formal ones in their place.
class FormalState {
 public:
  /// In a trace.
  explicit FormalState(const StateRule& rule) : rule_(rule) {}

  /// The state, as inputs of the graph that is being recorded.
  TreeLeaves add_inputs(GraphBuilder& builder) const;
  /// Takes note of Dims that came back changed. True if there are some that it did not know of:
  /// then what was recorded is of no use.
  bool learns(const TreeLeaves& returned);
  /// The Dims that change: leaves of the state, and what they are in the recorded graphs.
  const std::vector<std::size_t>& changing() const { return changing_; }
  const Dims& formal() const { return formal_; }

  /// The tensors of a state, then tokens of the Dims that change: the loop's carries.
  Tensors carries(const TreeLeaves& state) const;
  /// The state that comes out, from the last values of those.
  TreeLeaves result(const Tensors& outputs) const;

 private:
  const StateRule& rule_;
  std::vector<std::size_t> changing_;
  Dims formal_;
};

}  // namespace reel
