// core/ops/fused.h — fused, element-wise ops and sums over rows that are done together, some
// elements at a time.
#pragma once

#include "reel/core/graph.h"

namespace reel {

/// The ops of a graph without captures: element-wise ones, sums over the last axis, and such as say
/// which elements of a tensor they take or give (split, concat, spread).
struct FusedAttrs {
  SubGraph body;
  template <class F>
  static void fields(F&& f) {
    f("body", &FusedAttrs::body);
  }
};

/// Made by a pass of the plan (trace/passes/fuse_pointwise.h), which runs it tile by tile; its own
/// kernel does one op after the other.
extern const Op fused_op;

}  // namespace reel
