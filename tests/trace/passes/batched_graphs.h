// tests/trace/passes/batched_graphs.h — graphs before and after ops leave loops, and how often they
// have an op.
#pragma once

#include <ostream>
#include <string_view>
#include <utility>

#include "reel/core/ops/loop/loop.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {

/// How often an op occurs in a graph outside and inside its loops.
struct Count {
  int outside = 0, inside = 0;
  bool operator==(const Count&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Count& count) {
  return out << count.outside << " outside, " << count.inside << " inside";
}
inline int count_all(const Graph& graph, std::string_view op);
inline Count count(const Graph& graph, std::string_view op) {
  Count result;
  for (const OpRecord& record : graph.records) {
    result.outside += record.op->name == op;
    if (record.op == &loop_op)
      result.inside += count_all(*get<LoopAttrs>(record.attrs.get()).body.graph, op);
  }
  return result;
}
inline int count_all(const Graph& graph, std::string_view op) {
  const Count here = count(graph, op);
  return here.outside + here.inside;
}

/// Returns the graphs of f that the interpreter and the plan run.
template <class F, class... Args>
std::pair<Ref<Graph>, Ref<Graph>> graphs(const F& f, const Args&... args) {
  const auto jitted = jit(f);
  jitted(args...);
  Ref<Graph> before(new Graph(jitted.graph()));
  return {before,
          optimise_for_plan(*before, {.pack_weights = false, .fuse_pointwise = false}).graph};
}

template <class F, class... Args>
void expect_same_results(const F& f, const Args&... args) {
  const auto by_plan = flatten(jit(f, {.executor = Executor::plan})(args...)),
             by_interpreter = flatten(jit(f, {.executor = Executor::interpreter})(args...));
  ASSERT_EQ(by_plan.size(), by_interpreter.size());
  for (std::size_t i = 0; i < by_plan.size(); ++i)
    if (by_plan[i].kind == TreeLeaf::Kind::tensor)
      expect_all_close(by_plan[i].tensor, by_interpreter[i].tensor, 1e-12);
}

}  // namespace reel
