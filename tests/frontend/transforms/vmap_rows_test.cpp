// Rows of vmap have the results of the function for each row alone: in loops in loops, along plain
// and named axes, and in every derivative.
#include <sstream>
#include <string>

#include "reel/tests/frontend/transforms/rows_alone.h"

namespace reel {
namespace {

/// Calls step twice, in a loop with a trip count that only a run knows.
Tensor twice(const Function& step, const Tensor& x) {
  const auto body = [&](const Tensor& k, const Tensor& y) { return std::tuple{k + 1, step(y)}; };
  return std::get<1>(while_loop([](const Tensor& k, const Tensor&) { return k < 2; }, body,
                                std::tuple{scalar(0), x}));
}

/// Sums sqrt(x - i) for all i < x. For a row that has finished, the root is of a negative number.
Tensor roots(const Tensor& x) {
  const auto body = [&](const Tensor& i, const Tensor& s) {
    return std::tuple{i + 1, s + sqrt(x - cast(i, f64))};
  };
  return std::get<1>(while_loop([&](const Tensor& i, const Tensor&) { return cast(i, f64) < x; },
                                body, std::tuple{scalar(0), scalar(0., f64)}));
}

/// A sum of roots for each element of an outer loop, which rows leave at other iterations.
Tensor roots_of_roots(const Tensor& x) {
  const auto body = [&](const Tensor& i, const Tensor& s) {
    const Tensor rest = x - cast(i, f64);
    const auto inner = [&](const Tensor& j, const Tensor& t) {
      return std::tuple{j + 1, t + sqrt(rest - cast(j, f64) * .5) * s};
    };
    const Tensor t = std::get<1>(
        while_loop([&](const Tensor& j, const Tensor&) { return cast(j, f64) * .5 < rest; }, inner,
                   std::tuple{scalar(0), s}));
    return std::tuple{i + 1, sin(t) + sqrt(rest)};
  };
  return std::get<1>(while_loop([&](const Tensor& i, const Tensor&) { return cast(i, f64) < x; },
                                body, std::tuple{scalar(0), scalar(1., f64)}));
}

class VmapRowsTest : public RowsAlone {
 protected:
  const Tensor matrix_ = tensor({{.5, 1.}, {1.2, .3}, {.4, 1.1}}, f64);
  const Tensor counts_ = tensor({.5, 2.5, 1.5, .2}, f64);
};

TEST_P(VmapRowsTest, LoopsInLoopsWithCountsOfARunHaveEveryDerivative) {
  const Function power = [](const Tensor& x) -> Tensor {
    const auto outer = [](const Tensor& y) {
      return twice([&](const Tensor& z) -> Tensor { return z * y; }, y);
    };
    return sum(twice(outer, x));
  };
  expect_as_alone(power, matrix_);
  expect_as_alone(power, reshape(matrix_, {6}));
  const Dim feature("feature", 2);
  expect_as_map(power, reshape(matrix_, Dims{rows_, feature}), rows_);
}

TEST_P(VmapRowsTest, LoopsOfThreeLevelsHaveEveryDerivative) {
  const Function f = [](const Tensor& x) -> Tensor {
    const auto inner = [](const Tensor& z) {
      return twice([&](const Tensor& w) -> Tensor { return sin(w) * z; }, z);
    };
    const auto middle = [&](const Tensor& y) { return twice(inner, y) + .1 * y; };
    return sum(twice(middle, x));
  };
  expect_as_alone(f, matrix_);
}

TEST_P(VmapRowsTest, HessiansOfLoopsInLoopsAreThoseOfThePower) {
  const auto power = [](const Tensor& x) -> Tensor {
    const auto outer = [](const Tensor& y) {
      return twice([&](const Tensor& z) -> Tensor { return z * y; }, y);
    };
    return sum(twice(outer, x));
  };
  const Tensor x = tensor({.5, 1.2}, f64);
  const std::vector<double> expected{72 * std::pow(.5, 7), 0, 0, 72 * std::pow(1.2, 7)};
  const Function both[] = {
      [&](const Tensor& x) -> Tensor { return hessian(power)(x); },
      [&](const Tensor& x) -> Tensor { return jacfwd(grad(power))(x); },
      [&](const Tensor& x) -> Tensor { return jacfwd(jacfwd(power))(x); },
  };
  for (const Function& f : both) expect_values(run(f)(x), expected, 1e-9);
}

TEST_P(VmapRowsTest, FinishedRowsComputeOnValuesOfARunningRow) {
  expect_as_alone(roots, counts_);
  expect_as_alone(roots_of_roots, counts_);
  const Dim rows("rows", 4);
  expect_as_map(roots_of_roots, reshape(counts_, Dims{rows}), rows);
  const Function of_sum = grad([](const Tensor& x) -> Tensor { return sum(vmap(roots)(x)); });
  expect_values(run(of_sum)(tensor({.5, 1.5}, f64)),
                {.5 / std::sqrt(.5), .5 / std::sqrt(1.5) + .5 / std::sqrt(.5)}, 1e-12);
}

TEST_P(VmapRowsTest, ChecksInABodyAreForRunningRows) {
  const Function count = [](const Tensor& n) -> Tensor {
    return while_loop([&](const Tensor& i) { return i < n; },
                      [&](const Tensor& i) {
                        assert_that(i < n, "i < n");
                        return i + cast(check_numerics(sqrt(cast(n - i, f64)), "root") > 0, i32);
                      },
                      scalar(0));
  };
  const Function all = vmap(count);
  expect_values(run(all)(tensor({0, 5, 2})), {0, 5, 2});
  const DetectNan detect;
  const Function sums = vmap(Function(roots));
  EXPECT_NO_THROW(run(sums)(counts_));
}

TEST_P(VmapRowsTest, AnIndexOfEachRowSetsElementsUnderAnotherVmap) {
  const Tensor index = tensor({0, 2});
  const auto quadruple = [](const Tensor& x, const Tensor& i) -> Tensor {
    return sum(square(fori_loop(
        0, 2, [&](const Tensor&, const Tensor& s) { return set_at(s, i, s[i] * 2.); }, x)));
  };
  const Function all = [&](const Tensor& x) -> Tensor { return vmap(quadruple)(x, index); };
  const Function f = [&](const Tensor& x) -> Tensor { return jacobian(all)(x); };
  expect_values(run(f)(tensor({{1., 2., 3.}, {4., 5., 6.}}, f64)),
                {32, 4, 6, 0, 0, 0, 0, 0, 0, 8, 10, 192});
}

TEST_P(VmapRowsTest, BooleansWithoutElementsHaveGradientsForEachRow) {
  const auto f = [](const std::pair<Tensor, Tensor>& x) -> Tensor { return sum(x.first); };
  const auto g = run([&](const Tensor& x, const Tensor& mask) {
    return vmap(grad(f))(std::pair{x, mask}).second;
  })(ones({4, 3}), zeros({4, 0, 2}, boolean));
  EXPECT_EQ(g.type(), TensorType(boolean, {Dim(4), Dim(0), Dim(2)}));
}

REEL_IN_EVERY_MODE(VmapRowsTest);

TEST(VmapTest, ResultsAlongANamedDimHaveNoPlainAxes) {
  const Dim rows("rows", 3);
  const std::string expected =
      "vmap: the rows are along a dim with a name, rows=3, but not all results have named dims\n"
      "  the result: f32[2], whose dims have no names\nGive every axis of a result a Dim with a "
      "name, or let the arguments have none.";
  const auto f = [](const Tensor& x) -> Tensor { return x * ones({2}); };
  EXPECT_EQ(message_of<ShapeError>([&] { return vmap(f, rows)(ones({rows})); }), expected);
  const auto in_a_loop = [](const Tensor& x) -> Tensor {
    return fori_loop(
        0, 2, [&](const Tensor&, const Tensor& s) { return s * x; }, ones({2}));
  };
  EXPECT_EQ(message_of<ShapeError>([&] { return vmap(in_a_loop, rows)(ones({rows})); }), expected);
}

TEST(VmapTest, AStackOfPlainSizesThatOnlyARunKnowsIsOneLoop) {
  const auto f = [](const Tensor& x, const Tensor& w) -> Tensor {
    const auto row = [&](const Tensor& w) -> Tensor {
      return scan(Scan{.initial = w,
                       .xs = ones({2}, f64),
                       .body =
                           [&](const Tensor& one, const Tensor& s) {
                             const Tensor next = tanh(s + one);
                             return std::pair{next * x, next};
                           }})
          .ys;
    };
    return vmap(row)(w);
  };
  const auto slope = [&](const Tensor& x, const Tensor& w) -> Tensor {
    return grad([&](const Tensor& x) -> Tensor { return sum(square(f(x, w))); })(x);
  };
  const JitOptions options{.executor = Executor::interpreter, .any_length = {0}};
  const auto traced = jit(f, options);
  const auto of_slope = jit(slope, options);
  const Tensor w = tensor({.1, .2, .3}, f64);
  for (const std::int64_t size : {4, 1, 0}) {
    const Tensor x = cast(range(size), f64) + 1.0;
    const Tensor ys = traced(x, w);
    EXPECT_EQ(ys.type(), TensorType(f64, {3, 2, size}));
    expect_all_close(ys, f(x, w), 1e-12);
    expect_all_close(of_slope(x, w), slope(x, w), 1e-12);
  }
  std::ostringstream out;
  out << traced.graph();
  const std::string graph = out.str();
  EXPECT_NE(graph.find(" = loop("), std::string::npos) << graph;
  EXPECT_EQ(graph.find(" = loop("), graph.rfind(" = loop(")) << graph;
}

TEST(VmapTest, ATensorArrayThatIsNotReadNeedsNoLoop) {
  const auto f = [](const Tensor& x) -> Tensor {
    const TensorArray unread = TensorArray::unstack(x, 0).write(0, sum(x));
    return sin(x);
  };
  const auto traced = jit(vmap(f), {.executor = Executor::interpreter});
  const Tensor x = random_normal({3, 4}, f64);
  expect_same_bits(traced(x), sin(x));
  std::ostringstream out;
  out << traced.graph();
  EXPECT_EQ(out.str().find(" = loop("), std::string::npos) << out.str();
}

// An op or a branch without a form for all rows becomes a loop, and a loop in a loop under the next
// vmap: each level would then record its loops several times.
TEST(VmapTest, GradientsOfGatherRecordNoLoops) {
  const Dim rows("rows", 3), words("words", 4), vocabulary("vocabulary", 5), in("in", 2);
  const Tensor own_tables = random_normal({rows, vocabulary, in}),
               table = random_normal({vocabulary, in}),
               own_symbols = remainder(reshape(range(12), {rows, words}), 5),
               symbols = tensor({4, 0, 4, 2}, {words});
  const auto of = [&](const Tensor& x, const Tensor& at) {
    return sum(exp(gather(x, at, vocabulary)));
  };
  const auto check = [&](const auto& row, const Tensor& x) {
    const auto traced = jit(vmap(row, rows));
    expect_all_close(traced(x), map(row, x, {.spatial_dim = rows}), 1e-6);
    EXPECT_EQ(str(traced.graph()).find("loop("), std::string::npos) << traced.graph();
  };
  check([&](const Tensor& x) { return grad([&](const Tensor& x) { return of(x, symbols); })(x); },
        own_tables);
  check([&](const Tensor& at) { return grad([&](const Tensor& x) { return of(x, at); })(table); },
        own_symbols);
}

TEST(VmapTest, NestedCallsRecordNoLoops) {
  const std::function<Tensor(const Tensor&)> functions[] = {
      [](const Tensor& x) -> Tensor { return cumsum(tanh(x), 0) + cumprod(x, 0); },
      [](const Tensor& x) -> Tensor { return sort(reverse(x, 0), 0); },
      [](const Tensor& x) -> Tensor {
        return cond(
            any(x > 0) && all(x < 5), [&] { return tanh(x); }, [&] { return exp(x); });
      },
  };
  for (const auto& row : functions) {
    auto f = row;
    Dims sizes{Dim(2)};
    for (int level = 0; level < 3; ++level) {
      f = [f](const Tensor& x) -> Tensor { return vmap(f)(x); };
      sizes.insert(sizes.begin(), Dim(2));
    }
    const auto traced = jit(f, {.executor = Executor::interpreter});
    const Tensor x = random_normal(sizes);
    expect_all_close(traced(x)[1][0][1], row(x[1][0][1]), 1e-6);
    EXPECT_EQ(str(traced.graph()).find("loop("), std::string::npos) << traced.graph();
  }
}

}  // namespace
}  // namespace reel
