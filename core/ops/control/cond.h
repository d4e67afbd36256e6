// core/ops/control/cond.h — the op cond: runs one of two graphs.
#pragma once

#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// cond(pred, captures...): runs on_true or on_false; returns its outputs. Types of both branches
/// must agree except for dims. If dims differ, or are made in the branches, the output has a new
/// dim.
struct CondAttrs {
  SubGraph on_true, on_false;
  std::vector<int> true_captures,
      false_captures;  ///< indices of the op's captures that each branch takes, in its order
  /// True if no result is read when pred is false: on_false then returns zeros, so that branches of
  /// vmap that no row takes compute nothing.
  bool is_guard = false;
  template <class F>
  static void fields(F&& f) {
    f("true_captures", &CondAttrs::true_captures);
    f("false_captures", &CondAttrs::false_captures);
    f("on_true", &CondAttrs::on_true);
    f("on_false", &CondAttrs::on_false);
    f("is_guard", &CondAttrs::is_guard);
  }
};

extern const Op cond_op;

// Implemented by other folders: running (trace/executors) and differentiating (autodiff).
void run_cond(KernelArgs& args);
void cond_vjp(Vjp& at);

}  // namespace reel
