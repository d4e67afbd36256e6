// Order and number of effects, and programs that use queues, stacks and variables in TensorFlow.
#include <algorithm>
#include <sstream>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowSideEffects = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowSideEffects);

template <class F>
std::string printed_by(const F& f) {
  testing::internal::CaptureStdout();
  f();
  return testing::internal::GetCapturedStdout();
}

/// Returns the lines of one print, in order.
std::string lines_of(const std::string& label, const std::string& printed) {
  std::istringstream lines(printed);
  std::string result;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(label)) result += line + '\n';
  return result;
}

TEST_P(TensorFlowSideEffects, Q04_QueueIsAnArrayInTheState) {
  const auto filled = run([](Tensor n) {
    const auto [i, queue] =
        while_loop([&](const Tensor& i, const TensorArray&) { return i < n; },
                   [](const Tensor& i, const TensorArray& queue) {
                     return std::tuple{i + 1, queue.push_back(i)};
                   },
                   std::tuple{scalar(0), TensorArray(TensorType(i32))}, {.parallel_iterations = 1});
    return queue;
  });
  const TensorArray queue = filled(scalar(10));
  expect_values(queue.size(), {10});
  for (int i = 0; i < 10; ++i) expect_values(queue.read(i), {double(i)});
  expect_values(filled(scalar(0)).size(), {0});
}

TEST_P(TensorFlowSideEffects, Q05_StackIsFilledInOneLoopAndEmptiedInAnother) {
  const auto pop_sum = run([](Tensor n) {
    const auto [count, stack] =
        while_loop([&](const Tensor& i, const TensorArray&) { return i < n; },
                   [](const Tensor& i, const TensorArray& stack) {
                     return std::tuple{i + 1, stack.push_back(i)};
                   },
                   std::tuple{scalar(0), TensorArray(TensorType(i32))});
    return std::get<1>(while_loop([](const Tensor& top, const Tensor&) { return top > 0; },
                                  [&, s = stack](const Tensor& top, const Tensor& sum) {
                                    return std::tuple{top - 1, sum * 2 + s.read(top - 1)};
                                  },
                                  std::tuple{count, scalar(0)}));
  });
  // Weighted by the order of the pops: 3, then 2, 1, 0.
  expect_values(pop_sum(scalar(4)), {((3 * 2 + 2) * 2 + 1) * 2.});
  expect_values(pop_sum(scalar(0)), {0});
}

TEST_P(TensorFlowSideEffects, Q06_VariablesAreState) {
  const auto scattered = run([](Tensor v) {
    return std::get<1>(while_loop([](Tensor j, Tensor) { return j < 3; },
                                  [](Tensor j, Tensor v) {
                                    return std::tuple{j + 1, where(range(3) == j, 10.0, v)};
                                  },
                                  std::tuple{scalar(0), v}));
  });
  expect_values(scattered(zeros({3})), {10, 10, 10});

  const auto both = run([](Tensor a, Tensor b) {
    return while_loop([](Tensor, Tensor b) { return b < 10; },
                      [](Tensor a, Tensor b) {
                        return std::tuple{a + 1, b + 1};
                      },
                      std::tuple{a, b});
  });
  const auto [a, b] = both(scalar(0), scalar(0));
  expect_values(a, {10});
  expect_values(b, {10});

  // a is assigned first, and b reads the new a.
  const auto in_order = run([](Tensor a, Tensor b) {
    return while_loop([](Tensor i, Tensor, Tensor) { return i < 10; },
                      [](Tensor i, Tensor a, Tensor b) {
                        a = a + 1;
                        b = b + a;
                        return std::tuple{i + 1, a, b};
                      },
                      std::tuple{scalar(0), a, b});
  });
  const auto [i, a2, b2] = in_order(scalar(0), scalar(0));
  expect_values(a2, {10});
  expect_values(b2, {55});
}

TEST_P(TensorFlowSideEffects, Q07_OpsBeforeTheLoopRunOnce) {
  const auto f = run([](Tensor v) {
    const Tensor incremented = print(v + 1, "outside");
    return while_loop([](Tensor i, Tensor) { return i < 3; },
                      [&](Tensor i, Tensor total) {
                        return std::tuple{i + 1, total + incremented};
                      },
                      std::tuple{0, 0});
  });
  Tensor total;
  EXPECT_EQ(printed_by([&] { total = std::get<1>(f(scalar(0))); }), "outside: i32[] 1\n");
  expect_values(total, {3});
}

