// Rows of vmap have the results of the function for each row alone: dims with lengths of rows, as
// words in sentences, in loops, branches and derivatives.
#include "reel/frontend/transforms/branch_cost.h"
#include "reel/tests/frontend/transforms/rows_alone.h"

namespace reel {
namespace {

class VmapRaggedRowsTest : public RowsAlone {};
REEL_IN_EVERY_MODE(VmapRaggedRowsTest);

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

TEST_P(VmapRaggedRowsTest, WordsInSentencesHaveJacobians) {
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
TEST_P(VmapRaggedRowsTest, SecondDerivativesOfRaggedRowsStayInTheirRows) {
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
TEST_P(VmapRaggedRowsTest, LettersWithoutWordsAreThoseOfTheRow) {
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
TEST_P(VmapRaggedRowsTest, EntriesThatABodyCouplesAreThoseOfOneRow) {
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

// The loops keep lists of values that have the words' dim; the second gradient adds a sum of a loop
// to a value from outside.
TEST_P(VmapRaggedRowsTest, ElementsOfListsHaveTheDimsOfTensorsOutside) {
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

TEST_P(VmapRaggedRowsTest, LoopsMakeValuesAlongTheDimOverWhichLengthsRun) {
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

TEST_P(VmapRaggedRowsTest, LoopsReadLettersOfWordsThatRowsShare) {
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

// The words of a renamed batch have the same name and lengths as the others.
TEST_P(VmapRaggedRowsTest, GradientsOfMapsThatRenameTheBatch) {
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
TEST_P(VmapRaggedRowsTest, BodiesThatReadALengthOfEachRow) {
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
TEST_P(VmapRaggedRowsTest, AsManyRowsAsWords) {
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

// The rows run in a loop, since a row makes a value of a Dim outside of its arguments. The gradient
// recomputes a Jacobian along a slice of this Dim and a copy of the slice; both are equally long.
TEST_P(VmapRaggedRowsTest, AJacobianAlongASliceThatIsRecomputed) {
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
TEST_P(VmapRaggedRowsTest, LettersWithoutWordsInBranchesAndSums) {
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

// An empty array has the dims of a row's elements, without rows. A branch that packs the rows that
// take it has other dims in their place.
TEST_P(VmapRaggedRowsTest, BranchesStackEmptyArraysWithDimsOfARow) {
  const TakenRowsScope rule(TakenRowsRule::always);
  const Dim words("words", tensor({2, 0, 1}, {rows_})),
      letters("letters", tensor({{1, 3}, {0, 0}, {2, 0}}, {rows_, words}));
  const auto row = [](const Tensor& x, const Tensor& k) {
    const TensorArray none(x.type(), {.size = 0});
    const auto total = [&] { return sum(x * x) + sum(none.stack(Dim("listed", none.size()))); };
    return cond(k > 1, total, [&] { return sum(x); });
  };
  manual_seed(3);
  const Tensor x = mask_padding(random_normal({rows_, words, letters}, f64)),
               k = tensor({1, 2, 3}, {rows_});
  const auto all = [&](const Tensor& x) { return sum(vmap(row, rows_)(x, k)); };
  const auto mapped = [&](const Tensor& x) {
    const auto of = [&](const Tensors& in) { return row(in[0], in[1]); };
    return sum(map(of, Tensors{x, k}, {.spatial_dim = rows_}));
  };
  expect_all_close(run(all)(x), mapped(x), 1e-12);
  expect_all_close(mask_padding(run(grad(all))(x)), mask_padding(grad(mapped)(x)), 1e-12);
}

}  // namespace
}  // namespace reel
