// Dims of a fixed size that the body of a loop makes: each iteration has its own, in traces too.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Beam {
  Tensor h;
  Dim beam;
};

const Dim one("beam", 1);

/// The Dims that a body may make of a fixed size.
const std::initializer_list<Dim (*)()> kFixed{
    [] { return Dim("beam", 2); },
    [] { return Dim("beam", 1) + 1; },
    [] { return Dim("beam", 1) * 2; },
    [] { return Dim("half", 1) + Dim("beam", 1); },
};

class DimsOfBodiesTest : public InEveryMode {};
REEL_IN_EVERY_MODE(DimsOfBodiesTest);

/// A step of a search: the state's Dim beside a new one.
Beam next_beam(const Beam& s, const Tensor& x, const Dim& beam) {
  const Tensor y = expand(s.h * x, beam) * (range(beam, x.dtype()) + 1.);
  return {sum(y, s.beam) + 1., beam};
}

/// Returns a function with `iterations` steps of a while loop.
auto search(Dim (*beam)(), int iterations) {
  return [=](const Tensor& x) {
    const auto [i, s] = while_loop([=](const Tensor& i, const Beam&) { return i < iterations; },
                                   [&](const Tensor& i, const Beam& s) {
                                     return std::tuple{i + 1, next_beam(s, x, beam())};
                                   },
                                   std::tuple{scalar(0), Beam{ones({one}, x.dtype()), one}});
    return s.h;
  };
}
template <class F>
auto squared(F f) {
  return [=](const Tensor& x) {
    const Tensor y = f(x);
    return sum(y * y);
  };
}

TEST_P(DimsOfBodiesTest, TheStatesDimMayBeMadeInEachIteration) {
  for (const auto beam : kFixed) {
    SCOPED_TRACE(str(beam()));
    const Tensor h = run(search(beam, 3))(scalar(2.));
    EXPECT_EQ(h.dims()[0].size(), 2);
    expect_values(h, {101, 201});
    expect_values(run(search(beam, 0))(scalar(2.)), {1});
  }
}

TEST_P(DimsOfBodiesTest, GradientsOfSearches) {
  const Tensor x = scalar(0.7, f64);
  for (const auto beam : kFixed) {
    SCOPED_TRACE(str(beam()));
    const auto loss = squared(search(beam, 3));
    expect_gradient_of(loss, x, run(grad(loss))(x));
    expect_all_close(run(grad(grad(loss)))(x), grad(grad(loss))(x), 1e-9);
    const auto slope = [=](const Tensor& x) {
      return jvp(loss, std::tuple{x}, std::tuple{ones({}, f64)}).second;
    };
    expect_all_close(run(slope)(x), slope(x), 1e-9);
  }
}

TEST_P(DimsOfBodiesTest, LoopsWithPolicies) {
  for (const Checkpoint& policy : {Checkpoint::every(2), Checkpoint::budget(256)}) {
    const auto loss = [&](const Checkpoint& policy) {
      return [=](const Tensor& x) {
        const auto [i, s] =
            while_loop([=](const Tensor& i, const Beam&) { return i < 4; },
                       [&](const Tensor& i, const Beam& s) {
                         return std::tuple{i + 1, next_beam(s, x, Dim("beam", 2))};
                       },
                       std::tuple{scalar(0), Beam{ones({one}, f64), one}}, {.checkpoint = policy});
        return sum(s.h * s.h);
      };
    };
    const Tensor x = scalar(0.3, f64);
    expect_all_close(run(grad(loss(policy)))(x), grad(loss({}))(x), 1e-9);
  }
}

TEST_P(DimsOfBodiesTest, TopKInEachIteration) {
  struct Search {
    Tensor scores, symbols;
    Dim beam;
  };
  const Dim symbol("symbol", 3), before("before", 3);
  const auto best = [=](const Tensor& table) {
    const auto [i, s] = while_loop(
        [](const Tensor& i, const Search&) { return i < 3; },
        [&](const Tensor& i, const Search& s) {
          const Tensor scores = expand(s.scores, symbol) + gather(table, s.symbols, before);
          const auto [top, at, beam] = top_k(scores, {s.beam, symbol}, Dim("beam", 2));
          return std::tuple{i + 1, Search{top, at[1], beam}};
        },
        std::tuple{scalar(0), Search{zeros({one}), zeros({one}, i32), one}});
    return s.scores;
  };
  const Tensor table = tensor({{1., 5., 2.}, {3., 2., 4.}, {6., 1., 3.}}, {before, symbol});
  expect_values(run(best)(table), {5 + 4 + 6, 5 + 3 + 5});
  const auto loss = [=](const Tensor& table) { return sum(best(table)); };
  expect_values(run(grad(loss))(table), {0, 3, 0, 1, 0, 1, 1, 0, 0});
}

