// The programs of docs/traces.md: each runs here and does as the page says.
#include <iostream>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

TEST(TracesPage, ADynamicDimHasOneTrace) {
  const Dim feature("feature", 3);
  const auto count = [&] {
    const auto step = jit([](const Tensor& x) { return sum(square(x), x.dim("batch")); });
    for (const int rows : {5, 7, 9}) step(ones({Dim("batch", scalar(rows)), feature}));
    return step.trace_count();  // 1; with Dim("batch", rows) it is 3
  };
  EXPECT_EQ(count(), 1);
  const auto fixed = jit([](const Tensor& x) { return sum(square(x), x.dim("batch")); });
  for (const int rows : {5, 7, 9}) fixed(ones({Dim("batch", rows), feature}));
  EXPECT_EQ(fixed.trace_count(), 3);
}

TEST(TracesPage, ANumberHasATraceForEachValue) {
  testing::internal::CaptureStdout();
  const auto by_number = jit([](const Tensor& w, double rate) { return w - w * rate; });
  for (const double rate : {0.1, 0.05, 0.01}) by_number(ones({2}), rate);
  std::cout << by_number.explain();
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(text.substr(text.find('\n') + 1, 122),
            "traces: argument 1 had 3 values in 3 traces (0.1, 0.05, 0.01). Pass what changes from "
            "call to call as a Tensor: scalar(x).");
  const auto step = jit([](const Tensor& w, const Tensor& rate) { return w - w * rate; });
  for (const double rate : {0.1, 0.05, 0.01}) step(ones({2}), scalar(rate));
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(TracesPage, AStaticDimIsDynamicByName) {
  const Dim feature("feature", 3);
  const auto count = [&] {
    const auto step = jit([](const Tensor& x) { return sum(square(x), x.dim("batch")); },
                          {.dynamic = {Dim("batch")}});
    for (const int rows : {5, 7, 9}) step(ones({Dim("batch", rows), feature}));
    return step.trace_count();  // 1
  };
  EXPECT_EQ(count(), 1);
}

struct Counted {
  int steps;
};

TEST(TracesPage, LoopsAreOneNode) {
  const auto unrolled = jit([](Tensor x, const Counted& n) {
    for (int i = 0; i < n.steps; ++i) x = sin(x);
    return x;
  });
  const auto looped = jit([](const Tensor& x, const Tensor& steps) {
    return fori_loop(
        0, steps, [](const Tensor&, const Tensor& x) { return sin(x); }, x);
  });
  for (const int steps : {1, 2, 3})
    expect_all_close(unrolled(scalar(0.5), Counted{steps}), looped(scalar(0.5), scalar(steps)),
                     1e-6);
  EXPECT_EQ(unrolled.trace_count(), 3);
  EXPECT_EQ(looped.trace_count(), 1);
}

TEST(TracesPage, ACallUnderAnEagerGradientAddsItsOwnContributionsFirst) {
  const auto f = [](const Tensor& x) { return x * -1e8 + x * 1e8; };
  const auto loss_of = [](const auto& f) {
    return [f](const Tensor& x) -> Tensor {
      const Tensor y = f(x);
      return y + x * 1.0;
    };
  };
  const Tensor eager = grad(loss_of(f))(scalar(1.0));        // (1 + 1e8) - 1e8 is 0 in f32
  const Tensor traced = grad(loss_of(jit(f)))(scalar(1.0));  // 1 + (1e8 - 1e8) is 1
  expect_values(eager, {0});
  expect_values(traced, {1});
  const auto interpreted = jit(grad(loss_of(f)), {.executor = Executor::interpreter});
  expect_values(interpreted(scalar(1.0)), {0});
}

TEST(TracesPage, OpsOnCapturedTensorsRunOnce) {
  const auto shape = [] {
    const Tensor weight = ones({3, 2});
    const auto project = jit([&](const Tensor& x) { return matmul(x, transpose(weight, {1, 0})); });
    project(ones({4, 2}));
    return project.captures().at(0).shape();  // {2, 3}: the transposed weight
  };
  EXPECT_EQ(shape(), (std::vector<std::int64_t>{2, 3}));
}

TEST(TracesPage, TracesAreBounded) {
  const auto count = [] {
    const auto bounded = jit([](const Tensor& x) { return sum(square(x)); }, {.max_traces = 2});
    for (const int size : {1, 2, 3, 2, 3}) bounded(ones({size}));
    return bounded.trace_count();  // 3: recorded for 1, 2 and 3
  };
  EXPECT_EQ(count(), 3);
}

}  // namespace
}  // namespace reel
