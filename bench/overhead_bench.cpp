// What an op costs besides its arithmetic: a multiply of 16 floats, in chains of 10,000.
#include <benchmark/benchmark.h>

#include <chrono>

#include "reel/reel.h"

namespace reel {
namespace {

constexpr int kChain = 10'000;

Tensor chain(const Tensor& x, const Tensor& factor) {
  Tensor y = x;
  for (int i = 0; i < kChain; ++i) y = y * factor;
  return y;
}

/// Runs the chain for as long as the benchmark wants, and reports nanoseconds per op beside the
/// time of the chain.
template <class Fn>
void measure(benchmark::State& state, Fn&& run) {
  std::chrono::steady_clock::duration total{};
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    total += std::chrono::steady_clock::now() - begin;
  }
  const double chains = static_cast<double>(state.iterations());
  state.counters["ns_per_op"] =
      std::chrono::duration<double, std::nano>(total).count() / (chains * kChain);
}

void op_without_tape(benchmark::State& state) {
  const Tensor x = ones({16}), factor = ones({16});
  measure(state, [&] { benchmark::DoNotOptimize(chain(x, factor)); });
}
BENCHMARK(op_without_tape)->Unit(benchmark::kMicrosecond);

void op_recorded(benchmark::State& state) {
  const Tensor x = ones({16}), factor = ones({16});
  measure(state, [&] {
    Tape tape;
    tape.watch(x);
    benchmark::DoNotOptimize(chain(x, factor));
  });
}
BENCHMARK(op_recorded)->Unit(benchmark::kMicrosecond);

void op_forward_and_backward(benchmark::State& state) {
  const Tensor x = ones({16}), factor = ones({16});
  measure(state, [&] {
    Tape tape;
    tape.watch(x);
    const Tensor y = chain(x, factor);
    benchmark::DoNotOptimize(tape.gradient(y, x));
  });
}
BENCHMARK(op_forward_and_backward)->Unit(benchmark::kMicrosecond);

void op_in_the_interpreter(benchmark::State& state) {
  auto traced = jit([](Tensor x, Tensor factor) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < kChain; },
                                  [&](Tensor i, Tensor y) {
                                    return std::tuple{i + 1, y * factor};
                                  },
                                  std::tuple{0, x}));
  });
  const Tensor x = ones({16}), factor = ones({16});
  traced(x, factor);
  // Per iteration: counter, condition and product.
  measure(state, [&] { benchmark::DoNotOptimize(traced(x, factor)); });
}
BENCHMARK(op_in_the_interpreter)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace reel
