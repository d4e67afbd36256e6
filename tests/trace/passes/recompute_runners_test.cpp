// The choice of the executor that runs recomputed iterations: graphs of recompute ops, and counts
// of runs.
#include "reel/trace/passes/residuals/recompute_runners.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/executors/interpreter.h"
#include "reel/trace/run_plan.h"

namespace reel {
namespace {

std::atomic<int> runs{0};

Tensors interpret_and_count(const GraphRef& graph, Tensors&& inputs, const RunOptions& options) {
  ++runs;
  return interpret(graph, std::move(inputs), options);
}
const GraphRunner kCounting{interpret_and_count, {}};

struct Recomputes {
  int all = 0, with_runner = 0;
  bool operator==(const Recomputes&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Recomputes& recomputes) {
  return out << recomputes.all << " recomputes, " << recomputes.with_runner << " by a runner";
}

Recomputes recomputes_of(const Graph& graph) {
  Recomputes result;
  const auto add = [&](const Graph& inside) {
    const Recomputes more = recomputes_of(inside);
    result.all += more.all;
    result.with_runner += more.with_runner;
  };
  for (const OpRecord& record : graph.records) {
    if (record.op == &recompute_op) {
      ++result.all;
      const auto& runner = get<RecomputeAttrs>(record.attrs.get()).runner;
      result.with_runner += runner && runner->run == interpret_and_count;
    }
    if (record.op == &loop_op) add(*get<LoopAttrs>(record.attrs.get()).body.graph);
    if (record.op != &cond_op) continue;
    const auto& branches = get<CondAttrs>(record.attrs.get());
    add(*branches.on_true.graph);
    add(*branches.on_false.graph);
  }
  return result;
}

/// A scan of six steps with a checkpoint every two.
Tensor steps(const Tensor& x, const Checkpoint& policy = Checkpoint::every(2)) {
  const auto body = [](const Tensor& x, const Tensor& h) {
    const Tensor next = tanh(sin(h) + x);
    return std::pair{None{}, next};
  };
  return sum(
      scan(Scan{.initial = zeros({3}, f64), .xs = x, .body = body, .checkpoint = policy}).state);
}

class RecomputeRunnersTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(3); }
  static Tensor sequence() { return random_normal({6, 3}, f64); }

  template <class F>
  static Ref<Graph> graph_of(const F& f, const Tensor& x) {
    const auto jitted = jit(f);
    jitted(x);
    return Ref<Graph>(new Graph(jitted.graph()));
  }
};

TEST_F(RecomputeRunnersTest, FindsRecomputationsInBodiesAndBranches) {
  const auto in_loop = [](const Tensor& x) {
    return grad([&](const Tensor& x) {
      return fori_loop(
          0, 2, [&](const Tensor&, const Tensor& s) { return s + steps(x * s); }, scalar(1., f64));
    })(x);
  };
  const auto in_branch = [](const Tensor& x) {
    return cond(
        sum(x) > 0., [&] { return grad([](const Tensor& x) { return steps(x); })(x); },
        [&] { return x; });
  };
  const auto keeps_all = grad([](const Tensor& x) { return steps(x, Checkpoint()); });
  for (const Ref<Graph>& graph :
       {graph_of(grad([](const Tensor& x) { return steps(x); }), sequence()),
        graph_of(in_loop, sequence()), graph_of(in_branch, sequence())}) {
    EXPECT_TRUE(has_recomputes(*graph));
    EXPECT_EQ(recomputes_of(*graph), (Recomputes{1, 0})) << str(*graph);
    const Ref<Graph> after = recompute_by(*graph, kCounting);
    EXPECT_EQ(recomputes_of(*after), (Recomputes{1, 1})) << str(*after);
    EXPECT_EQ(recomputes_of(*graph), (Recomputes{1, 0})) << "the graph before is as it was";
    EXPECT_EQ(ops(*after), ops(*graph));
  }
  EXPECT_FALSE(has_recomputes(*graph_of(keeps_all, sequence())));
}

TEST_F(RecomputeRunnersTest, TheRunnerRunsTheStepsAgain) {
  const auto gradient = grad([](const Tensor& x) { return steps(x); });
  // Iterations may draw random numbers, so the generator's state is an argument.
  const Tensor x = sequence(), state = zeros({2}, i64);
  const Ref<Graph> before = graph_of(gradient, x), after = recompute_by(*before, kCounting);
  runs = 0;
  expect_same_bits(interpret(before, {x, state})[0], gradient(x));
  EXPECT_EQ(runs, 0);
  expect_same_bits(interpret(after, {x, state})[0], gradient(x));
  EXPECT_GE(runs, 3);  // the segments between three checkpoints
}

TEST_F(RecomputeRunnersTest, CallersOnSeveralThreadsRunStepsAgainByPlansOfTheirOwn) {
  const auto gradient = grad([](const Tensor& x) { return steps(x); });
  const Ref<Graph> graph = graph_of(gradient, sequence());
  constexpr int kCallers = 4, kCalls = 50;
  std::vector<Tensor> xs, expected;
  for (int i = 0; i < kCallers; ++i) {
    xs.push_back(sequence());
    expected.push_back(jit(gradient)(xs.back()));
  }
  std::vector<Tensors> made(kCallers);
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < kCallers; ++i)
    callers.emplace_back([&, i] {
      for (int call = 0; call < kCalls; ++call)
        made[i].push_back(run_plan(graph, {xs[i], zeros({2}, i64)}, {})[0]);
    });
  for (std::thread& caller : callers) caller.join();
  for (std::size_t i = 0; i < kCallers; ++i)
    for (const Tensor& x : made[i]) expect_same_bits(x, expected[i]);
}

}  // namespace
}  // namespace reel
