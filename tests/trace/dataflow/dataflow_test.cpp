// The dataflow executor: how often nodes fire, how far iterations run ahead, and which nodes never
// run. dataflow_ends_test.cpp tests how runs end.
#include <map>

#include "reel/core/graph/graph_builder.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"
#include "reel/trace/executors/dataflow/token_plan.h"

namespace reel {
namespace {

constexpr int kBounds[] = {1, 2, 10, 32};

/// A recorded function, lowered node by node without passes.
class Lowered {
 public:
  template <class F>
  Lowered(const std::vector<TensorType>& types, F&& f)
      : graph_(lower(record_graph("f", types, f).graph)) {}

  Tensors operator()(const Tensors& inputs, int parallel_iterations) {
    return run_lowered(graph_, inputs, parallel_iterations, &run_);
  }
  const RecordedRun& last() const { return run_; }
  /// Returns the counts of activations by node name.
  std::map<std::string, ActivationCount> counts() const {
    std::map<std::string, ActivationCount> result;
    const std::vector<ActivationCount> counts = activation_counts(run_);
    for (std::size_t i = 0; i < counts.size(); ++i) result[graph_.nodes[i].name] = counts[i];
    return result;
  }
  int node(const std::string& name) const {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].name == name) return static_cast<int>(i);
    ADD_FAILURE() << "no node " << name << " in\n" << graph_;
    return -1;
  }
  const LoweredGraph& graph() const { return graph_; }

 private:
  LoweredGraph graph_;
  RecordedRun run_;
};

template <class F>
std::string printed_by(const F& f) {
  testing::internal::CaptureStdout();
  f();
  return testing::internal::GetCapturedStdout();
}

/// Expects that every iteration that began in a frame has ended.
void expect_no_frame_is_left(const RecordedRun& run) {
  std::map<std::pair<int, std::int64_t>, int> open;
  for (const IterationEvent& event : run.iterations)
    open[{event.instance, event.iteration}] += event.begins ? 1 : -1;
  for (const auto& [iteration, count] : open) EXPECT_EQ(count, 0) << iteration.second;
}

const std::vector<TensorType> kTwoNumbers{TensorType(i32), TensorType(i32)};

TEST(DataflowTest, Q12_TheWellKnownLoopNodeByNode) {
  Lowered loop(kTwoNumbers, [](const Tensors& in) {
    const auto [ii, nn] = while_loop([](Tensor a, Tensor n) { return a < n; },
                                     [](Tensor a, Tensor n) {
                                       return std::tuple{a + 2, n};
                                     },
                                     std::tuple{in[0], in[1]});
    return Tensors{ii + 3, nn + 4};
  });
  for (const int bound : kBounds) {
    const Tensors results = loop({scalar(1), scalar(10)}, bound);
    expect_values(results[0], {14});
    expect_values(results[1], {14});
    const std::map<std::string, ActivationCount> expected{{"input", {1, 0}},
                                                          {"input_1", {1, 0}},
                                                          {"while/Enter", {1, 0}},
                                                          {"while/Enter_1", {1, 0}},
                                                          {"while/Merge", {6, 0}},
                                                          {"while/Merge_1", {6, 0}},
                                                          {"while/less", {6, 0}},
                                                          {"while/LoopCond", {6, 0}},
                                                          {"while/Switch", {6, 0}},
                                                          {"while/Switch_1", {6, 0}},
                                                          {"while/Identity", {5, 1}},
                                                          {"while/Identity_1", {5, 1}},
                                                          {"while/full", {5, 1}},
                                                          {"while/add", {5, 1}},
                                                          {"while/NextIteration", {5, 1}},
                                                          {"while/NextIteration_1", {5, 1}},
                                                          {"while/Exit", {1, 5}},
                                                          {"while/Exit_1", {1, 5}},
                                                          {"full", {1, 0}},
                                                          {"add", {1, 0}},
                                                          {"full_1", {1, 0}},
                                                          {"add_1", {1, 0}}};
    EXPECT_EQ(loop.counts(), expected);
    std::int64_t live = 0, dead = 0;
    for (const auto& [name, count] : loop.counts()) {
      live += count.live;
      dead += count.dead;
    }
    EXPECT_EQ(live - 4, 72);  // TensorFlow does not count the inputs and the numbers 3 and 4
    EXPECT_EQ(dead, 16);
    EXPECT_LE(most_in_flight(loop.last(), 1), std::min(bound, 2));
    expect_no_frame_is_left(loop.last());
  }
}

