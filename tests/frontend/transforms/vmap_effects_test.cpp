// Effects under vmap: if a function cannot be applied to all rows at once, nothing of the attempt
// stays in the trace, so that each row has its effects once, as in map.
#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

/// Returns the lines that a call prints, sorted: executors on several threads choose the order.
std::vector<std::string> lines_of(const Function& f, const Tensor& x) {
  testing::internal::CaptureStdout();
  f(x);
  std::stringstream text(testing::internal::GetCapturedStdout());
  std::vector<std::string> result;
  for (std::string line; std::getline(text, line);) result.push_back(line);
  std::ranges::sort(result);
  return result;
}

Function map_over(const Function& f) {
  return [f](const Tensor& x) -> Tensor { return map(f, x); };
}
Function sum_of(const Function& f) {
  return [f](const Tensor& x) -> Tensor { return sum(square(f(x))); };
}

/// A TensorArray that differs between rows is refused behind the effects of `before`.
Function refused_behind(const Function& before) {
  return [before](const Tensor& x) -> Tensor {
    const Tensor y = before(x);
    return TensorArray::unstack(y, 0).write(1, sum(y)).stack() * y;
  };
}
Tensor printed(const Tensor& x) { return print(x * 2.0, "x"); }

class VmapEffectsTest : public InEveryMode {
 protected:
  void expect_prints_of_map(const Function& vmapped, const Function& mapped, const Tensor& x) {
    const std::vector<std::string> expected = lines_of(mapped, x);
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(lines_of(run(vmapped), x), expected);
    EXPECT_EQ(lines_of(run(grad(sum_of(vmapped))), x), expected);
    testing::internal::CaptureStdout();
    const Tensor actual = run(grad(sum_of(vmapped)))(x), slope = grad(sum_of(mapped))(x);
    testing::internal::GetCapturedStdout();
    expect_all_close(actual, slope, 1e-12);
  }

  const Tensor x_ = tensor({{1., 2., 3.}, {4., 5., 6.}}, f64);
};

TEST_P(VmapEffectsTest, EachRowOfARefusedFunctionPrintsOnce) {
  const Function f = refused_behind(printed);
  EXPECT_EQ(lines_of(run(Function(vmap(f))), x_),
            (std::vector<std::string>{"x: f64[3] [ 8. 10. 12.]", "x: f64[3] [2. 4. 6.]"}));
  expect_prints_of_map(vmap(f), map_over(f), x_);
}

TEST_P(VmapEffectsTest, EachRowOfAllLevelsPrintsOnce) {
  const Function f = refused_behind(printed);
  const Function inner = vmap(f);
  const Function of_inner = map_over(f);
  expect_prints_of_map(vmap(inner), map_over(of_inner), stack({x_, x_ + 6.0}));
}

TEST_P(VmapEffectsTest, RowsInALoopPrintOnceAnIteration) {
  const auto loop_of = [](const std::function<Function(const Function&)>& over_rows) -> Function {
    return [over_rows](const Tensor& x) -> Tensor {
      return fori_loop(
          0, 2,
          [&](const Tensor&, const Tensor& s) -> Tensor {
            return over_rows(refused_behind(printed))(tanh(s));
          },
          x);
    };
  };
  expect_prints_of_map(loop_of([](const Function& f) -> Function { return vmap(f); }),
                       loop_of(map_over), x_);
}

TEST_P(VmapEffectsTest, ALoopOfARefusedFunctionPrintsOnceARow) {
  const Function f = refused_behind([](const Tensor& x) -> Tensor {
    return fori_loop(
        0, 2, [](const Tensor&, const Tensor& s) { return printed(sin(s)); }, x);
  });
  expect_prints_of_map(vmap(f), map_over(f), x_);
}

TEST_P(VmapEffectsTest, AGradientOfARefusedFunctionPrintsOnceARow) {
  const Function f = refused_behind(printed);
  const Function slope = grad(sum_of(f));
  const auto mapped = lines_of(map_over(slope), x_);
  ASSERT_EQ(mapped.size(), 2u);
  EXPECT_EQ(lines_of(run(Function(vmap(slope))), x_), mapped);
}

