// Rows of vmap have the results of the function for each row alone: in loops in loops, along plain
// and named axes, and in every derivative.
#include <functional>

#include "reel/frontend/transforms/branch_cost.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;  // one type, so that the file compiles fast
using Derivative = std::function<Function(const Function&)>;

const Derivative kDerivatives[] = {
    [](const Function& f) -> Function { return f; },
    [](const Function& f) -> Function { return grad(f); },
    [](const Function& f) -> Function {
      return [f](const Tensor& x) -> Tensor { return jvp(f, x, cos(x)).second; };
    },
    [](const Function& f) -> Function {
      return [f](const Tensor& x) -> Tensor { return hvp(f, x, cos(x)); };
    },
    [](const Function& f) -> Function {
      return grad([f](const Tensor& x) -> Tensor {
        const Tensor slope = grad(f)(x);
        return sum(square(slope));
      });
    },
};

/// Calls step twice, in a loop whose number of iterations only a run knows.
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

class VmapRowsTest : public InEveryMode {
 protected:
  /// Expects the derivatives of f for all rows of x, along plain axes, to be those of each row.
  void expect_as_alone(const Function& f, const Tensor& x) {
    for (const Derivative& derivative : kDerivatives) {
      const Function of_row = derivative(f);
      Tensors alone;
      for (std::int64_t i = 0; i < x.dims()[0].size(); ++i) alone.push_back(of_row(x[i]));
      const Function at_once = vmap(of_row);
      expect_all_close(run(at_once)(x), stack(alone), 1e-9);
      const Function nested = [&](const Tensor& x) -> Tensor {
        return vmap(Function(vmap(of_row)))(x);
      };
      expect_all_close(run(nested)(expand(x,
                                          [&] {
                                            Dims dims = x.dims();
                                            dims.insert(dims.begin(), Dim(2));
                                            return dims;
                                          }()))[1],
                       stack(alone), 1e-9);
    }
  }
  /// Expects the same along a named dim, compared with map.
  void expect_as_map(const Function& f, const Tensor& x, const Dim& rows) {
    for (const Derivative& derivative : kDerivatives) {
      const Function of_row = derivative(f);
      const Function at_once = vmap(of_row, rows);
      expect_all_close(mask_padding(run(at_once)(x)),
                       mask_padding(map(of_row, x, {.spatial_dim = rows})), 1e-9);
    }
  }

