// core/ops/control/fused.h — fused_op, element-wise ops and sums over rows that run together,
// tile by tile.
#pragma once

#include "reel/core/graph/graph.h"

namespace reel {

/// The ops of a graph without captures: element-wise ops, sums over the last axis, linear
/// recurrences, and ops that only select, place or repeat elements (split, concat, spread, expand).
struct FusedAttrs {
  SubGraph body;
  template <class F>
  static void fields(F&& f) {
    f("body", &FusedAttrs::body);
  }
};

/// Made by a pass of the plan (trace/passes/fusion/fuse_pointwise.h), which runs it tile by tile.
/// The op's own kernel runs one op after the other.
extern const Op fused_op;

}  // namespace reel
