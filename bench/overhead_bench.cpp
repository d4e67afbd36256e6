// What an op costs besides its arithmetic: a multiply of 16 floats, in chains of 10,000.
#include <benchmark/benchmark.h>

#include "reel/reel.h"

namespace reel {
namespace {

constexpr int kChain = 10'000;

Tensor chain(const Tensor& x, const Tensor& factor) {
  Tensor y = x;
  for (int i = 0; i < kChain; ++i) y = y * factor;
  return y;
}

void per_op(benchmark::State& state) {
  state.counters["ns_per_op"] = benchmark::Counter(static_cast<double>(state.iterations()) * kChain * 1e-9,
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void op_without_tape(benchmark::State& state) {
  const Tensor x = ones({16}), factor = ones({16});
  for (auto _ : state) benchmark::DoNotOptimize(chain(x, factor));
  per_op(state);
}
BENCHMARK(op_without_tape)->Unit(benchmark::kMicrosecond);

void op_recorded(benchmark::State& state) {
  const Tensor x = ones({16}), factor = ones({16});
  for (auto _ : state) {
    Tape tape;
    tape.watch(x);
    benchmark::DoNotOptimize(chain(x, factor));
  }
  per_op(state);
}
BENCHMARK(op_recorded)->Unit(benchmark::kMicrosecond);

void op_forward_and_backward(benchmark::State& state) {
  const Tensor x = ones({16}), factor = ones({16});
  for (auto _ : state) {
    Tape tape;
    tape.watch(x);
    const Tensor y = chain(x, factor);
    benchmark::DoNotOptimize(tape.gradient(y, x));
  }
  per_op(state);
}
BENCHMARK(op_forward_and_backward)->Unit(benchmark::kMicrosecond);

void op_in_the_interpreter(benchmark::State& state) {
  auto traced = jit([](Tensor x, Tensor factor) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < kChain; },
                                  [&](Tensor i, Tensor y) { return std::tuple{i + 1, y * factor}; }, std::tuple{0, x}));
  });
  const Tensor x = ones({16}), factor = ones({16});
  traced(x, factor);
  for (auto _ : state) benchmark::DoNotOptimize(traced(x, factor));
  per_op(state);  // of an iteration: counter, condition and product
}
BENCHMARK(op_in_the_interpreter)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace reel
