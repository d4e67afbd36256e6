// Equal lengths make equal dims, which a graph merges unless a tensor has both.
#include "reel/tests/modes.h"
#include "reel/tests/occurrences.h"

namespace reel {
namespace {

/// Makes two dims of one size, and a tensor that has both.
Tensor square_of(const Tensor& x) {
  const auto size = [&] { return sum(x.dim("batch").lengths()); };
  const Dim row("side", size()), column("side", size());
  return sum(sin(expand(sum(x) * cast(range(row), f64), {row, column})));
}

Tensor argument() { return tensor({0.1, 0.2, 0.3}, {Dim("batch", scalar(3))}, f64); }

/// The n-th dim of each copy becomes the n-th dim of the first one, so that all ops of the copies
/// are merged as well.
TEST(MergedDimsTest, CopiesOfAFunctionMakeTheirDimsOnce) {
  const auto f = jit([](const Tensor& x) {
    Tensor result = square_of(x);
    for (int copy = 1; copy < 5; ++copy) result = result + square_of(x);
    return result;
  });
  expect_all_close(f(argument()), 5.0 * square_of(argument()), 1e-12);
  const std::string graph = str(f.graph());
  EXPECT_EQ(occurrences("define_dim(", graph), 2) << graph;
  EXPECT_EQ(occurrences("sin(", graph), 1) << graph;
}

class MergedDimsInEveryMode : public InEveryMode {};
REEL_IN_EVERY_MODE(MergedDimsInEveryMode);

TEST_P(MergedDimsInEveryMode, DimsThatMeetInsideACheckpointedFunctionStayTwo) {
  const auto f = [](const Tensor& x) -> Tensor {
    const auto size = [&] { return sum(x.dim("batch").lengths()); };
    const Dim row("side", size()), column("side", size());
    const Tensor rows = expand(sum(x), {row}), columns = expand(sum(x), {column});
    const auto inside = [&](const Tensor& s) {
      return sum(sin(expand(rows * s, {row, column}) + columns));
    };
    return checkpoint(inside)(sum(x));
  };
  const Tensor x = argument();
  expect_all_close(run(f)(x), f(x), 1e-12);
  expect_all_close(run(grad(f))(x), grad(f)(x), 1e-12);
}

TEST_P(MergedDimsInEveryMode, DimsThatMeetInsideACustomGradientStayTwo) {
  const auto f = [](const Tensor& x) -> Tensor {
    const auto size = [&] { return sum(x.dim("batch").lengths()); };
    const Dim row("side", size()), column("side", size());
    const auto both = custom_vjp(
        [=](const Tensor& s) {
          return std::pair{s * 2.0, s};
        },
        [=](const Tensor& s, const Tensor& cotangent) {
          return sum(cos(expand(s, {row, column}))) * cotangent;
        });
    return both(sum(x)) + sum(expand(sum(x), {row})) + sum(expand(sum(x), {column}));
  };
  const Tensor x = argument();
  expect_all_close(run(f)(x), f(x), 1e-12);
  expect_all_close(run(grad(f))(x), grad(f)(x), 1e-12);
  if (!is_eager()) expect_all_close(grad(jit(f, options_of(GetParam())))(x), grad(f)(x), 1e-12);
}

/// The dims of a Jacobian are made in the iteration. Its second gradient reads residuals that two
/// copies of the iteration saved.
TEST_P(MergedDimsInEveryMode, SecondGradientsOfJittedLoopsReadResidualsOfCopies) {
  const Tensor x = argument();
  const Dim steps("steps", 2);
  const auto f = [&](const Tensor& x) -> Tensor {
    const auto body = [&](const Tensor& u, const Tensor& s) {
      const auto cube = [](const Tensor& t) -> Tensor { return t * t * t; };
      return std::pair{None{}, Tensor(s * u + sum(sin(jacfwd(cube)(x))))};
    };
    return scan(Scan{.spatial_dim = steps,
                     .initial = sum(x),
                     .xs = full({steps}, 0.5, f64),
                     .body = body})
        .state;
  };
  const auto second = [&](const auto& f) {
    return grad([f](const Tensor& x) -> Tensor { return sum(sin(grad(f)(x))); });
  };
  const Tensor expected = second(f)(x);
  expect_all_close(run(second(f))(x), expected, 1e-12);
  if (!is_eager()) expect_all_close(second(jit(f, options_of(GetParam())))(x), expected, 1e-12);
}

}  // namespace
}  // namespace reel