struct Batched {
  Tensor h, counts;
  Dim beam;
};
const Dim batch("batch", 3);

TEST_P(DimsOfBodiesTest, ScansWithEntriesThatFinish) {
  const Dim time("time", tensor({3, 0, 1}, {batch}));
  const Tensor x =
      mask_padding(tensor({0.5, 1., 1.5, NAN, NAN, NAN, 0.7, NAN, NAN}, {batch, time}, f64), 0);
  const auto loss = [=](const Dim& along) {
    return [=](const Tensor& x) {
      const auto [ys, s, steps] =
          scan(Scan{.spatial_dim = along,
                    .initial = Batched{ones({batch, one}, f64), zeros({batch}, f64), one},
                    .xs = x,
                    .body = [](const Tensor& x, const Batched& s) {
                      const Beam next = next_beam({s.h, s.beam}, x, Dim("beam", 2));
                      return std::pair{sum(s.h, s.beam), Batched{next.h, s.counts + 1., next.beam}};
                    }});
      return sum(square(ys)) + sum(s.h * s.h) + sum(s.counts);
    };
  };
  const auto f = loss(time);
  expect_all_close(run(f)(x), f(x), 1e-9);
  expect_all_close(mask_padding(run(grad(f))(x)), mask_padding(grad(f)(x)), 1e-9);
}

TEST_P(DimsOfBodiesTest, TheDimOfYMayBeTheNewDimOfTheState) {
  const Dim time("time", 3);
  const auto stacked = run([=](const Tensor& x) {
    return scan(Scan{.spatial_dim = time,
                     .initial = Beam{ones({one}), one},
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Beam& s) {
                           const Beam next = next_beam(s, x, Dim("beam", 2));
                           return std::pair{next.h, next};
                         }})
        .ys;
  });
  const Tensor ys = stacked(tensor({1., 2., 3.}, {time}));
  EXPECT_EQ(str(ys.type()), "f32[time=3,beam=2]");
  expect_values(ys, {2, 3, 11, 21, 97, 193});
}

