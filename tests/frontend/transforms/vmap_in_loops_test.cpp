// vmap in bodies of loops with entries that finish, and of functions with loops, over ragged dims;
// compared with map, which runs f row by row.
#include <functional>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;  // one type, so that the file compiles fast
using Apply = std::function<Tensor(const Function&, const Tensor&, const Dim&)>;

class VmapInLoopsTest : public InEveryMode {
 protected:
  /// Expects the values and the first two gradients of a program to be the same with vmap as with
  /// map. The program must be smooth near x.
  void expect_as_map(const std::function<Tensor(const Apply&, const Tensor&)>& program,
                     const Tensor& x) {
    const Function at_once = [&](const Tensor& x) -> Tensor {
      return program([](const Function& f, const Tensor& x,
                        const Dim& dim) -> Tensor { return vmap(f, dim)(x); },
                     x);
    };
    const Function one_by_one = [&](const Tensor& x) -> Tensor {
      return program([](const Function& f, const Tensor& x,
                        const Dim& dim) -> Tensor { return map(f, x, {.spatial_dim = dim}); },
                     x);
    };
    const auto here = [&](const Function& f) -> Function { return run(f); };
    const auto slope = [](const Function& f) -> Function {
      return grad([f](const Tensor& x) -> Tensor { return sum(square(mask_padding(f(x)))); });
    };
    const auto expect = [&](const Function& actual, const Function& expected) {
      expect_all_close(mask_padding(here(actual)(x)), mask_padding(expected(x)), 1e-9);
    };
    expect(at_once, one_by_one);
    expect(slope(at_once), slope(one_by_one));
    expect(slope(slope(at_once)), slope(slope(one_by_one)));
  }

  VmapInLoopsTest() { manual_seed(3); }

  const Dim batch_{"batch", 2}, in_{"in", 3};
  const Dim time_{"time", tensor({3, 1}, {batch_})};
};

TEST_P(VmapInLoopsTest, CapturesReadAcrossEntriesThatHaveFinished) {
  const Tensor x = random_normal({batch_, time_, in_}, f64),
               w = random_normal({batch_, time_}, f64);
  for (const Dim& rows : {batch_, in_})
    expect_as_map(
        [&](const Apply& apply, const Tensor& x) {
          const auto body = [&](const Tensor& x, const Tensor& s) {
            const Tensor next = apply(
                [&](const Tensor& row) {
                  return sin(row) * logsumexp(w, {batch_, time_}) +
                         mean(square(w), {batch_, time_});
                },
                x + s, rows);
            return std::pair{next, transpose(next, {batch_, in_})};
          };
          return scan(Scan{.spatial_dim = time_,
                           .initial = zeros({batch_, in_}, f64),
                           .xs = x,
                           .body = body})
              .ys;
        },
        x);
}

TEST_P(VmapInLoopsTest, APolicyOfALoopThatEndsBeforeItsDim) {
  const Dim letters("letters", tensor({{3, 0, 2}, {1, 1, 0}}, {batch_, in_}));
  const Tensor x = random_normal({letters, batch_, in_}, f64);
  expect_as_map(
      [&](const Apply& apply, const Tensor& x) {
        return apply(
            [&](const Tensor& row) {
              return scan(Scan{.spatial_dim = letters,
                               .initial = row,
                               .xs = x,
                               .body =
                                   [](const Tensor& x, const Tensor& s) {
                                     return std::pair{None(), s * x};
                                   },
                               .max_seq_len = tensor(2),
                               .checkpoint = Checkpoint::every(2)})
                  .state;
            },
            x, letters);
      },
      x);
}

TEST_P(VmapInLoopsTest, LengthsOverTheRowsAndAnotherDim) {
  const Dim one("one", 2), letters("letters", tensor({{2, 3}, {1, 0}}, {batch_, one}));
  const Tensor x = random_normal({batch_, letters, one}, f64);
  expect_as_map(
      [&](const Apply& apply, const Tensor& x) {
        return apply(
            [&](const Tensor& row) {
              return while_loop(
                  [](const Tensor& s) { return abs(s) > 0.1; },
                  [&](const Tensor& s) { return s * 0.5 + 0.01 * sum(sum(sin(row), one)); },
                  sum(row));
            },
            x, batch_);
      },
      x);
}

/// A loop in f gives the rows another dim inside. The result has the caller's ragged dim again,
/// also where it lacks a dim of the lengths.
TEST_P(VmapInLoopsTest, AResultWithoutADimOfItsLengths) {
  const Dim rows("rows", 2), words("words", 2),
      letters("letters", tensor({{1, 3}, {2, 1}}, {rows, words}));
  const Tensor x = random_normal({rows, words, letters}, f64);
  const auto program = [&](const Apply& apply, const Tensor& x) -> Tensor {
    const Dim rows = x.dim("rows"), words = x.dim("words"), letters = x.dim("letters");
    const auto f = [&](const Tensor& x) -> Tensor {
      const auto body = [&](const Tensor&, const Tensor& h) { return sin(h) + x; };
      return max(fori_loop(0, 3, body, x), {words});
    };
    return x + apply(f, x, rows);
  };
  expect_as_map(program, x);
}

TEST_P(VmapInLoopsTest, ABodyMakesAValueWithTheDimOfTheRows) {
  const Tensor x = random_normal({batch_, in_}, f64);
  expect_as_map(
      [&](const Apply& apply, const Tensor& x) {
        return apply(
            [&](const Tensor& row) {
              return scan(Scan{.spatial_dim = in_,
                               .initial = zeros({}, f64),
                               .xs = row,
                               .body =
                                   [&](const Tensor& x, const Tensor& s) {
                                     const Tensor next = s + x * sum(expand(x, {batch_}), batch_);
                                     return std::pair{next, next};
                                   }})
                  .ys;
            },
            x, batch_);
      },
      x);
}

TEST_P(VmapInLoopsTest, ACapturedRaggedDimWithoutTheRowsCountsAsFull) {
  const Tensor x = random_normal({batch_, time_}, f64), weights = random_normal({time_, in_}, f64);
  expect_as_map(
      [&](const Apply& apply, const Tensor& x) {
        return apply(
            [&](const Tensor& row) {
              const Tensor cumulative = cumsum(sin(weights), in_);
              return sum(row) * max(cumulative, {time_}) + sum(weights * cumulative, {time_});
            },
            x, batch_);
      },
      x);
}

TEST_P(VmapInLoopsTest, TheFirstGradientHasTheBitsOfEagerMode) {
  if (!is_exact()) return;
  for (int seed = 0; seed < 50; ++seed) {
    manual_seed(seed);
    const Tensor w = random_normal({}, f32), x = random_normal({3}, f32);
    const auto slope = grad([&](const Tensor& w) -> Tensor {
      const auto f = [&](const Tensor& x) { return x * sin(w) + square(w) + cos(w) + w * 1.25; };
      return sum(vmap(f)(x) * w);
    });
    EXPECT_EQ(run(slope)(w).item<float>(), slope(w).item<float>()) << "seed " << seed;
  }
}

REEL_IN_EVERY_MODE(VmapInLoopsTest);

}  // namespace
}  // namespace reel