/// Returns the nodes that fire in loops, by name, in the last run of a jitted function.
std::map<std::string, ActivationCount> counts_in_loops(const Graph& graph) {
  const auto run = last_recorded_run(graph);
  const std::vector<ActivationCount> counts = activation_counts(*run);
  std::map<std::string, ActivationCount> result;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const LoweredNode& node = run->graph->nodes[i];
    if (node.frame > 0 || node.kind == LoweredKind::enter) result[node.name] = counts[i];
  }
  return result;
}

// jit's passes run first: a state that the body returns unchanged enters once, for all iterations.
TEST(DataflowTest, Q12_TheWellKnownLoopOfAJittedFunction) {
  const auto count = [](const auto& body) {
    return jit(
        [=](const Tensor& i, const Tensor& n) {
          return while_loop([](Tensor a, Tensor n) { return a < n; }, body, std::tuple{i, n});
        },
        {.executor = Executor::dataflow, .profile = true});
  };
  const auto same_n = count([](Tensor a, Tensor n) { return std::tuple{a + 2, n}; });
  expect_values(std::get<0>(same_n(scalar(1), scalar(10))), {11});
  const std::map<std::string, ActivationCount> of_one{
      {"while/Enter", {1, 0}},         {"while/Enter_2", {1, 0}},  {"while/Merge", {6, 0}},
      {"while/less", {6, 0}},          {"while/LoopCond", {6, 0}}, {"while/Switch", {6, 0}},
      {"while/Identity", {5, 1}},      {"while/full", {5, 1}},     {"while/add", {5, 1}},
      {"while/NextIteration", {5, 1}}, {"while/Exit", {1, 5}}};
  EXPECT_EQ(counts_in_loops(same_n.graph()), of_one);
  // Runs while 1 < 10, 3 < 9, 5 < 8 and ends at 7 < 7: TensorFlow's nodes, each as often as in
  // TensorFlow.
  const auto less_n = count([](Tensor a, Tensor n) { return std::tuple{a + 2, n - 1}; });
  const auto [a, n] = less_n(scalar(1), scalar(10));
  expect_values(a, {7});
  expect_values(n, {7});
  const std::map<std::string, ActivationCount> of_two{
      {"while/Enter", {1, 0}},         {"while/Enter_1", {1, 0}},
      {"while/Merge", {4, 0}},         {"while/Merge_1", {4, 0}},
      {"while/less", {4, 0}},          {"while/LoopCond", {4, 0}},
      {"while/Switch", {4, 0}},        {"while/Switch_1", {4, 0}},
      {"while/Identity", {3, 1}},      {"while/Identity_1", {3, 1}},
      {"while/full", {3, 1}},          {"while/add", {3, 1}},
      {"while/full_1", {3, 1}},        {"while/sub", {3, 1}},
      {"while/NextIteration", {3, 1}}, {"while/NextIteration_1", {3, 1}},
      {"while/Exit", {1, 3}},          {"while/Exit_1", {1, 3}}};
  EXPECT_EQ(counts_in_loops(less_n.graph()), of_two);
}

/// A loop in which i counts to n, while each iteration of x takes long.
Lowered counter_and_slow_chain() {
  return Lowered({TensorType(i32), TensorType(f32, {192, 192})}, [](const Tensors& in) {
    return Tensors{std::get<1>(while_loop([&](Tensor i, Tensor) { return i < in[0]; },
                                          [](Tensor i, Tensor x) {
                                            return std::tuple{i + 1, matmul(x, x)};
                                          },
                                          std::tuple{scalar(0), in[1]}))};
  });
}

/// Returns the largest number of iterations by which the counter is ahead.
std::int64_t most_lead(const Lowered& loop) {
  const int counter = loop.node("while/add"), slow = loop.node("while/dot");
  std::int64_t most = 0, done = 0;
  for (const Activation& activation : loop.last().activations) {
    if (activation.is_dead) continue;
    done += activation.node == slow;
    if (activation.node == counter) most = std::max(most, activation.iteration - done);
  }
  return most;
}

