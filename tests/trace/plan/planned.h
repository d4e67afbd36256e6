// tests/trace/plan/planned.h — graphs written as the names of their ops, and a comparison of plans
// with and without a pass.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {

/// Returns the names of a graph's ops in their order. Ops of a fused op stand in brackets; ops of a
/// loop's body and of each branch stand in braces.
inline std::string ops(const Graph& graph) {
  std::string result;
  for (const OpRecord& record : graph.records) {
    if (!result.empty()) result += ' ';
    result += record.op->name;
    if (record.op == &fused_op)
      result += '[' + ops(*get<FusedAttrs>(record.attrs.get()).body.graph) + ']';
    if (record.op == &loop_op)
      result += '{' + ops(*get<LoopAttrs>(record.attrs.get()).body.graph) + '}';
    if (record.op == &cond_op) {
      const auto& branches = get<CondAttrs>(record.attrs.get());
      result += '{' + ops(*branches.on_true.graph) + "}{" + ops(*branches.on_false.graph) + '}';
    }
  }
  return result;
}

/// Returns the ops of f's graph after one pass.
template <class Pass, class F, class... Args>
std::string ops_behind(Pass pass, const F& f, const Args&... args) {
  const auto jitted = jit(f);
  jitted(args...);
  return ops(*pass(jitted.graph()));
}

/// Expects that a plan returns the same as one without `passes`: the same bits, or, if not
/// `to_the_bit`, values that differ by rounding only.
template <class F, class... Args>
void expect_same_without(const Passes& passes, bool to_the_bit, const F& f, const Args&... args) {
  const auto all = flatten(jit(f, {.executor = Executor::plan})(args...)),
             less = flatten(jit(f, {.executor = Executor::plan, .passes = passes})(args...));
  ASSERT_EQ(all.size(), less.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind != TreeLeaf::Kind::tensor) continue;
    if (to_the_bit)
      expect_same_bits(all[i].tensor, less[i].tensor);
    else
      expect_all_close(all[i].tensor, less[i].tensor, all[i].tensor.dtype() == f64 ? 1e-12 : 1e-5);
  }
}

}  // namespace reel
