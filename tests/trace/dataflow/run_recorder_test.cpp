// Records of dataflow runs: the part that is kept of long runs, and records of failed runs.
#include "reel/trace/executors/dataflow/run_recorder.h"

#include <algorithm>
#include <map>
#include <set>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/trace/executors/dataflow/busy_time.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"

namespace reel {
namespace {

/// The iterations in flight, each as its frame, its iteration, and the same of the frames around
/// it.
using InFlight = std::multiset<std::vector<std::int64_t>>;

std::vector<std::int64_t> name_of(const RecordedRun& run, int instance, std::int64_t iteration) {
  std::vector<std::int64_t> name;
  for (; instance >= 0; instance = run.instances[static_cast<std::size_t>(instance)].parent) {
    name.push_back(run.instances[static_cast<std::size_t>(instance)].frame);
    name.push_back(iteration);
    iteration = run.instances[static_cast<std::size_t>(instance)].parent_iteration;
  }
  return name;
}

/// Returns the iterations in flight after each recorded activation, keyed by the number of ended
/// activations, omitted ones included.
std::map<std::size_t, InFlight> in_flight(const RecordedRun& run) {
  std::map<std::size_t, InFlight> result;
  InFlight now;
  std::size_t next = 0;
  const auto apply = [&](std::size_t after, std::size_t end) {
    for (; next < end && run.iterations[next].after <= after; ++next) {
      const IterationEvent& event = run.iterations[next];
      const auto name = name_of(run, event.instance, event.iteration);
      if (event.begins) {
        now.insert(name);
      } else {
        EXPECT_EQ(now.erase(name), 1u);
      }
    }
  };
  for (std::size_t i = 0; i <= run.activations.size(); ++i) {
    const bool is_at_gap = run.gap.left_out && i == run.gap.activations;
    apply(i, is_at_gap ? run.gap.iterations : run.iterations.size());
    if (is_at_gap) {
      result[i] = now;
      apply(i, run.iterations.size());
    }
    result[i + (i >= run.gap.activations ? run.gap.left_out : 0)] = now;
  }
  return result;
}

RecordedRun nested_run() {
  const auto f = [](const Tensors& in) {
    const auto inner = [](const Tensor& j, const Tensor& y) { return tanh(y) + cast(j, f32); };
    const auto outer = [&](const Tensor&, const Tensor& y) { return fori_loop(0, 3, inner, y); };
    return Tensors{fori_loop(0, 5, outer, in[0])};
  };
  RecordedRun run;
  run_lowered(lower(record_graph("f", {TensorType(f32)}, f).graph), {scalar(1.f)}, 4, &run);
  return run;
}

TEST(RunRecorderTest, ShortenedRecordKnowsIterationsInFlight) {
  const RecordedRun whole = nested_run();
  const auto expected = in_flight(whole);
  const std::size_t all = whole.activations.size();
  ASSERT_GT(all, 200u);
  for (const std::size_t first : {0, 1, 30, 77, 150})
    for (const std::size_t last : {0, 1, 20, 63}) {
      SCOPED_TRACE(str(first, " and ", last));
      const RecordedRun cut = shortened(whole, {first, last});
      ASSERT_EQ(cut.activations.size(), first + last);
      EXPECT_EQ(cut.gap.left_out, all - first - last);
      for (const auto& [finished, iterations] : in_flight(cut))
        EXPECT_EQ(iterations, expected.at(finished)) << "after " << finished;
      // Shortening in two steps gives the same record as shortening at once.
      const RecordedRun twice = shortened(shortened(whole, {first + 7, last + 9}), {first, last});
      EXPECT_EQ(in_flight(twice), in_flight(cut));
      EXPECT_EQ(str(twice), str(cut));
      EXPECT_EQ(activation_counts(cut), activation_counts(whole));
    }
}

TEST(RunRecorderTest, ARecordThatIsShortEnoughIsWhole) {
  const RecordedRun whole = nested_run();
  const RecordedRun same = shortened(whole, {100, whole.activations.size()});
  EXPECT_EQ(same.gap.left_out, 0u);
  EXPECT_EQ(str(same), str(whole));
  EXPECT_EQ(in_flight(same), in_flight(whole));
}

TEST(RunRecorderTest, ALongRunKeepsItsEndsAndTheCountsOfAll) {
  constexpr int kSteps = 50'000;
  const auto f = jit(
      [](const Tensor& x) {
        const auto inner = [](const Tensor&, const Tensor& y) { return y * 0.5f; };
        return fori_loop(
            0, kSteps, [&](const Tensor&, const Tensor& y) { return fori_loop(0, 1, inner, y); },
            x);
      },
      {.executor = Executor::dataflow, .profile = true});
  f(scalar(1.f));
  const auto run = last_recorded_run(f.graph());
  EXPECT_EQ(run->activations.size(), (std::size_t{1} << 17) + (std::size_t{1} << 14));
  EXPECT_GT(run->gap.left_out, run->activations.size());
  EXPECT_LT(run->instances.size(), run->activations.size());
  EXPECT_LT(run->iterations.size(), run->activations.size());
  for (std::size_t i = 0; i < run->graph->nodes.size(); ++i)
    if (run->graph->nodes[i].op == &mul_op) {
      EXPECT_EQ(activation_counts(*run)[i].live, kSteps);
    }
  ASSERT_EQ(run->frame_totals.size(), 3u);
  EXPECT_EQ(run->frame_totals[1].executions, 1);
  EXPECT_EQ(run->frame_totals[1].iterations, kSteps + 1);
  EXPECT_GE(run->frame_totals[2].executions, kSteps);
  // The end of the run is recorded: the node of the result fires last.
  EXPECT_EQ(in_flight(*run).rbegin()->second, InFlight());
}

/// Returns a Merge node of a frame's loop.
int merge_of(const LoweredGraph& graph, int frame) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == LoweredKind::merge && graph.nodes[i].frame == frame)
      return static_cast<int>(i);
  return -1;
}