TEST_P(VmapEffectsTest, ErrorsOfChecksNameTheRowOfARefusedFunction) {
  const Function f = refused_behind([](const Tensor& x) -> Tensor {
    assert_that(x < 5.0, "small");
    return x;
  });
  const auto here = run(Function(vmap(f)));
  const std::string message = message_of<AssertionError>([&] { here(x_); });
  EXPECT_NE(message.find("in iteration 1 of vmap"), std::string::npos) << message;
  EXPECT_EQ(message.find("vmap \"assert_that\""), std::string::npos) << message;
}

TEST_P(VmapEffectsTest, RandomNumbersOfARefusedFunctionAreThoseOfMap) {
  const Function f = refused_behind(
      [](const Tensor& x) -> Tensor { return print(x * random_normal({3}, f64), "x"); });
  const auto drawn = [&](const Function& over_rows) {
    manual_seed(4);
    return lines_of(over_rows, x_);
  };
  EXPECT_EQ(drawn(run(Function(vmap(f)))), drawn(map_over(f)));
}

TEST_P(VmapEffectsTest, NamedRowsWhoseNumberOnlyARunKnowsPrintOnce) {
  const Dim rows("rows", 2);
  const Function f = [](const Tensor& x) -> Tensor {
    return sum(reshape(printed(x), {3}) * tensor({1., 2., 3.}, f64), 0);
  };
  const Tensor x = reshape(x_, Dims{rows, Dim("axis", 3)});
  const auto over_rows = [&](const Function& apply) { return lines_of(apply, x); };
  const Function mapped = [&](const Tensor& x) -> Tensor {
    return map(f, x, {.spatial_dim = x.dim("rows")});
  };
  const Function vmapped = [&](const Tensor& x) -> Tensor { return vmap(f, x.dim("rows"))(x); };
  JitOptions options = options_of(is_eager() ? RunMode::plan : GetParam());
  options.dynamic = {rows};
  EXPECT_EQ(over_rows(jit(vmapped, options)), over_rows(mapped));
}

/// Returns the lines in the order in which they are printed, also if a function throws.
std::vector<std::string> ordered_lines_of(const std::function<void()>& call) {
  testing::internal::CaptureStdout();
  call();
  std::stringstream text(testing::internal::GetCapturedStdout());
  std::vector<std::string> result;
  for (std::string line; std::getline(text, line);) result.push_back(line);
  return result;
}

TEST_P(VmapEffectsTest, AllRowsPrintAsOneTensorIfTheyRunAtOnce) {
  const std::vector<std::string> all{"x: f64[2,3]", "[[ 2.  4.  6.]", " [ 8. 10. 12.]]"};
  const Function f = [](const Tensor& x) -> Tensor { return printed(x); };
  EXPECT_EQ(ordered_lines_of([&] { run(Function(vmap(f)))(x_); }), all);
  EXPECT_EQ(ordered_lines_of([&] { run(Function(vmap(grad(sum_of(f)))))(x_); }), all);
  EXPECT_EQ(ordered_lines_of([&] { run(Function(grad(sum_of(vmap(f)))))(x_); }), all);
}

TEST_P(VmapEffectsTest, RowsOfTwoLevelsPrintAsOneTensor) {
  const Function f = [](const Tensor& x) -> Tensor { return print(x, "x"); };
  EXPECT_EQ(ordered_lines_of([&] { run(Function(vmap(Function(vmap(f)))))(x_); }),
            (std::vector<std::string>{"x: f64[2,3]", "[[1. 2. 3.]", " [4. 5. 6.]]"}));
}

TEST_P(VmapEffectsTest, ValuesThatAllRowsSharePrintOnce) {
  const Tensor shared = tensor({7., 8.}, f64);
  const Function f = [&](const Tensor& x) -> Tensor { return x * print(shared, "shared")[0]; };
  EXPECT_EQ(ordered_lines_of([&] { run(Function(vmap(f)))(x_); }),
            (std::vector<std::string>{"shared: f64[2] [7. 8.]"}));
}

TEST_P(VmapEffectsTest, NoRowsPrintAnEmptyTensor) {
  const Function f = [](const Tensor& x) -> Tensor { return print(x, "x"); };
  EXPECT_EQ(ordered_lines_of([&] {
              run(Function(vmap(f)))(zeros({0, 2}, f64));
            }),
            (std::vector<std::string>{"x: f64[0,2]", "[]"}));
}