  const Dim rows_{"rows", 3};
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

/// An RNN over letters in an RNN over words. x: {words, letters}, or with rows in front.
Tensor read_words(const Tensor& x, const Tensor& initial) {
  const auto read_word = [](const Tensor& word, const Tensor& s) {
    const auto step = [](const Tensor& letter, const Tensor& t) {
      const Tensor u = sin(t) + letter * t;
      return std::pair{u, u};
    };
    const Tensor t =
        scan(Scan{.spatial_dim = word.dim("letters"), .initial = s, .xs = word, .body = step})
            .state;
    return std::pair{t * t, t};
  };
  const Dim words = x.dim("words");
  const auto read =
      scan(Scan{.spatial_dim = words, .initial = initial, .xs = x, .body = read_word});
  return sum(read.ys, words) + read.state;
}

TEST_P(VmapRowsTest, WordsInSentencesHaveJacobians) {
  const Dim words("words", tensor({2, 0, 3}, {rows_})),
      letters("letters", tensor({{1, 2, 0}, {0, 0, 0}, {2, 1, 1}}, {rows_, words}));
  manual_seed(5);
  const Tensor x = random_normal({rows_, words, letters}, f64);
  const Function row = [](const Tensor& x) -> Tensor { return read_words(x, scalar(.3, f64)); };
  const Function batch = [&](const Tensor& x) -> Tensor {
    return read_words(x, full({rows_}, .3, f64));
  };
  expect_as_map(row, x, rows_);
  const Function alone = [&](const Tensor& x) -> Tensor {
    return map(row, x, {.spatial_dim = rows_});
  };
  const Function at_once = vmap(row, rows_);
  const auto expect_same = [&](const auto& derivative) {
    const Function expected = derivative(alone);
    for (const Function& f : {batch, at_once}) {
      const Function actual = derivative(f);
      expect_all_close(run(actual)(tensor({.5, .1}, f64)), expected(tensor({.5, .1}, f64)), 1e-9);
    }
  };
  expect_same([&](const Function& f) -> Function {
    return [&, f](const Tensor& p) -> Tensor {
      const auto scaled = [&](const Tensor& p) -> Tensor {
        return reshape(f(x * p[0] + p[1]), {3});
      };
      return jacobian(scaled)(p);
    };
  });
  expect_same([&](const Function& f) -> Function {
    return [&, f](const Tensor& p) -> Tensor {
      return hessian([&](const Tensor& p) -> Tensor { return sum(f(x * p[0] + p[1]), rows_); })(p);
    };
  });
}

// A row that has finished reads values of a running one. Its cotangents are dropped: they belong to
// no row.
TEST_P(VmapRowsTest, SecondDerivativesOfRaggedRowsStayInTheirRows) {
  const Dim rows("rows", 4), time("time", tensor({2, 1, 0, 3}, {rows}));
  manual_seed(4);
  const Tensor x = random_normal({rows, time}, f64);
  const Function fold = [](const Tensor& x) -> Tensor {
    const auto step = [](const Tensor& s, const Tensor& t) { return tanh(s) + t * s; };
    return square(foldl(step, x, scalar(.5, f64), {.spatial_dim = x.dim("time")}));
  };
  expect_as_map(fold, x, rows);
  const Function third = grad([&](const Tensor& x) -> Tensor { return sum(hvp(fold, x, sin(x))); });
  const Function at_once = vmap(third, rows);
  expect_all_close(mask_padding(run(at_once)(x)),
                   mask_padding(map(third, x, {.spatial_dim = rows})), 1e-9);
  const Dim pair("pair", 2);
  const Function twice_at_once = [&](const Tensor& y) -> Tensor { return vmap(at_once, pair)(y); };
  const Tensor both = run(twice_at_once)(expand(x, pair));
  expect_all_close(mask_padding(gather(both, scalar(1), pair)),
                   mask_padding(map(third, x, {.spatial_dim = rows})), 1e-9);
}

// Without the words over which their lengths run, letters count as full: up to the longest word of
// the row, not of all rows.
TEST_P(VmapRowsTest, LettersWithoutWordsAreThoseOfTheRow) {
  const Dim words("words", tensor({2, 0, 3}, {rows_})),
      letters("letters", tensor({{1, 2, 0}, {0, 0, 0}, {2, 1, 4}}, {rows_, words}));
  manual_seed(5);
  const Tensor x = random_normal({rows_, words, letters}, f64);
  expect_as_map(
      [](const Tensor& x) -> Tensor {
        const Tensor of_letters = sum(x - 2., x.dim("words"));
        return sum(square(x)) + logsumexp(of_letters, of_letters.dims());
      },
      x, rows_);
}

// Finished entries read the first running entry of their own row, so that a mean over the entries
// counts no other row.
TEST_P(VmapRowsTest, EntriesThatABodyCouplesAreThoseOfOneRow) {
  const Dim batch("batch", 3), shared("time", tensor({2, 1, 3}, {batch})),
      own("time", tensor({{2, 1, 3}, {1, 2, 1}, {0, 0, 2}}, {rows_, batch}));
  const Function f = [&](const Tensor& x) -> Tensor {
    const Dim time = x.dim("time");
    const auto step = [&](const Tensor& e, const Tensor& s) {
      const Tensor t = sin(s * e + mean(s, batch) + mean(e, batch));
      return std::pair{t, t};
    };
    const auto all =
        scan(Scan{.spatial_dim = time, .initial = full({batch}, .5, f64), .xs = x, .body = step});
    return sum(sum(all.ys, time) + all.state, batch);
  };
  manual_seed(3);
  for (const Dim& time : {shared, own})
    expect_as_map(f, random_normal({rows_, batch, time}, f64), rows_);
}

// Its loops keep lists of values that have the words' dim; the second gradient adds a sum of such a
// loop to a value from outside.
TEST_P(VmapRowsTest, ElementsOfListsHaveTheDimsOfTensorsOutside) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const Function f = [&](const Tensor& x) -> Tensor {
    const auto body = [&](const Tensor&) -> Tensor {
      const Tensor y = unpack(cos(pack(x, {batch, time})), 0, {batch, time});
      return y * y;
    };
    const Tensor y =
        while_loop([](const Tensor&) { return true; }, body, x, {.maximum_iterations = scalar(2)});
    return sum(sin(y));
  };
  manual_seed(5);
  expect_as_map(f, random_normal({rows_, batch, time}, f64), rows_);
}

TEST_P(VmapRowsTest, LoopsMakeValuesAlongTheDimOverWhichLengthsRun) {
  const Dim batch("batch", 2);
  const Dim time("time", tensor({{1, 2}, {0, 3}, {2, 2}}, {rows_, batch}));
  const Function f = [&](const Tensor& x) -> Tensor {
    const Dim time = x.dim("time");
    const Tensor goes_on = sum(x) < 1.;
    const auto body = [&](const Tensor& i, const Tensor& s) {
      return std::tuple{i + 1, s + sin(s) * full({batch}, 2., f64) + sum(full({time}, .5, f64))};
    };
    const auto run = [&](const Tensor& i, const Tensor&) { return logical_and(goes_on, i < 2); };
    return sum(std::get<1>(while_loop(run, body, std::tuple{scalar(0), sum(x, time)})));
  };
  manual_seed(6);
  expect_as_map(f, random_normal({rows_, batch, time}, f64), rows_);
}

