// The cost of the first call of a traced function, from its recording to its plan: four times as
// many outputs, parameters, loops or dims cost about four times as much.
//
// The cost is the memory requested from operator new, since a test does not depend on a clock. If
// each value caused a copy of all values, it would grow with the square of their number.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

#include "reel/tests/trace/plan/recorded_models.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
#endif

namespace {
std::atomic<std::size_t> bytes_asked_for{0};
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  bytes_asked_for += bytes;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace reel {
namespace {

using recorded::List;
using recorded::scalars;

struct Case {
  const char* name;
  int count;  ///< of the smaller graph; the other has four times as many
  std::function<void(int, Executor)> run;  ///< records with this count
};
template <class F, class... Args>
void record(F f, Executor executor, const Args&... args) {
  jit(f, {.executor = executor})(args...);
}
auto recording_by(Executor executor) {
  return [executor](const auto& f, const auto&... args) { record(f, executor, args...); };
}
/// Records the gradient of f's result with respect to its first argument.
auto gradient_by(Executor executor) {
  return [executor](const auto& f, const auto&... args) { record(grad(f), executor, args...); };
}
/// Asks for the explanation, too.
auto explaining_by(Executor executor) {
  return [executor](const auto& f, const auto&... args) {
    const auto jitted = jit(f, {.executor = executor});
    jitted(args...);
    jitted.explain();
  };
}

// All but the last are one graph of fewer records than fuse_pointwise takes at a time.
const Case kCases[] = {
    {"ScalarOutputs", 100,
     [](int n, Executor executor) { recorded::scalar_outputs(n, recording_by(executor)); }},
    {"AdamOverScalars", 18,
     [](int n, Executor executor) { recorded::adam_over_scalars(n, recording_by(executor)); }},
    {"Chains", 100,
     [](int n, Executor executor) {
       record(
           [](const List& list) {
             List result;
             for (const Tensor& x : list) result.push_back(tanh(x * 2.) + 1.);
             return result;
           },
           executor, scalars(n));
     }},
    {"OneChain", 100,
     [](int n, Executor executor) { recorded::one_chain(n, recording_by(executor)); }},
    {"Captures", 200,
     [](int n, Executor executor) { recorded::captures(n, recording_by(executor)); }},
    {"NamedDims", 100,
     [](int n, Executor executor) {
       List list;
       for (int i = 0; i < n; ++i) list.push_back(ones({Dim("a", 2), Dim("b", 3)}));
       record(
           [](const List& list) {
             List result;
             for (const Tensor& x : list) result.push_back(x * 2.f + 1.f);
             return result;
           },
           executor, list);
     }},
    {"LoopsOfManyStates", 50,
     [](int n, Executor executor) {
       const auto body = [](const List& list) {
         List result;
         for (const Tensor& x : list) result.push_back(tanh(x));
         return result;
       };
       record(grad([&](const List& list) {
                const List last =
                    std::get<1>(while_loop([](const Tensor& k, const List&) { return k < 3; },
                                           [&](const Tensor& k, const List& state) {
                                             return std::tuple{k + 1, body(state)};
                                           },
                                           std::tuple{scalar(0), list}));
                Tensor total = last[0];
                for (const Tensor& x : last) total = total + x;
                return total;
              }),
              executor, scalars(n));
     }},
    {"ManyLoops", 30, [](int n, Executor executor) { recorded::loops(n, recording_by(executor)); }},
    {"LoopsInARow", 30,
     [](int n, Executor executor) { recorded::loops_in_a_row(n, recording_by(executor)); }},
    {"CapturesOfALoop", 100,
     [](int n, Executor executor) { recorded::captures_of_a_loop(n, explaining_by(executor)); }},
    {"ChainOfCarries", 60,
     [](int n, Executor executor) { recorded::chain_of_carries(n, recording_by(executor)); }},
    {"ChainThroughLoopsInside", 60,
     [](int n, Executor executor) {
       recorded::chain_through_loops_inside(n, recording_by(executor));
     }},
    {"GradientOfAChainOfCarries", 60,
     [](int n, Executor executor) { recorded::chain_of_carries(n, gradient_by(executor)); }},
    // Each sum reads the one before twice, and is summed over the steps outside of the loop.
    {"SumsThatReadOthersTwice", 4,
     [](int n, Executor executor) {
       const auto f = [n](const Tensor& w, const Tensor& xs) {
         const auto body = [&](const Tensor& x) {
           Tensor y = w;
           for (int i = 0; i < n; ++i) y = y + sin(w) * 0.25 + y * 0.5;
           return y * x;
         };
         return sum(scan(Scan{.spatial_dim = xs.dims()[0], .xs = xs, .body = body}).ys);
       };
       const Dim n3("n", 3);
       record(grad(f), executor, ones({n3}), ones({Dim("time", 20), n3}));
     }},
    {"ManyPieces", 1000,
     [](int n, Executor executor) {
       record(
           [n](const Tensor& x) {
             List result;
             for (int i = 0; i < n; ++i) result.push_back(tanh(x * double(i)) + 1.);
             return result;
           },
           executor, scalar(1.));
     }},
};

class RecordingWorkTest : public ::testing::TestWithParam<std::tuple<Case, Executor>> {};

TEST_P(RecordingWorkTest, GrowsAsTheGraphDoes) {
  const auto& [what, executor] = GetParam();
  const auto work = [&, run = what.run, executor = executor](int n) {
    const std::size_t before = bytes_asked_for;
    run(n, executor);
    return static_cast<double>(bytes_asked_for - before);
  };
  work(4 * what.count);  // whatever is made once in a process
  const double one = work(what.count), four = work(4 * what.count);
  if (!kCounts) GTEST_SKIP() << "a sanitizer has its own operator new";
  EXPECT_LT(four / one, 6) << "of " << one << " bytes";
}

INSTANTIATE_TEST_SUITE_P(Graphs, RecordingWorkTest,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(Executor::plan, Executor::interpreter,
                                                              Executor::dataflow)),
                         [](const auto& info) {
                           const Executor executor = std::get<1>(info.param);
                           return std::string(std::get<0>(info.param).name) +
                                  (executor == Executor::plan          ? "Plan"
                                   : executor == Executor::interpreter ? "Interpreter"
                                                                       : "Dataflow");
                         });

}  // namespace
}  // namespace reel
