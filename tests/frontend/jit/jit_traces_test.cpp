// jit: the number of traces that are kept, and the memory that goes with a dropped one.
#include "reel/core/runtime/memory.h"
#include "reel/tests/check.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr std::int64_t kCount = 1000, kBytes = 8 * kCount;

class JitTracesTest : public ::testing::TestWithParam<Executor> {
 protected:
  JitOptions options(int max_traces = 0) const {
    return {.name = "f", .executor = GetParam(), .max_traces = max_traces};
  }
};

TEST_P(JitTracesTest, TracesCalledLastStay) {
  const auto f = jit([](const Tensor& x) { return x + 1.; }, options(2));
  const auto call = [&](int size) {
    expect_values(f(zeros({size}, f64)), std::vector<double>(size, 1));
  };
  call(1);
  call(2);
  call(1);
  EXPECT_EQ(f.trace_count(), 2);
  call(3);  // replaces 2
  call(1);
  EXPECT_EQ(f.trace_count(), 3);
  call(2);  // replaces 3
  EXPECT_EQ(f.trace_count(), 4);
  call(1);
  call(2);
  EXPECT_EQ(f.trace_count(), 4);
  EXPECT_EQ(f.explain().substr(0, 60),
            "jit \"f\", recorded for 2 kinds of arguments, 4 times in all; ");
}

TEST_P(JitTracesTest, OneTraceStaysWhileSignaturesTakeTurns) {
  const auto f = jit([](const Tensor& x) { return sum(x); }, options(1));
  for (int i = 0; i < 3; ++i) {
    expect_values(f(ones({2})), {2});
    expect_values(f(ones({3})), {3});
    EXPECT_EQ(f.graph().types[f.graph().inputs[0]].dims(), Dims{3});
  }
  EXPECT_EQ(f.trace_count(), 6);
}

TEST_P(JitTracesTest, AllTracesStayByDefault) {
  const auto f = jit([](const Tensor& x) { return sum(x); }, options());
  for (int twice = 0; twice < 2; ++twice)
    for (int size = 1; size < 8; ++size) expect_values(f(ones({size})), {double(size)});
  EXPECT_EQ(f.trace_count(), 7);
}

TEST_P(JitTracesTest, ClearedOnesAreRecordedAgain) {
  double factor = 2;
  const auto f = jit([&](const Tensor& x) { return x * factor; }, options());
  const auto copy = f;
  expect_values(f(scalar(3.)), {6});
  factor = 5;
  expect_values(f(scalar(3.)), {6});
  copy.clear_traces();
  expect_values(f(scalar(3.)), {15});
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_P(JitTracesTest, CapturesGoWithTheirTrace) {
  const std::int64_t before = memory().values.current;
  Tensor w = ones({kCount}, f64);
  const auto f = jit([&](const Tensor& x) { return sum(w) * x; }, options(1));
  f(scalar(1., f64));
  w = Tensor();
  EXPECT_GE(memory().values.current - before, kBytes);
  f.clear_traces();
  EXPECT_LT(memory().values.current - before, kBytes);

  w = ones({kCount}, f64);
  f(scalar(1., f64));
  w = full({kCount}, 2., f64);
  EXPECT_GE(memory().values.current - before, 2 * kBytes);
  expect_values(f(ones({1}, f64)), {2 * kCount});  // replaces the first
  EXPECT_LT(memory().values.current - before, 2 * kBytes);
}

TEST_P(JitTracesTest, MemoryOfPlansGoesWithThem) {
  const std::int64_t before = memory().buffers.current;
  const auto f = jit(
      [](const Tensor& x) {
        return sum(scan(Scan{.initial = zeros({kCount}, f64),
                             .xs = x,
                             .body =
                                 [](const Tensor& x, const Tensor& h) {
                                   return std::pair{None{}, tanh(h * 2. + x)};
                                 }})
                       .state);
      },
      options());
  f(ones({3, kCount}, f64));
  f.clear_traces();
  EXPECT_LE(memory().buffers.current, before);
}

TEST_P(JitTracesTest, PullbacksOutliveClearedTraces) {
  const auto f = jit([](const Tensor& x) { return x * x; }, options(1));
  const auto [value, pullback] = vjp(f, scalar(3.));
  f.clear_traces();
  const auto drop = [&] { f(ones({2})); };
  drop();
  expect_values(pullback(scalar(1.)), {6});
  expect_values(grad([&](const Tensor& x) {
                  const Tensor y = f(x);
                  f.clear_traces();
                  return y * y;
                })(scalar(2.)),
                {32});
}

TEST_P(JitTracesTest, MayBeClearedWhileOneIsRecorded) {
  std::optional<Jitted<std::function<Tensor(const Tensor&)>>> f;
  f.emplace(std::function<Tensor(const Tensor&)>([&](const Tensor& x) {
              f->clear_traces();
              return x + 1.;
            }),
            options());
  for (int i = 0; i < 3; ++i) {
    expect_values((*f)(scalar(1.)), {2});
    expect_values((*f)(ones({1}, f64)), {2});
  }
  EXPECT_EQ(f->trace_count(), 6);
}

TEST_P(JitTracesTest, FunctionThatThrowsReplacesNoTrace) {
  bool throws = false;
  const auto f = jit(
      [&](const Tensor& x) {
        if (throws) throw ArgumentError("as asked for");
        return x + 1.;
      },
      options(1));
  f(scalar(1.));
  throws = true;
  EXPECT_THROW(f(ones({2})), ArgumentError);
  expect_values(f(scalar(1.)), {2});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(JitTracesTest, NothingIsThereAfterwards) {
  const auto f = jit([](const Tensor& x) { return x + 1.; }, options());
  EXPECT_EQ(message_of<ArgumentError>([&] { f.graph(); }),
            "jit \"f\": there is no graph before the first call");
  f(scalar(1.));
  f.clear_traces();
  const std::string when = " between clear_traces() and the next call";
  EXPECT_EQ(message_of<ArgumentError>([&] { f.graph(); }), "jit \"f\": there is no graph" + when);
  EXPECT_EQ(message_of<ArgumentError>([&] { f.captures(); }),
            "jit \"f\": there are no captures" + when);
  EXPECT_EQ(message_of<ArgumentError>([&] { f.explain(); }),
            "jit \"f\": there is nothing to explain" + when);
  f(scalar(1.));
  EXPECT_EQ(f.captures().size(), 0U);
}

TEST_P(JitTracesTest, RefusesToKeepFewerThanNone) {
  EXPECT_EQ(message_of<ArgumentError>([&] { jit([](const Tensor& x) { return x; }, options(-1)); }),
            "jit \"f\": max_traces must be at least 1, or 0 to keep all traces, got -1");
}

INSTANTIATE_TEST_SUITE_P(Executors, JitTracesTest,
                         ::testing::Values(Executor::interpreter, Executor::plan,
                                           Executor::dataflow),
                         [](const auto& info) {
                           return std::string(info.param == Executor::interpreter ? "Interpreter"
                                              : info.param == Executor::plan      ? "Plan"
                                                                                  : "Dataflow");
                         });

}  // namespace
}  // namespace reel