TEST_P(VmapRowsTest, LoopsReadLettersOfWordsThatRowsShare) {
  const Dim batch("batch", 2), words("words", tensor({1, 2}, {batch}));
  const Dim letters("letters", tensor({{{1, 2}, {2, 1}}, {{0, 0}, {1, 1}}, {{1, 0}, {2, 2}}},
                                      {rows_, batch, words}));
  const Function f = [&](const Tensor& x) -> Tensor {
    const Tensor counts = sum(x, {x.dim("letters"), words});
    const auto body = [&](const Tensor& s) {
      return std::pair{s, s + square(sum(sin(x), {x.dim("letters"), words})) + 1.};
    };
    const auto all = scan(Scan{.spatial_dim = Dim("steps"),
                               .cond_dims = {batch},
                               .initial = counts,
                               .cond = [](const Tensor& s) { return s < 2.; },
                               .body = body});
    return sum(square(all.state));
  };
  manual_seed(8);
  expect_as_map(f, random_normal({rows_, letters, batch, words}, f64), rows_);
}

TEST_P(VmapRowsTest, BooleansWithoutElementsHaveGradientsForEachRow) {
  const auto f = [](const std::pair<Tensor, Tensor>& x) -> Tensor { return sum(x.first); };
  const auto g = run([&](const Tensor& x, const Tensor& mask) {
    return vmap(grad(f))(std::pair{x, mask}).second;
  })(ones({4, 3}), zeros({4, 0, 2}, boolean));
  EXPECT_EQ(g.type(), TensorType(boolean, {Dim(4), Dim(0), Dim(2)}));
}

// The words of a renamed batch have the same name and lengths as the others.
TEST_P(VmapRowsTest, GradientsOfMapsThatRenameTheBatch) {
  const Dim batch("batch", 2), part("part", 2);
  const Dim time("time", tensor({{1, 2}, {0, 3}, {2, 2}}, {rows_, batch}));
  const Function f = [&](const Tensor& x) -> Tensor {
    const Tensor y = rename(x, batch, part);
    return sum(y * sin(y)) + sum(cos(x));
  };
  manual_seed(7);
  const Tensor x = random_normal({rows_, batch, time}, f64);
  const Function mapped = [&](const Tensor& x) -> Tensor {
    return sum(map(f, x, {.spatial_dim = x.dim("rows")}));
  };
  expect_all_close(mask_padding(run(Function(grad(mapped)))(x)),
                   mask_padding(map(Function(grad(f)), x, {.spatial_dim = rows_})), 1e-9);
  expect_as_map(f, x, rows_);
}

// No operand of these functions and loops has rows, but a Dim in them has lengths of rows.
TEST_P(VmapRowsTest, BodiesThatReadALengthOfEachRow) {
  const Dim steps("steps", 2), words("words", 2),
      letters("letters", tensor({{1, 2}, {0, 3}, {2, 2}}, {rows_, words}));
  const Tensor shared = tensor({1., 2.}, {words}, f64);
  using Row = std::function<Tensor(const Dim&, const Tensor&)>;
  const auto filled = [](const Dim& letters, const Tensor& s) {
    return expand(sin(s), Dims{s.dim("words"), letters});
  };
  const Row bodies[] = {
      [&](const Dim& letters, const Tensor& s) {
        return checkpoint([&](const Tensor& s) { return filled(letters, s); })(s);
      },
      [&](const Dim& letters, const Tensor& s) {
        return cond(
            all(s > 0.), [&] { return filled(letters, s); }, [&] { return filled(letters, -s); });
      },
      [&](const Dim& letters, const Tensor& s) {
        return fori_loop(
            0, 2, [&](const Tensor&, const Tensor& t) { return sum(filled(letters, t), letters); },
            s);
      },
      [&](const Dim& letters, const Tensor& s) {
        return scan(Scan{.spatial_dim = steps,
                         .initial = s,
                         .xs = ones({steps}, f64),
                         .body =
                             [&](const Tensor& x, const Tensor& t) {
                               const Tensor next = sum(filled(letters, t * x), letters);
                               return std::pair{next, next};
                             }})
            .ys;
      }};
  for (const Row& body : bodies) {
    const auto row = [&](const Tensors& in) -> Tensors {
      const Tensor made = body(in[0].dim("letters"), in[1]);
      return {sum(square(made))};
    };
    const auto all = [&](const Tensors& in) { return vmap(row, rows_)(in)[0]; };
    const Tensor x = ones({rows_, words, letters}, f64);
    const Tensors in{x, shared};
    const Tensor one_by_one = map(
        [&](const Tensor& x) {
          return row({x, shared})[0];
        },
        x, {.spatial_dim = rows_});
    expect_all_close(run(all)(in), one_by_one, 1e-12);
    const auto loss = [&](const Tensor& shared, const Tensor& x) { return sum(all({x, shared})); };
    const auto of_map = [&](const Tensor& shared, const Tensor& x) {
      return sum(map(
          [&](const Tensor& x) {
            return row({x, shared})[0];
          },
          x, {.spatial_dim = rows_}));
    };
    expect_all_close(run(grad(loss))(shared, x), grad(of_map)(shared, x), 1e-12);
  }
}