/// The test needs the counter's ops to be short compared with the ops of the other chain.
#if defined(__SANITIZE_THREAD__)
#define REEL_SKIP_WHERE_ALL_OPS_ARE_LONG() \
  GTEST_SKIP() << "ThreadSanitizer makes the counter's ops take long, too"
#else
#define REEL_SKIP_WHERE_ALL_OPS_ARE_LONG()
#endif

TEST(DataflowTest, Q02_TheCounterLeadsByOneLessThanParallelIterations) {
  REEL_SKIP_WHERE_ALL_OPS_ARE_LONG();
  Lowered loop = counter_and_slow_chain();
  const Tensor x = zeros({192, 192});
  for (const int bound : kBounds) {
    {
      const Threads one(1);
      loop({scalar(40), x}, bound);
      EXPECT_EQ(most_lead(loop), bound - 1);
      EXPECT_EQ(most_in_flight(loop.last(), 1), bound);
    }
    const Threads two(2);
    loop({scalar(40), x}, bound);
    EXPECT_LE(most_lead(loop), bound - 1);
    EXPECT_LE(most_in_flight(loop.last(), 1), bound);
  }
}

/// Returns the largest number of iterations in flight in each loop's frame of a recorded run in
/// which loops set their own bounds.
std::vector<int> most_in_flight_of_loops(const Graph& graph) {
  const auto run = last_recorded_run(graph);
  EXPECT_EQ(run->parallel_iterations, 0);
  std::vector<int> result;
  for (std::size_t frame = 1; frame < run->graph->frames.size(); ++frame)
    result.push_back(most_in_flight(*run, static_cast<int>(frame)));
  return result;
}

TEST(DataflowTest, E03_TheNumberOfALoopIsThatOfItsGradientToo) {
  const Threads one(1);
  for (const int own : {1, 3, 10}) {
    // A counter runs ahead by as many iterations as allowed, in the forward loop and in the
    // gradient's.
    const auto loss = [=](const Tensor& x) {
      const auto body = [](Tensor i, Tensor x) { return std::tuple{i + 1, matmul(x, x) * 0.01f}; };
      return sum(std::get<1>(while_loop([](Tensor i, Tensor) { return i < 20; }, body,
                                        std::tuple{scalar(0), x}, {.parallel_iterations = own})));
    };
    const auto by_tokens =
        jit(value_and_grad(loss), {.executor = Executor::dataflow, .profile = true});
    by_tokens(ones({192, 192}) * 0.1f);
    EXPECT_EQ(most_in_flight_of_loops(by_tokens.graph()), (std::vector<int>{own, own}));
  }
}

TEST(DataflowTest, Q02_ACounterThatLeadsFarEnoughIsDoneBeforeTheOtherBegins) {
  REEL_SKIP_WHERE_ALL_OPS_ARE_LONG();
  Lowered loop = counter_and_slow_chain();
  const Threads one(1);
  loop({scalar(20), zeros({192, 192})}, 21);
  EXPECT_EQ(most_lead(loop), 19);
}

