// tests/trace/plan/row_cuts.h — how the loops of a function are split into row blocks, and a check
// that splitting changes no bits.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/plan/loop/row_cut.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {

/// The number of rows of each block.
using Blocks = std::vector<std::int64_t>;

/// Returns the row blocks of f's loops, in the order of the loops, with an empty list for a loop
/// that is not split. For a chunked loop these are the blocks of its inner loop.
template <class F, class... Args>
std::vector<Blocks> cuts(const F& f, const Args&... args) {
  const auto jitted = jit(f);
  jitted(args...);
  const Ref<Graph> graph = optimise_for_plan(jitted.graph(), {}).graph;
  std::vector<Blocks> result;
  const std::function<void(const Graph&)> add = [&](const Graph& graph) {
    for (const OpRecord& record : graph.records) {
      if (record.op != &loop_op) continue;
      const auto& attrs = get<LoopAttrs>(record.attrs.get());
      if (attrs.chunking.over_chunks) {
        add(*attrs.body.graph);
        continue;
      }
      const auto cut = find_row_cut(attrs, graph.types_of(graph.inputs_of(record)));
      result.push_back(cut ? cut->blocks : Blocks());
    }
  };
  add(*graph);
  return result;
}

/// Counts the occurrences of `words` in a text of explain().
inline int times_said(const std::string& text, std::string_view words) {
  int result = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != text.npos; ++at) ++result;
  return result;
}

/// Expects that a plan gives the same bits on any number of threads, and values close to the
/// interpreter's.
template <class F, class... Args>
void expect_same_on_threads(const F& f, const Args&... args) {
  const auto planned = jit(f, {.executor = Executor::plan});
  const TreeLeaves expected = flatten(jit(f, {.executor = Executor::interpreter})(args...));
  TreeLeaves first;
  for (const int count : {1, 2, 3, 8}) {
    const Threads these(count);
    const TreeLeaves leaves = flatten(planned(args...));
    if (first.empty()) first = leaves;
    ASSERT_EQ(leaves.size(), expected.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].kind != TreeLeaf::Kind::tensor) continue;
      expect_same_bits(leaves[i].tensor, first[i].tensor);
      expect_all_close(leaves[i].tensor, expected[i].tensor, 2e-5);
    }
  }
}

}  // namespace reel