TEST_P(TensorFlowSideEffects, Q08_PrintsInProgramOrderInEveryIteration) {
  const auto f = run([](Tensor i) {
    return while_loop([](Tensor i) { return print(i, "A") < 2; },
                      [](Tensor i) {
                        print(i, "B");  // prints although nothing depends on it
                        const Tensor c = print(i + 10, "C");
                        print(c, "D");
                        return i + 1;
                      },
                      i);
  });
  if (is_dataflow()) {  // only A's result is needed
    EXPECT_EQ(printed_by([&] { f(scalar(0)); }), "A: i32[] 0\nA: i32[] 1\nA: i32[] 2\n");
    return;
  }
  const std::string iteration0 = "A: i32[] 0\nB: i32[] 0\nC: i32[] 10\nD: i32[] 10\n",
                    iteration1 = "A: i32[] 1\nB: i32[] 1\nC: i32[] 11\nD: i32[] 11\n";
  EXPECT_EQ(printed_by([&] { f(scalar(0)); }), iteration0 + iteration1 + "A: i32[] 2\n");
  EXPECT_EQ(printed_by([&] { f(scalar(2)); }), "A: i32[] 2\n");
}

TEST_P(TensorFlowSideEffects, Q08_UnreadLoopsPrintExceptInDataflow) {
  const auto f = run([](Tensor n) {
    print(n, "before");
    while_loop([&](Tensor i) { return i < n; },
               [](Tensor i) {
                 cond(
                     i == 1, [&] { return print(i, "one"); }, [&] { return print(i, "other"); });
                 return i + 1;
               },
               scalar(0));
    return print(n * 2, "after");
  });
  EXPECT_EQ(printed_by([&] { f(scalar(2)); }),
            is_dataflow() ? "after: i32[] 4\n"
                          : "before: i32[] 2\nother: i32[] 0\none: i32[] 1\nafter: i32[] 4\n");
}

TEST_P(TensorFlowSideEffects, Q08_PrintsOfADifferentiatedLoopAppearOnce) {
  const auto f = run(grad(grad([](Tensor v) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return print(i, "cond") < 2; },
                                  [](Tensor i, Tensor v) {
                                    return std::tuple{i + 1, print(v, "body") * v};
                                  },
                                  std::tuple{scalar(0), v}));
  })));
  Tensor second;
  const std::string printed = printed_by([&] { second = f(scalar(2.0)); });
  if (is_dataflow()) {  // the condition does not wait for the body's v
    EXPECT_EQ(lines_of("cond", printed), "cond: i32[] 0\ncond: i32[] 1\ncond: i32[] 2\n");
    EXPECT_EQ(lines_of("body", printed), "body: f32[] 2.0\nbody: f32[] 4.0\n");
    EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 5) << printed;
  } else {
    EXPECT_EQ(printed,
              "cond: i32[] 0\nbody: f32[] 2.0\ncond: i32[] 1\nbody: f32[] 4.0\ncond: i32[] 2\n");
  }
  expect_values(second, {48});
}

TEST_P(TensorFlowSideEffects, Q08_PrintsOfALoopThatIsDifferentiatedInABodyOrABranch) {
  const auto square_twice = [](Tensor v) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 2; },
                                  [](Tensor i, Tensor v) {
                                    return std::tuple{i + 1, print(v, "v") * v};
                                  },
                                  std::tuple{scalar(0), v}));
  };
  const auto in_a_body = run([=](Tensor x) {
    return while_loop([](Tensor) { return true; }, [=](Tensor x) { return grad(square_twice)(x); },
                      x, {.maximum_iterations = 1});
  });
  const auto in_a_branch = run([=](Tensor x) {
    return cond(
        x > 0.0, [&] { return grad(square_twice)(x); }, [&] { return x; });
  });
  const auto in_a_scan =
      run([=](Tensor x) { return scan(Scan{.xs = x, .body = grad(square_twice)}).ys; });
  const std::string once = "v: f32[] 2.0\nv: f32[] 4.0\n";
  EXPECT_EQ(printed_by([&] { in_a_body(scalar(2.0)); }), once);
  EXPECT_EQ(printed_by([&] { in_a_branch(scalar(2.0)); }), once);
  EXPECT_EQ(printed_by([&] { in_a_scan(tensor({2.})); }), once);
}

}  // namespace
}  // namespace reel
