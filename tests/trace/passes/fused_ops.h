// tests/trace/passes/fused_ops.h — the graph of a function after fusion, and the bits of unfused
// ops.
#pragma once

#include <string>

#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/fusion/fuse_pointwise.h"

namespace reel {

/// Returns the ops of f's graph after fuse_pointwise(), in order.
template <class F, class... Args>
std::string fused_ops(const F& f, const Args&... args) {
  return ops_behind(fuse_pointwise, f, args...);
}

/// Expects that fused ops give the same bits as ops that run one by one.
template <class F, class... Args>
void expect_same(const F& f, const Args&... args) {
  expect_same_without({.fuse_pointwise = false}, true, f, args...);
}

}  // namespace reel