TEST_P(VmapEffectsTest, PaddingOfRaggedRowsDoesNotPrint) {
  const Dim rows("rows", 3), time("time", tensor({2, 0, 1}, {rows}));
  const Tensor x = tensor({{1., 2.}, {3., 4.}, {5., 6.}}, {rows, time}, f64);
  const Function f = [](const Tensor& x) -> Tensor { return print(x, "x"); };
  EXPECT_EQ(ordered_lines_of([&] { run(Function(vmap(f, rows)))(x); }),
            (std::vector<std::string>{"x: f64[rows=3,time[rows=3]]", "[[1. 2.]", " [-  - ]",
                                      " [5. - ]]"}));
}

TEST_P(VmapEffectsTest, ChecksNameTheFirstRowThatFails) {
  const Dim rows("rows", 3), time("time", tensor({2, 0, 1}, {rows}));
  const Tensor x = tensor({{1., 2.}, {9., 9.}, {5., 9.}}, {rows, time}, f64);
  const Function small = [](const Tensor& x) -> Tensor {
    assert_that(x < 5., "small", {x});
    return x;
  };
  const Function logarithm = [](const Tensor& x) -> Tensor {
    return check_numerics(log(x - 1.5), "log");
  };
  const auto message = [&](const Function& f, const Tensor& x) {
    const auto here = run(Function(vmap(f, rows)));
    std::string text = "none";
    try {
      here(x);
    } catch (const Error& error) {
      text = error.what();
    }
    return text;
  };
  EXPECT_EQ(message(small, mask_padding(x, 9.)),
            "assert_that: small\nfalse at [time=0]\nvalue 0: f64[time=1] [5.]\n"
            "in iteration 2 of vmap \"assert_that\"");
  EXPECT_EQ(message(logarithm, x),
            "check_numerics \"log\": f64[time=2] is nan at [time=0]\n"
            "in iteration 0 of vmap \"check_numerics\"");
}

// Finished rows compute on the values of a running one, which no print shows.
TEST_P(VmapEffectsTest, FinishedRowsPrintNothing) {
  const Function f = [](const Tensor& x) -> Tensor {
    return while_loop([](const Tensor& s) { return sum(s) < 14.; },
                      [](const Tensor& s) { return print(s + 1., "s"); }, x);
  };
  const std::vector<std::string> expected = lines_of(map_over(f), x_);
  EXPECT_EQ(expected.size(), 3u);
  EXPECT_EQ(lines_of(run(Function(vmap(f))), x_), expected);
  expect_prints_of_map(vmap(f), map_over(f), x_);
}

TEST_P(VmapEffectsTest, FinishedEntriesOfFinishedRowsPrintNothing) {
  const Dim rows("rows", 2), batch("batch", 2),
      time("time", tensor({{1, 2}, {0, 1}}, {rows, batch}));
  const Tensor x = tensor({{{1., 0.}, {2., 3.}}, {{0., 0.}, {4., 0.}}}, {rows, batch, time}, f64);
  const Function f = [&](const Tensor& x) -> Tensor {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({batch}, f64),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           const Tensor next = print(s + x, "sum");
                           return std::pair{None{}, next};
                         }})
        .state;
  };
  const auto mapped = [&](const Tensor& x) -> Tensor { return map(f, x, {.spatial_dim = rows}); };
  EXPECT_EQ(lines_of(run(Function(vmap(f, rows))), x), lines_of(mapped, x));
}

REEL_IN_EVERY_MODE(VmapEffectsTest);

TEST(VmapEffectsTest, ARefusedAttemptLeavesNoEffectsInTheGraph) {
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}}, f64);
  const auto traced = jit(Function(vmap(refused_behind([](const Tensor& x) -> Tensor {
                            assert_that(x < 9.0, "small");
                            return check_numerics(x, "x");
                          }))),
                          {.executor = Executor::interpreter});
  traced(x);
  std::ostringstream out;
  out << traced.graph();
  const std::string graph = out.str();
  for (const std::string effect : {"assert_that(", "check_numerics(", " = loop("}) {
    const std::size_t first = graph.find(effect);
    EXPECT_NE(first, std::string::npos) << effect << " in\n" << graph;
    EXPECT_EQ(graph.find(effect, first + 1), std::string::npos) << effect << " in\n" << graph;
  }
}

}  // namespace
}  // namespace reel