// There are as many rows as the longest row has words. The loop without iterations records its
// body.
TEST_P(VmapRowsTest, AsManyRowsAsWords) {
  for (const int trips : {0, 2}) {
    const auto f = run([&](const Tensor& x) {
      const Dim rows = x.dim("rows");
      return scan(Scan{.spatial_dim = rows,
                       .initial = scalar(1.0, f64),
                       .xs = sum(x, {x.dim("words"), x.dim("letters")}),
                       .body =
                           [&](const Tensor&, const Tensor& s) {
                             const auto row = [&](const Tensor& r) { return s * sum(r); };
                             return std::pair{None{}, sum(vmap(row, rows)(x))};
                           },
                       .max_seq_len = trips})
          .state;
    });
    const Dim rows("rows", scalar(2)), words("words", tensor({1, 2}, {rows})),
        letters("letters", tensor({{1, 0}, {2, 3}}, {rows, words}));
    expect_values(f(ones({rows, words, letters}, f64)), {trips ? 36. : 1.});
  }
}

// The rows run in a loop, since one of them makes a value of a Dim outside of its arguments. Its
// gradient recomputes a Jacobian along a slice of that Dim and a copy of it, which are equally
// long.
TEST_P(VmapRowsTest, AJacobianAlongASliceThatIsRecomputed) {
  const Dim batch("batch", 2), time("time", tensor({{1, 2}, {2, 0}, {1, 3}}, {rows_, batch}));
  const Function f = [&](const Tensor& x) -> Tensor {
    const Dim time = x.dim("time");
    const auto slope = [&](const Tensor& row) -> Tensor {
      const Dim own = row.dim("time");
      const auto sums = [&](const Tensor& t) -> Tensor { return cumsum(t * t, own); };
      const Tensor result = sum(sin(jacfwd(sums)(row)));
      ones({batch, time}, i32);
      return result;
    };
    return sum(sin(x + vmap(slope, batch)(x)));
  };
  manual_seed(7);
  const Tensor x = random_normal({rows_, time, batch}, f64);
  const Function all = [&](const Tensor& x) -> Tensor { return sum(vmap(f, rows_)(x)); };
  expect_all_close(mask_padding(run(Function(grad(all)))(x)),
                   mask_padding(map(Function(grad(f)), x, {.spatial_dim = rows_})), 1e-9);
}

// Time has lengths over rows and a batch that x lacks. A function with branches gets another dim
// for the rows, and packs the rows that take one.
TEST_P(VmapRowsTest, LettersWithoutWordsInBranchesAndSums) {
  const TakenRowsScope rule(TakenRowsRule::always);
  const Dim batch("batch", 2), time("time", tensor({{1, 2}, {2, 1}, {3, 1}}, {rows_, batch}));
  const auto row = [](const Tensor& x, const Tensor& like, const Tensor& k) {
    const Dim own = like.dim("time");
    const auto total = [&] { return x + sum(x); };
    const auto sums = [&] {
      const auto combine = [](const Tensor& a, const Tensor& b) { return a + b; };
      return associative_scan(combine, x * x, own);
    };
    return sum(sin(switch_case(
        k, [&] { return x; }, total, sums)));
  };
  manual_seed(3);
  const Tensor x = random_normal({rows_, time}, f64), like = ones({rows_, batch, time}),
               k = tensor({1, 2, 1}, {rows_});
  const auto all = [&](const Tensor& x) { return sum(vmap(row, rows_)(x, like, k)); };
  const auto mapped = [&](const Tensor& x) {
    const auto of = [&](const Tensors& in) { return row(in[0], in[1], in[2]); };
    return sum(map(of, Tensors{x, like, k}, {.spatial_dim = rows_}));
  };
  expect_all_close(run(all)(x), mapped(x), 1e-12);
  expect_all_close(run(grad(all))(x), grad(mapped)(x), 1e-12);
  const auto alone = run(
      [&](const Tensor& x) { return vmap([](const Tensor& row) { return sum(row); }, rows_)(x); });
  expect_values(alone(ones({rows_, time}, f64)), {3, 3, 3});
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

// An op or a branch without a form for all rows becomes a loop, and a loop in a loop under the next
// vmap: each level would then record its loops several times.
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