TEST(RunRecorderTest, TotalsOfALoopAreThoseOfItsExecutionsThatRan) {
  const RecordedRun run = nested_run();  // 5 outer iterations with 3 inner ones each
  const RecordedRun::FrameTotal &outer = run.frame_totals.at(1), &inner = run.frame_totals.at(2);
  EXPECT_EQ(outer.executions, 1);
  EXPECT_EQ(outer.iterations, 6);  // the last one runs only the condition
  EXPECT_EQ(outer.bodies, 5);
  EXPECT_EQ(inner.executions, 5);
  EXPECT_EQ(inner.iterations, 20);
  EXPECT_EQ(inner.bodies, 15);
  EXPECT_LE(inner.nanoseconds, outer.nanoseconds);
  EXPECT_LE(outer.nanoseconds, run.nanoseconds);
}

TEST(RunRecorderTest, ExecutionsBesideEachOtherAreTimedOnce) {
  RecordedRun run;
  run.graph = nested_run().graph;
  RunRecorder recorder(run, {});
  recorder.begin(0, 0);
  recorder.enter({});
  recorder.enter({1, 0, 0});
  const auto enter = [&](std::int64_t iteration) { return recorder.enter({2, 1, iteration}); };
  const auto works = [&](int instance, std::int64_t begin, std::int64_t end, bool is_dead = false) {
    recorder.note({merge_of(*run.graph, 2), instance, 0, is_dead, 0, begin, end});
  };
  const int first = enter(0), second = enter(1), dead = enter(2), alone = enter(3);
  works(first, 10, 20);
  works(first, 30, 35);
  works(dead, 35, 38, true);
  works(second, 15, 50);  // on another thread
  works(alone, 100, 130);
  for (const int instance : {first, second, dead, alone}) recorder.leave(instance);
  recorder.finish();
  EXPECT_EQ(run.frame_totals.at(2).executions, 3);
  EXPECT_EQ(run.frame_totals.at(2).nanoseconds, 40 + 30);
  EXPECT_EQ(run.frame_totals.at(1).nanoseconds, 40 + 30);
}

TEST(RunRecorderTest, AnOpThatFailsIsInTheRecordWithItsMessage) {
  const auto f = jit(
      [](const Tensor& x, const Tensor& n) {
        return while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                          [&](const Tensor& i, const Tensor& s) {
                            return std::tuple{i + 1, s + gather(x, i, 0)};
                          },
                          std::tuple{scalar(0), scalar(0.f)});
      },
      {.executor = Executor::dataflow, .profile = true});
  const std::string message = message_of<IndexError>([&] { f(ones({3}), scalar(9)); });
  const auto run = last_recorded_run(f.graph());
  ASSERT_TRUE(run->failure && run->failure->at);
  // With debug information the line of the op follows.
  EXPECT_TRUE(run->failure->message.starts_with(message)) << run->failure->message;
  const Activation& failed = run->activations[run->failure->after];
  EXPECT_TRUE(failed.has_failed);
  EXPECT_EQ(failed.iteration, 3);
  EXPECT_EQ(run->graph->nodes[static_cast<std::size_t>(failed.node)].op->name, "gather");
  EXPECT_NE(str(*run).find(" [3] failed\n"), std::string::npos);
  f(ones({3}), scalar(2));
  EXPECT_FALSE(last_recorded_run(f.graph())->failure);
}

TEST(RunRecorderTest, ACallThatWasCancelledHasARecordToo) {
  const auto endless = jit(
      [](const Tensor& n) {
        return while_loop([&](const Tensor& i) { return i < n; },
                          [](const Tensor& i) { return i % 5; }, scalar(0));
      },
      {.executor = Executor::dataflow, .profile = true});
  endless(scalar(0));
  std::stop_source source;
  source.request_stop();
  const CancellationScope scope(source.get_token());
  const std::string message = message_of<CancelledError>([&] { endless(scalar(9)); });
  const auto run = last_recorded_run(endless.graph());
  ASSERT_TRUE(run->failure);
  EXPECT_FALSE(run->failure->at);
  // With debug information the line of the op follows.
  EXPECT_TRUE(run->failure->message.starts_with(message)) << run->failure->message;
}

// A thread may be interrupted between the end of its work and the record of it. Earlier spans and
// pauses are then recorded later.
TEST(RunRecorderTest, SpansOfBusyTimeComeInAnyOrder) {
  std::vector<std::pair<int, int>> spans{{0, 2}, {1, 3}, {5, 6}, {8, 20}, {9, 11}, {12, 13}};
  do {
    BusyTime time;
    for (const auto& [begin, end] : spans) time.add(begin, end);
    ASSERT_EQ(time.nanoseconds(), 3 + 1 + 12);
  } while (std::next_permutation(spans.begin(), spans.end()));
}

}  // namespace
}  // namespace reel
