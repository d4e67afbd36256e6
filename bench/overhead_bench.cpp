// Measures the cost of an op besides its arithmetic, in chains of small ops and in LSTM cells
// written in ops. Also measures the compile time of a user's program. One thread.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compile_time.h"
#include "harness.h"
#include "libtorch.h"
#include "reel/reel.h"
#include "rnn.h"

namespace reel::bench {
namespace {

constexpr int kChain = 10'000, kFloats = 16;

Tensor multiply(const Tensor& x, const Tensor& factor) {
  Tensor y = x;
  for (int i = 0; i < kChain; ++i) y = y * factor;
  return y;
}

void compare_chains(Group& group) {
  const Tensor x = ones({kFloats}), factor = ones({kFloats});
  const auto compare = [&](const std::string& name, const std::function<void()>& ours,
                           const std::vector<std::pair<std::string, Chain>>& theirs) {
    std::vector<Contender> contenders{{"reel", ours}};
    if (libtorch())
      for (const auto& [peer, what] : theirs)
        contenders.push_back({peer, libtorch()->multiply_chain(what, kFloats, kChain)});
    group.compare(name, nanoseconds_per_op(kChain), contenders, Clock::processor);
  };
  compare(
      "op without tape", [=] { multiply(x, factor); },
      {{"libtorch", Chain::without_tape}, {"libtorch_inference_mode", Chain::in_inference_mode}});
  compare("op recorded",
          [=] {
            Tape tape;
            tape.watch(x);
            multiply(x, factor);
          },
          {{"libtorch", Chain::recorded}});
  compare("op forward and backward",
          [=] {
            Tape tape;
            tape.watch(x);
            tape.gradient(multiply(x, factor), x);
          },
          {{"libtorch", Chain::forward_and_backward}});
}

/// A product, with the counter and the condition of the loop.
void time_traced_loop(Group& group) {
  const auto loop = jit([](const Tensor& x, const Tensor& factor) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < kChain; },
                                  [&](Tensor i, Tensor y) {
                                    return std::tuple{i + 1, y * factor};
                                  },
                                  std::tuple{0, x}));
  });
  const Tensor x = ones({kFloats}), factor = ones({kFloats});
  group.compare("op in a traced while_loop", nanoseconds_per_op(kChain),
                {{"reel", [=] { loop(x, factor); }}}, Clock::processor);
}

/// A model with 100,000 parameters in some tensors of equal size, and its optimiser.
struct Training {
  std::vector<Tensor> parameters;
  Adam<std::vector<Tensor>> adam;
};
/// Returns a step of Adam that moves its state in.
std::function<void()> adam_step(int tensors, bool is_traced) {
  std::vector<Tensor> parameters, gradient;
  for (int i = 0; i < tensors; ++i) {
    parameters.push_back(random_normal({100'000 / tensors}));
    gradient.push_back(random_normal({100'000 / tensors}));
  }
  const auto step = [](Training training, const std::vector<Tensor>& gradient) {
    training.adam.update(training.parameters, gradient);
    return training;
  };
  const auto state =
      std::make_shared<Training>(Training{parameters, Adam<std::vector<Tensor>>(parameters)});
  if (!is_traced) return [=] { *state = step(std::move(*state), gradient); };
  const auto traced = jit(step);
  return [=] { *state = traced(std::move(*state), gradient); };
}

void compare_adam(Group& group) {
  for (const bool is_traced : {true, false})
    group.compare(is_traced ? "adam of 100 tensors, traced" : "adam of 100 tensors, eager",
                  {"us", "us", 1e6},
                  {{"reel", adam_step(100, is_traced)}, {"one_tensor", adam_step(1, is_traced)}},
                  Clock::processor);
}

void compare_lstm(Group& group, const RnnProblem& problem) {
  const std::string name = "lstm in ops " + problem.sizes() + " threads=1";
  if (!group.wants(name)) return;
  const RnnRun traced = traced_rnn(problem), eager = eager_rnn(problem);
  traced.run();
  eager.run();
  check_same(eager.numbers(), traced.numbers());
  std::vector<Contender> contenders{{"reel", traced.run}, {"eager", eager.run}};
  if (libtorch()) {
    const RnnRun theirs = libtorch()->in_ops(problem);
    theirs.run();
    check_same(eager.numbers(), theirs.numbers());
    contenders.push_back({"libtorch", theirs.run});
  }
  group.compare(name, milliseconds(), contenders, Clock::processor);
}

void time_compiler(Group& group) {
  const std::string name = "compile quickstart.cpp";
  if (!group.wants(name)) return;
  const CompileTimes times = compile("examples/quickstart.cpp", 3);
  group.report(name, "seconds", "s", times.seconds);
  group.report(name, "cpu_seconds", "s", times.cpu_seconds);
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("overhead", argc, argv);
  start_on_one_thread();
  note(
      "processor time of one thread each; the traced LSTM is the one that others are compared "
      "with");
  compare_chains(group);
  time_traced_loop(group);
  compare_adam(group);
  compare_lstm(group, {.steps = 1000, .batch = 16, .in = 64, .hidden = 128});
  compare_lstm(group, {.steps = 1000, .batch = 1, .in = 32, .hidden = 32});
  time_compiler(group);
  return group.finish();
}