TEST(DataflowTest, OneRunThatLosesItsProcessorDoesNotMakeAnOpALongOne) {
  NodeCost cost;
  EXPECT_FALSE(cost.is_known());
  for (const int run : {1'000, 5'000'000, 1'000, 7'000'000, 2'000}) {
    cost.add(run);
    EXPECT_FALSE(cost.takes_long());
  }
  EXPECT_TRUE(cost.is_known());
  cost.add(50'000);
  cost.add(60'000);
  EXPECT_TRUE(cost.takes_long());
}

// The documentation's example: i counts, and x is incremented in the same loop.
TEST(DataflowTest, Q03_UnreadChainsNeverRun) {
  const auto both = [](const Tensors& in) {
    const auto [i, x] = while_loop([&](Tensor i, Tensor) { return i < in[0]; },
                                   [](Tensor i, Tensor x) {
                                     return std::tuple{i + 1, print(x, "x") + 1};
                                   },
                                   std::tuple{scalar(0), in[1]});
    return Tensors{i, x};
  };
  Lowered counter(kTwoNumbers, [&](const Tensors& in) { return Tensors{both(in)[0]}; });
  Lowered chain(kTwoNumbers, [&](const Tensors& in) { return Tensors{both(in)[1]}; });
  EXPECT_EQ(printed_by([&] { expect_values(counter({scalar(3), scalar(7)}, 10)[0], {3}); }), "");
  EXPECT_EQ(counter.counts().count("while/print"), 0u);
  EXPECT_EQ(printed_by([&] {
              expect_values(chain({scalar(3), scalar(7)}, 10)[0], {10});
            }),
            "x: i32[] 7\nx: i32[] 8\nx: i32[] 9\n");
}

TEST(DataflowTest, Q03_PrintsThatNothingNeedsAreDroppedFromJittedFunctions) {
  const auto f = [](Tensor x) {
    print(x, "lost");
    return print(x + 1, "kept") * 2;
  };
  const auto jitted = jit(f, {.executor = Executor::dataflow});
  EXPECT_EQ(printed_by([&] { expect_values(jitted(scalar(1)), {4}); }), "kept: i32[] 2\n");
}

TEST(DataflowTest, Q03_JittedLoopRunsOnlyTheChainOfItsResult) {
  const auto both = [](const Tensor& n, const Tensor& x) {
    return while_loop([&](Tensor i, Tensor) { return i < n; },
                      [](Tensor i, Tensor x) {
                        return std::tuple{i + 1, print(x, "x") + 1};
                      },
                      std::tuple{scalar(0), x});
  };
  const JitOptions by_tokens{.executor = Executor::dataflow};
  const auto counter = jit([=](Tensor n, Tensor x) { return std::get<0>(both(n, x)); }, by_tokens);
  const auto chain = jit([=](Tensor n, Tensor x) { return std::get<1>(both(n, x)); }, by_tokens);
  EXPECT_EQ(printed_by([&] { expect_values(counter(scalar(2), scalar(7)), {2}); }), "");
  EXPECT_EQ(printed_by([&] { expect_values(chain(scalar(2), scalar(7)), {9}); }),
            "x: i32[] 7\nx: i32[] 8\n");
}

TEST(DataflowTest, N14_ALoopInABranchThatIsNotTakenRunsNothingAndLeavesNoFrame) {
  Lowered branches({TensorType(boolean), TensorType(i32)}, [](const Tensors& in) {
    return Tensors{cond(
        in[0],
        [&] {
          return while_loop([](Tensor i) { return i < 10; },
                            [](Tensor i) { return print(i, "runs") + 4; }, in[1]);
        },
        [&] { return in[1] * 2; })};
  });
  for (const int bound : kBounds) {
    EXPECT_EQ(printed_by([&] {
                expect_values(branches({scalar(false), scalar(3)}, bound)[0], {6});
              }),
              "");
    const std::vector<ActivationCount> counts = activation_counts(branches.last());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const LoweredNode& node = branches.graph().nodes[i];
      if (node.frame == 1 || node.kind == LoweredKind::enter) {
        EXPECT_EQ(counts[i].live, 0) << node.name;
      }
    }
    EXPECT_LE(most_in_flight(branches.last(), 1), 1);
    expect_no_frame_is_left(branches.last());
    EXPECT_EQ(printed_by([&] {
                branches({scalar(true), scalar(3)}, bound);
              }),
              "runs: i32[] 3\nruns: i32[] 7\n");
  }
}

TEST(DataflowTest, CapturesEnterOnce) {
  Lowered loop({TensorType(f32)}, [](const Tensors& in) {
    return Tensors{std::get<1>(while_loop([](Tensor i, Tensor) { return i < 8; },
                                          [&](Tensor i, Tensor v) {
                                            return std::tuple{i + 1, v * in[0]};
                                          },
                                          std::tuple{scalar(0), scalar(1.f)}))};
  });
  expect_values(loop({scalar(2.f)}, 10)[0], {256});
  int constants = 0;
  const std::vector<ActivationCount> counts = activation_counts(loop.last());
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (loop.graph().nodes[i].is_constant) {
      ++constants;
      EXPECT_EQ(counts[i], (ActivationCount{1, 0})) << loop.graph().nodes[i].name;
    }
  EXPECT_EQ(constants, 1);
}

TEST(DataflowTest, CapturesCostNothingPerIteration) {
  // Counts the nodes that fire in an iteration, for any number of captures that its branches read.
  const auto activations = [](std::size_t captures) {
    Lowered loop(std::vector<TensorType>(captures, TensorType(i32)), [&](const Tensors& in) {
      const auto taken = [&](Tensor i) { return i + sum(stack(in)); };
      return Tensors{while_loop([](Tensor i) { return i < 50; },
                                [&](Tensor i) {
                                  return cond(
                                      i < 20, [&] { return taken(i); },
                                      [&] { return taken(i) + in[0]; });
                                },
                                scalar(1))};
    });
    const Tensors ones(captures, scalar(1));
    const int step = static_cast<int>(captures);
    int expected = 1;
    while (expected < 50) expected += expected < 20 ? step : step + 1;
    for (const int bound : kBounds)
      expect_values(loop(ones, bound)[0], {static_cast<double>(expected)});
    const auto& all = loop.last().activations;
    return std::count_if(all.begin(), all.end(),
                         [](const Activation& a) { return a.iteration == 1; });
  };
  EXPECT_EQ(activations(2), activations(8));
}

TEST(DataflowTest, WeightsOfARaggedScanCostNothingPerIteration) {
  const Dim batch("batch", 2), time("time", tensor({5, 3}, {batch}));
  const auto in_iteration_1 = [&](std::size_t weights) {
    const auto f = jit(
        [](const Tensor& x, const Tensors& weights) {
          return sum(scan(Scan{.spatial_dim = x.dim("time"),
                               .initial = zeros({x.dim("batch")}),
                               .xs = x,
                               .body =
                                   [&](const Tensor& x, const Tensor& s) {
                                     const Tensor next = s + x * sum(stack(weights));
                                     return std::pair{next, next};
                                   }})
                         .ys);
        },
        {.executor = Executor::dataflow, .profile = true});
    expect_values(f(ones({batch, time}), Tensors(weights, scalar(1.f))),
                  {static_cast<double>(weights) * (1 + 2 + 3 + 4 + 5 + 1 + 2 + 3)});
    const auto& all = last_recorded_run(f.graph())->activations;
    return std::count_if(all.begin(), all.end(),
                         [](const Activation& a) { return a.iteration == 1; });
  };
  EXPECT_GT(in_iteration_1(1), 10);
  EXPECT_EQ(in_iteration_1(2), in_iteration_1(8));
}

TEST(DataflowTest, AnInnerLoopIsAFrameForEachIterationAroundIt) {
  Lowered loops({TensorType(i32)}, [](const Tensors& in) {
    return Tensors{while_loop([](Tensor x) { return x < 100; },
                              [](Tensor x) {
                                return 2 * while_loop([](Tensor y) { return y % 7 > 0; },
                                                      [](Tensor y) { return y + 1; }, x,
                                                      {.name = "inner"});
                              },
                              in[0])};
  });
  for (const int bound : kBounds) {
    expect_values(loops({scalar(1)}, bound)[0], {112});  // from 1: 7, 14; 28; 56; 112
    std::vector<std::int64_t> around;
    for (const FrameInstance& instance : loops.last().instances)
      if (instance.frame == 2) around.push_back(instance.parent_iteration);
    EXPECT_EQ(around, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));  // the last has a dead token
    expect_no_frame_is_left(loops.last());
  }
}

TEST(DataflowTest, NodesMayHaveMoreInputsThan16BitsCount) {
  constexpr int kInputs = 65'537;
  const auto f = jit(
      [](const Tensor& x, const Tensor& y) {
        Tensors all(kInputs, x);
        all.back() = y;
        return sum(stack(all, 0));
      },
      {.executor = Executor::dataflow});
  expect_values(f(scalar(1.f), scalar(3.f)), {kInputs - 1 + 3});
}

TEST(DataflowTest, NodesWithManyOutputsSendEachToItsReaders) {
  constexpr int kOutputs = 1'000;
  const auto f = jit(
      [](const Tensor& x) {
        Tensors parts = unstack(x, 0);
        std::reverse(parts.begin(), parts.end());
        return stack(parts, 0) + x;
      },
      {.executor = Executor::dataflow});
  const Tensor x = range(kOutputs);
  expect_same_bits(f(x), full({kOutputs}, kOutputs - 1, i32));
}

TEST(DataflowTest, OptionsAreChecked) {
  EXPECT_EQ(message_of<ArgumentError>([] {
              jit([](Tensor x) { return x; },
                  {.name = "f", .executor = Executor::dataflow, .parallel_iterations = -1});
            }),
            "jit \"f\": parallel_iterations must be at least 1, or 0 for the option of each loop, "
            "got -1");
}

}  // namespace
}  // namespace reel
