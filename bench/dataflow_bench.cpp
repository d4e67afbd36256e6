// Measures the gain of overlapping iterations in the dataflow executor, and the cost of its tokens.
#include <thread>

#include "harness.h"
#include "reel/reel.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"

namespace reel::bench {
namespace {

/// Returns the label of runs with that many iterations in flight.
std::string bound(int parallel_iterations) {
  return str("parallel_iterations_", parallel_iterations);
}

/// a <- f(a), b <- g(b, a): f of an iteration can overlap g of the one before. Both are three
/// layers, which take 100 microseconds or more together. One product is small enough for one
/// thread, so that a second thread gains only by overlapping.
void pipeline(Group& group) {
  const std::string name = "pipeline";
  if (!group.wants(name)) return;
  constexpr int kSteps = 100, kRows = 60, kLayers = 3, kWidth = 256, kThreads = 2;
  set_threads(kThreads);
  manual_seed(1);
  const Tensor w = random_normal({kWidth, kWidth}) / 16, v = random_normal({kWidth, kWidth}) / 16;
  const Tensor a = random_normal({kRows, kWidth}), b = random_normal({kRows, kWidth});
  const auto layers = [](Tensor x, const Tensor& w) {
    for (int i = 0; i < kLayers; ++i) x = tanh(matmul(x, w));
    return x;
  };
  const auto loop = [=](Tensor a, Tensor b, Tensor w, Tensor v) {
    return std::get<2>(while_loop([](Tensor i, Tensor, Tensor) { return i < kSteps; },
                                  [&](Tensor i, Tensor a, Tensor b) {
                                    a = layers(a, w);
                                    b = layers(b + a, v);
                                    return std::tuple{i + 1, a, b};
                                  },
                                  std::tuple{scalar(0), a, b}));
  };
  std::vector<Contender> contenders;
  for (const int iterations : {2, 1, 10})
    contenders.push_back(
        {bound(iterations),
         [=, f = jit(loop, {.executor = Executor::dataflow, .parallel_iterations = iterations})] {
           f(a, b, w, v);
         }});
  // The upper limit: both chains alone, eagerly, one after the other and in parallel.
  const auto chain = [=](int which) {
    Tensor x = which ? b : a;
    for (int i = 0; i < kSteps; ++i) x = which ? layers(x + a, v) : layers(x, w);
  };
  const auto with_one_thread = [](auto work) {
    return [work] {
      set_threads(1);
      work();
      set_threads(kThreads);
    };
  };
  contenders.push_back({"chains_one_by_one", with_one_thread([=] {
                          chain(0);
                          chain(1);
                        })});
  contenders.push_back({"chains_at_once", with_one_thread([=] {
                          const std::jthread other([=] { chain(1); });
                          chain(0);
                        })});
  const std::string sizes =
      str(name, " T=", kSteps, ' ', kRows, 'x', kWidth, " threads=", kThreads);
  const std::vector<Turns> turns = group.time(contenders, Clock::wall);
  const Quantity per_step{"us_per_step", "us", 1e6 / kSteps};
  for (std::size_t i = 0; i < contenders.size(); ++i)
    group.report(sizes, per_step.metric + '_' + contenders[i].name, per_step, turns[i]);
  // Speed-ups: time with 1 over time with more. Above 1, overlapping pays.
  group.report_ratio(sizes, "ratio_to_parallel_iterations_1", turns[1], turns[0]);
  group.report_ratio(sizes, "ratio_of_10_to_parallel_iterations_1", turns[1], turns[2]);
  group.report_ratio(sizes, "roof_of_ratio", turns[3], turns[4]);
}

/// The smallest possible loop: the cost of a node besides its op, compared with the interpreter.
void counter(Group& group) {
  const std::string name = "counter";
  if (!group.wants(name)) return;
  constexpr int kSteps = 10'000;
  set_threads(1);
  const auto count = [](Tensor n) {
    return while_loop([&](Tensor i) { return i < n; }, [](Tensor i) { return i + 1; }, scalar(0));
  };
  const auto by_tokens = jit(count, {.executor = Executor::dataflow}),
             by_interpreter = jit(count, {.executor = Executor::interpreter}),
             recorded = jit(count, {.executor = Executor::dataflow, .profile = true});
  const Tensor n = scalar(kSteps);
  recorded(n);
  double nodes = 0;
  for (const Activation& activation : last_recorded_run(recorded.graph())->activations)
    nodes += !activation.is_dead;
  const std::string sizes = str(name, " T=", kSteps);
  const std::vector<Turns> turns =
      group.time({{"dataflow", [&] { by_tokens(n); }}, {"interpreter", [&] { by_interpreter(n); }}},
                 Clock::processor);
  const auto per = [](const char* metric, double count) {
    return Quantity{metric, "ns", 1e9 / count};
  };
  group.report(sizes, "ns_per_iteration", per("ns_per_iteration", kSteps), turns[0]);
  group.report(sizes, "ns_per_iteration_interpreter", per("ns_per_iteration", kSteps), turns[1]);
  group.report(sizes, "ns_per_node", per("ns_per_node", nodes), turns[0]);
  group.report_ratio(sizes, "ratio_to_interpreter", turns[0], turns[1]);
}

/// A real graph, including the loop of its gradient: value and gradients of an LSTM.
void training_step(Group& group) {
  const std::string name = "lstm";
  if (!group.wants(name)) return;
  constexpr int kSteps = 100;
  manual_seed(1);
  const Dim time("time", kSteps), batch("batch", 16), in("in", 64);
  const LstmCell cell = LstmCell::init(in, Dim("hidden", 128));
  const Tensor x = random_normal({time, batch, in});
  const auto step = value_and_grad([](const LstmCell& cell, const Tensor& x) {
    return sum(square(recur(cell, x, x.dim("time")).outputs));
  });
  const auto by_tokens = jit(step, {.executor = Executor::dataflow}),
             by_interpreter = jit(step, {.executor = Executor::interpreter});
  for (const int threads : {1, 2}) {
    set_threads(threads);
    const std::string sizes = str(name, " T=", kSteps, " B=16 I=64 H=128 threads=", threads);
    const std::vector<Turns> turns = group.time({{"dataflow", [&] { by_tokens(cell, x); }},
                                                 {"interpreter", [&] { by_interpreter(cell, x); }}},
                                                Clock::wall);
    group.report(sizes, "ms", {"ms", "ms", 1e3}, turns[0]);
    group.report_ratio(sizes, "ratio_to_interpreter", turns[0], turns[1]);
  }
}

/// Many captures that only a branch reads, which is not taken: they stay in their readers' slots.
void captures(Group& group) {
  const std::string name = "captures";
  if (!group.wants(name)) return;
  constexpr int kSteps = 10'000;
  set_threads(1);
  const auto loop = [](const Tensors& captured, const Tensor& n) {
    return while_loop([&](Tensor i) { return i < n; },
                      [&](Tensor i) {
                        return cond(
                            i < 0, [&] { return i + sum(stack(captured)); }, [&] { return i + 1; });
                      },
                      scalar(0));
  };
  std::vector<Contender> contenders;
  for (const int count : {1, 64}) {
    const Tensors captured(static_cast<std::size_t>(count), scalar(1));
    contenders.push_back({str(count), [=, f = jit(loop, {.executor = Executor::dataflow})] {
                            f(captured, scalar(kSteps));
                          }});
  }
  const std::string sizes = str(name, " T=", kSteps, " in a branch that is not taken");
  const std::vector<Turns> turns = group.time(contenders, Clock::processor);
  const Quantity per{"ns_per_iteration", "ns", 1e9 / kSteps};
  group.report(sizes, "ns_per_iteration_1", per, turns[0]);
  group.report(sizes, "ns_per_iteration_64", per, turns[1]);
  group.report_ratio(sizes, "ratio_of_64_to_1", turns[1], turns[0]);
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("dataflow", argc, argv);
  pipeline(group);
  counter(group);
  captures(group);
  training_step(group);
  return group.finish();
}
