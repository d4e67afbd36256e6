// What the first call of a traced function costs, from its recording to its plan: four times as
// many outputs, parameters, loops or dims cost about four times as much.
//
// Counted is the memory that this program asks operator new for, which does not depend on a clock:
// copies of all values for each of them grow by the square.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

#include "reel/reel.h"

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

using List = std::vector<Tensor>;

/// n values that do not depend on each other.
List scalars(int n) {
  List result;
  for (int i = 0; i < n; ++i) result.push_back(scalar(0.5 * i));
  return result;
}

struct Case {
  const char* name;
  int count;  ///< of the smaller graph; the other has four times as many
  std::function<void(int, Executor)> run;  ///< records for so many
};
template <class F, class... Args>
void record(F f, Executor executor, const Args&... args) {
  jit(f, {.executor = executor})(args...);
}

// All but the last are one graph of fewer records than fuse_pointwise takes at a time.
const Case kCases[] = {
    {"ScalarOutputs", 100,
     [](int n, Executor executor) {
       record(
           [n](const Tensor& x) {
             List result;
             for (int i = 0; i < n; ++i) result.push_back(x * double(i) + 1.);
             return result;
           },
           executor, scalar(1.));
     }},
    {"AdamOverScalars", 18,
     [](int n, Executor executor) {
       const List parameters = scalars(n);
       record(
           [](List parameters, Adam<List> adam, const List& gradient) {
             adam.update(parameters, gradient);
             return std::pair{parameters, adam};
           },
           executor, parameters, Adam<List>(parameters), parameters);
     }},
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
     [](int n, Executor executor) {
       record(
           [n](Tensor x) {
             for (int i = 0; i < n; ++i) x = x * 1.5 + double(i);
             return x;
           },
           executor, scalar(1.));
     }},
    {"Captures", 200,
     [](int n, Executor executor) {
       const List captured = scalars(n);
       record(
           [&](Tensor x) {
             for (const Tensor& y : captured) x = x + y;
             return x;
           },
           executor, scalar(1.));
     }},
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
    {"ManyLoops", 30,
     [](int n, Executor executor) {
       record(
           [n](const Tensor& xs) {
             List result;
             for (int i = 0; i < n; ++i)
               result.push_back(scan(Scan{.initial = zeros({2}) + double(i),
                                          .xs = xs,
                                          .body =
                                              [](const Tensor& x, const Tensor& h) {
                                                return std::pair{None{}, tanh(h + x)};
                                              }})
                                    .state);
             return result;
           },
           executor, ones({5, 2}));
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
