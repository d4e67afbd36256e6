// Bodies that take the index of x, and initial states made from the first slice.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class ScanIndexTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({2, 0, 3}, {batch})};
  const Tensor x = tensor({{1., 2., NAN}, {NAN, NAN, NAN}, {3., 4., 5.}}, {batch, time}, f64);
};

TEST_P(ScanIndexTest, IsThePositionOfX) {
  const auto f = [](const Tensor& x) {
    return scan(Scan{.initial = scalar(0., f64),
                     .xs = x,
                     .body = [](const Tensor& i, const Tensor& x, const Tensor& s) {
                       return std::pair{i, s + x * cast(i, f64)};
                     }});
  };
  const Tensor x = tensor({5., 7., 11.}, f64);
  expect_values(run([&](const Tensor& x) { return f(x).ys; })(x), {0, 1, 2});
  EXPECT_EQ(f(x).ys.dtype(), i32);
  expect_values(run([&](const Tensor& x) { return f(x).state; })(x), {29});
  const auto loss = [&](const Tensor& x) { return square(f(x).state); };
  expect_gradient_of(loss, x, run(grad(loss))(x));
}

TEST_P(ScanIndexTest, ReverseScansCountWithinEachEntry) {
  const auto f = [&](const Tensor& x, bool reverse) {
    const auto [ys, state, dim] =
        scan(Scan{.spatial_dim = time,
                  .initial = zeros({batch}, f64),
                  .xs = x,
                  .body =
                      [](const Tensor& i, const Tensor& x, const Tensor& s) {
                        const Tensor next = s * 2 + x * cast(i, f64);
                        return std::pair{next, next};
                      },
                  .reverse = reverse});
    return std::pair{ys, state};
  };
  expect_values(run([&](const Tensor& x) { return f(x, false).second; })(x), {2, 0, 18});
  expect_values(run([&](const Tensor& x) { return f(x, true).second; })(x), {4, 0, 48});
  const auto positions = run([&](const Tensor& x) {
    const auto result = scan(Scan{.spatial_dim = time,
                                  .xs = x,
                                  .body = [](const Tensor& i, const Tensor&) { return i; },
                                  .reverse = true});
    return expand(result.ys, {batch, time});
  })(x);
  expect_values(mask_padding(positions), {0, 1, 0, 0, 0, 0, 0, 1, 2});
}

TEST_P(ScanIndexTest, ScansWithCondOrWithoutXsCountToo) {
  const auto with_xs = run([&](const Tensor& x) {
    const auto [ys, state, dim] =
        scan(Scan{.spatial_dim = time,
                  .cond_dims = {batch},
                  .initial = zeros({batch}, f64),
                  .xs = x,
                  .cond = [](const Tensor& s) { return s < 4.0; },
                  .body =
                      [](const Tensor& i, const Tensor& x, const Tensor& s) {
                        return std::pair{x * 0 + cast(i, f64), s + x};
                      },
                  .reverse = true});
    return std::pair{transpose(ys, {batch, dim}), state};
  })(x);
  EXPECT_EQ(rows_of<double>(with_xs.first), (std::vector<std::vector<double>>{{0, 1}, {}, {2}}));
  expect_values(with_xs.second, {3, 0, 5});
  const auto counting = run([](const Tensor& s) {
    const auto [ys, state, dim] = scan(Scan{.cond_dims = {},
                                            .initial = s,
                                            .cond = [](const Tensor& s) { return s < 10.0; },
                                            .body =
                                                [](const Tensor& i, const Tensor& s) {
                                                  return std::pair{i, s * 2};
                                                }});
    return std::pair{ys, state};
  })(scalar(1., f64));
  expect_values(counting.first, {0, 1, 2, 3});
  expect_values(counting.second, {16});
}

TEST_P(ScanIndexTest, IndexCountsAlongASizeUnknownToTheTrace) {
  const auto f = run([](const Tensor& x) {
    const Tensor some = pack(x, x > 1.0);
    return scan(Scan{.xs = some,
                     .body = [](const Tensor& i, const Tensor& x) { return x + cast(i, f64); }})
        .ys;
  });
  expect_values(f(tensor({5., 0., 7., 9.}, f64)), {5, 8, 11});
}

TEST_P(ScanIndexTest, TheInitialStateMayComeFromTheFirstSlice) {
  const auto f = [&](const Tensor& x, bool reverse) {
    const auto result = scan(Scan{.spatial_dim = time,
                                  .initial =
                                      [](const Tensor& first) {
                                        return std::tuple{first * 10, 1};
                                      },
                                  .xs = x,
                                  .body =
                                      [](const Tensor& x, const std::tuple<Tensor, Tensor>& s) {
                                        const auto& [sum, count] = s;
                                        return std::pair{sum, std::tuple{sum + x, count + 1}};
                                      },
                                  .reverse = reverse});
    return std::pair{std::get<0>(result.state), result.ys};
  };
  const auto forward = run([&](const Tensor& x) { return f(x, false); })(x);
  expect_values(forward.first, {13, 0, 42});
  const auto backward = run([&](const Tensor& x) { return f(x, true); })(x);
  expect_values(backward.first, {23, 0, 62});
  const Tensor valid = mask_padding(x);
  const auto loss = [&](const Tensor& x) { return sum(square(f(x, true).first)); };
  expect_gradient_of(loss, valid, mask_padding(run(grad(loss))(valid)));
}

TEST_P(ScanIndexTest, TheFirstSliceOfPlainSizesAndTrees) {
  const auto f = run([](const Tensor& a, const Tensor& b) {
    const auto result = scan(
        Scan{.initial =
                 [](const std::pair<Tensor, Tensor>& first) { return first.first - first.second; },
             .xs = std::pair{a, b},
             .body =
                 [](const std::pair<Tensor, Tensor>& x, const Tensor& s) {
                   return std::pair{s, s * x.first + x.second};
                 }});
    return result.state;
  });
  expect_values(f(tensor({2., 3.}, f64), tensor({1., 5.}, f64)), {14});
}
REEL_IN_EVERY_MODE(ScanIndexTest);

TEST(ScanIndexErrorsTest, NoFirstSlice) {
  EXPECT_EQ(message_of<ArgumentError>([] {
              return scan(Scan{.initial = [](const Tensor& first) { return first; },
                               .xs = zeros({0, 2}),
                               .body =
                                   [](const Tensor& x, const Tensor& s) {
                                     return std::pair{x, s};
                                   },
                               .name = "encoder"});
            }),
            "scan \"encoder\": xs have no elements, so there is no first slice; give an initial "
            "value");
  // A size that only a run knows.
  const auto any = jit(
      [](const Tensor& xs) {
        return scan(Scan{.initial = [](const Tensor& first) { return first; },
                         .xs = xs,
                         .body =
                             [](const Tensor& x, const Tensor& s) {
                               return std::pair{x, s};
                             },
                         .name = "encoder"})
            .state;
      },
      {.any_length = {0}});
  expect_values(any(ones({2, 2})), {1, 1});
  EXPECT_EQ(message_of<IndexError>([&] {
              any(zeros({0, 2}));
            }),
            "scan \"encoder\": the first slice: index 0 is out of range for axis 0 of f32[0,2], "
            "which has size 0");
}

}  // namespace
}  // namespace reel