TEST_P(DimsOfBodiesTest, SeveralDimsAndLengthsOverThem) {
  struct Hypotheses {
    Tensor scores, symbols;
    Dim beam, length;
  };
  const Dim batch("batch", 2), lengths("length", tensor({{2}, {1}}, {batch, one}));
  const auto longest = [=](const Tensor& x) {
    const auto [i, s] = while_loop(
        [](const Tensor& i, const Hypotheses&) { return i < 3; },
        [&](const Tensor& i, const Hypotheses& s) {
          const Dim beam("beam", 2);
          const Tensor best = max(s.scores, s.beam);
          const Tensor scores = expand(best, {batch, beam}) + range(beam, x.dtype()) * x;
          const Tensor old = max(s.length.lengths(), s.beam);
          const Dim length("length", expand(old, {batch, beam}) + range(beam));
          const Tensor symbols = expand(scores, {batch, beam, length}) + range(length, x.dtype());
          return std::tuple{i + 1,
                            Hypotheses{scores + sum(symbols, length) * 0.1, symbols, beam, length}};
        },
        std::tuple{scalar(0), Hypotheses{zeros({batch, one}, x.dtype()),
                                         zeros({batch, one, lengths}, x.dtype()), one, lengths}});
    return sum(s.symbols, s.length) + s.scores;
  };
  const Tensor x = scalar(0.5, f64);
  expect_all_close(run(longest)(x), longest(x), 1e-9);
  const auto loss = squared(longest);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(DimsOfBodiesTest, LoopsInLoops) {
  const auto nested = [](const Tensor& x) {
    const auto [i, s] =
        while_loop([](const Tensor& i, const Beam&) { return i < 2; },
                   [&](const Tensor& i, const Beam& s) {
                     const Beam outer = next_beam(s, x, Dim("beam", 3));
                     const auto [k, inner] = while_loop(
                         [](const Tensor& k, const Beam&) { return k < 2; },
                         [&](const Tensor& k, const Beam& s) {
                           return std::tuple{k + 1, next_beam(s, x * 0.5, Dim("beam", 2))};
                         },
                         std::tuple{scalar(0), outer});
                     const Dim beam("beam", 2);
                     return std::tuple{i + 1, next_beam(inner, x, beam)};
                   },
                   std::tuple{scalar(0), Beam{ones({one}, x.dtype()), one}});
    return s.h;
  };
  const Tensor x = scalar(0.6, f64);
  expect_all_close(run(nested)(x), nested(x), 1e-9);
  const auto loss = squared(nested);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(DimsOfBodiesTest, BranchesMakeThemToo) {
  const auto choose = [](const Tensor& x) {
    const auto [i, s] = while_loop([](const Tensor& i, const Beam&) { return i < 3; },
                                   [&](const Tensor& i, const Beam& s) {
                                     const Beam next = cond(
                                         i < 1, [&] { return next_beam(s, x, Dim("beam", 2)); },
                                         [&] { return next_beam(s, x, Dim("beam", 3)); });
                                     return std::tuple{i + 1, next};
                                   },
                                   std::tuple{scalar(0), Beam{ones({one}, x.dtype()), one}});
    return s.h;
  };
  const Tensor x = scalar(0.6, f64);
  expect_all_close(run(choose)(x), choose(x), 1e-9);
  const auto loss = squared(choose);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(DimsOfBodiesTest, RowsOfVmap) {
  const Dim rows("rows", 3);
  const Tensor x = tensor({0.5, 1., 2.}, {rows}, f64);
  const auto loss = squared(search(kFixed.begin()[0], 3));
  expect_all_close(run(vmap(loss, rows))(x), map(loss, x, {.spatial_dim = rows}), 1e-9);
  expect_all_close(run(vmap(grad(loss), rows))(x), map(grad(loss), x, {.spatial_dim = rows}), 1e-9);
}

TEST_P(DimsOfBodiesTest, AnInnerLoopWithoutIterationsReturnsTheDimOfTheBody) {
  const auto nested = [](const Tensor& x) {
    const auto [i, s] =
        while_loop([](const Tensor& i, const Beam&) { return i < 3; },
                   [&](const Tensor& i, const Beam& s) {
                     const Beam next = next_beam(s, x, Dim("beam", 2));
                     const auto [k, inner] = while_loop(
                         [&](const Tensor& k, const Beam&) { return k < i - 1; },
                         [&](const Tensor& k, const Beam& s) {
                           return std::tuple{k + 1, next_beam(s, x * 0.5, Dim("beam", 3))};
                         },
                         std::tuple{scalar(0), next});
                     return std::tuple{i + 1, inner};
                   },
                   std::tuple{scalar(0), Beam{ones({one}, x.dtype()), one}});
    return s.h;
  };
  const Tensor x = scalar(0.6, f64);
  expect_all_close(run(nested)(x), nested(x), 1e-9);
  const auto loss = squared(nested);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(DimsOfBodiesTest, RecomputedFunctionsMakeThemToo) {
  const auto search = [](const Tensor& x) {
    const auto [i, s] = while_loop([](const Tensor& i, const Beam&) { return i < 3; },
                                   [&](const Tensor& i, const Beam& s) {
                                     const auto step =
                                         checkpoint([](const Beam& s, const Tensor& x) {
                                           return next_beam(s, x, Dim("beam", 2));
                                         });
                                     return std::tuple{i + 1, step(s, x)};
                                   },
                                   std::tuple{scalar(0), Beam{ones({one}, x.dtype()), one}});
    return s.h;
  };
  const Tensor x = scalar(0.6, f64);
  expect_all_close(run(search)(x), search(x), 1e-9);
  const auto loss = squared(search);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(DimsOfBodiesTest, ABranchMayKeepTheDim) {
  const auto search = [](const Tensor& x) {
    const auto [i, s] =
        while_loop([](const Tensor& i, const Beam&) { return i < 4; },
                   [&](const Tensor& i, const Beam& s) {
                     const Beam next = cond(
                         equal(remainder(i, 2), 0), [&] { return next_beam(s, x, Dim("beam", 2)); },
                         [&] {
                           return Beam{s.h * 0.5, s.beam};
                         });
                     return std::tuple{i + 1, next};
                   },
                   std::tuple{scalar(0), Beam{ones({one}, x.dtype()), one}});
    return s.h;
  };
  const Tensor x = scalar(0.6, f64);
  expect_all_close(run(search)(x), search(x), 1e-9);
  const auto loss = squared(search);
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(DimsOfBodiesTest, ADimFromOutsideOfTheBodyStaysTheSame) {
  const auto f = run([](const Tensor& x) {
    const Dim outer("beam", 2);
    const auto [i, s] =
        while_loop([](const Tensor& i, const Beam&) { return i < 3; },
                   [&](const Tensor& i, const Beam& s) {
                     const Tensor total = sum(s.h, s.beam);
                     return std::tuple{i + 1, Beam{expand(total * x, outer), outer}};
                   },
                   std::tuple{scalar(0), Beam{ones({one}), one}});
    return s.h;
  });
  expect_values(f(scalar(2.)), {32, 32});
}

}  // namespace
}  // namespace reel
