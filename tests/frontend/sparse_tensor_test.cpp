#include <gtest/gtest.h>

#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using SparseTensorTest = InEveryMode;
REEL_IN_EVERY_MODE(SparseTensorTest);

/// Elements at {1,2}, {0,0} and {1,2} again of a matrix of 3 by 4.
SparseTensor matrix(const Tensor& values) {
  return {tensor({{1, 2}, {0, 0}, {1, 2}}, {}, i64), values, tensor({3, 4}, {}, i64)};
}
Tensor three() { return tensor({1., 2., 4.}, {}, f64); }

TEST_P(SparseTensorTest, ToDenseAddsWhatHasEqualIndices) {
  const auto f = run([](const Tensor& values) { return to_dense(matrix(values)); });
  expect_values(f(three()), {2, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0});
  EXPECT_EQ(f(three()).shape(), (std::vector<std::int64_t>{3, 4}));
}

TEST_P(SparseTensorTest, ToDenseOfNothingAndOfAScalar) {
  const auto f = run([](const SparseTensor& s) { return to_dense(s); });
  expect_values(f(SparseTensor{zeros({0, 2}, i64), zeros({0}), tensor({2, 2})}), {0, 0, 0, 0});
  expect_values(f(SparseTensor{zeros({2, 0}, i64), tensor({3., 4.}), zeros({0}, i64)}), {7});
  expect_values(f(SparseTensor{zeros({0, 1}, i64), zeros({0}), tensor({0})}), {});
}

TEST_P(SparseTensorTest, NegativeIndicesCountNowhere) {
  const auto f = run([](const SparseTensor& s) { return to_dense(s); });
  expect_values(
      f(SparseTensor{tensor({{-1, 0}, {1, -3}, {1, 1}}), tensor({3., 4., 5.}), tensor({2, 2})}),
      {0, 0, 0, 5});
}

TEST_P(SparseTensorTest, GradientsAreWhatIsAtTheIndices) {
  const auto f = [](const Tensor& values) {
    const Tensor whole = to_dense(matrix(values));
    return sum(whole * whole * whole);
  };
  const Tensor gradient = run(grad(f))(three());
  expect_values(gradient, {75, 12, 75});
  expect_gradient_of(f, three(), gradient);
  const auto norm = [&](const Tensor& v) { return sum(square(grad(f)(v))); };
  expect_gradient_of(norm, three(), run(grad(norm))(three()), 1e-5);
}

TEST_P(SparseTensorTest, FromDenseAndBack) {
  const auto f = run([](const Tensor& x) { return from_dense(x); });
  const Tensor x = tensor({{0., 3., 0.}, {-1., 0., 2.}});
  const SparseTensor sparse = f(x);
  expect_values(sparse.indices, {0, 1, 1, 0, 1, 2});
  expect_values(sparse.values, {3, -1, 2});
  expect_values(sparse.dense_shape, {2, 3});
  const auto back = run([](const Tensor& x) { return to_dense(from_dense(x)); });
  expect_same_bits(back(x), x);
  expect_values(back(zeros({2, 3})), std::vector<double>(6));
  expect_values(back(zeros({0, 3})), {});
  expect_values(back(tensor({5., 0.})), {5, 0});
  expect_values(f(scalar(2.)).values, {2});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_values(f(tensor({0., nan})).values, {nan});
}

TEST_P(SparseTensorTest, FromDenseHasTheGradientOfItsElements) {
  const auto f = [](const Tensor& x) { return sum(square(from_dense(x).values)); };
  expect_values(run(grad(f))(tensor({{0., 3.}, {-1., 0.}}, {}, f64)), {0, 6, -2, 0});
}

TEST_P(SparseTensorTest, ProductWithAMatrix) {
  const Tensor b = reshape(cast(range(8), f64), {4, 2});
  const auto f = run([](const Tensor& v, const Tensor& b) { return matmul(matrix(v), b); });
  expect_all_close(f(three(), b), matmul(to_dense(matrix(three())), b));
  const auto loss = [](const std::pair<Tensor, Tensor>& at) {
    return sum(sin(matmul(matrix(at.first), at.second)));
  };
  const std::pair at{three(), b * 0.3};
  const auto gradient = run(grad(loss))(at);
  expect_gradient_of(loss, at, gradient);
  const auto norm = [&](const std::pair<Tensor, Tensor>& at) {
    const auto g = grad(loss)(at);
    return sum(square(g.first)) + sum(square(g.second));
  };
  expect_gradient_of(norm, at, run(grad(norm))(at), 1e-6);
}

TEST_P(SparseTensorTest, ALoopMultipliesByIt) {
  // x ← A x, for A = {{0, 1}, {1, 1}}: Fibonacci numbers.
  const auto f = [](const Tensor& values) {
    const SparseTensor a{tensor({{0, 1}, {1, 0}, {1, 1}}), values, tensor({2, 2})};
    return sum(fori_loop(
        0, 10,
        [&](const Tensor&, const Tensor& x) {
          return ensure_shape(matmul(a, x), {2, 1});
        },
        tensor({{0.}, {1.}}, {}, f64)));
  };
  expect_values(run([&](const Tensor& v) { return f(v); })(ones({3}, f64)), {55 + 89});
  expect_gradient_of(f, ones({3}, f64), run(grad(f))(ones({3}, f64)), 1e-6);
}

TEST_P(SparseTensorTest, IndexedSlicesOfUnknownShape) {
  const auto f = [](const IndexedSlices& s) { return to_dense(s); };
  const IndexedSlices slices{tensor({{1., 2.}, {3., 4.}, {5., 6.}}), tensor({2, -1, 2}),
                             tensor({3, 2})};
  expect_values(run(f)(slices), {0, 0, 0, 0, 6, 8});
  const auto once = run([](const IndexedSlices& s) { return coalesced(s); })(slices);
  expect_values(once.indices, {2, -1, -1});
  expect_values(once.values, {6, 8, 0, 0, 0, 0});
  const Dim rows("rows", 3), two("two", 2);
  const auto named = run([&](const IndexedSlices& s) { return to_dense(s, {rows, two}); });
  EXPECT_EQ(named(slices).dims(), (Dims{rows, two}));
  expect_values(named(slices), {0, 0, 0, 0, 6, 8});
}

TEST_P(SparseTensorTest, ErrorsNameWhatDoesNotFit) {
  const auto dense = run([](const SparseTensor& s) { return to_dense(s); });
  const auto rows = run([](const IndexedSlices& s) { return to_dense(s); });
  const auto product = run([](const SparseTensor& s, const Tensor& b) { return matmul(s, b); });
  const Tensor one = tensor({{0, 1}});
  EXPECT_EQ(message_of<IndexError>([&] {
              dense(SparseTensor{one, tensor({1.}), tensor({1, 1})});
            }),
            "SparseTensor: index 1 at [0,1] of i64[1,2] is out of range for axis 1 of f32[1,1], "
            "which has size 1");
  EXPECT_EQ(message_of<ShapeError>([&] {
              dense(SparseTensor{one, tensor({1., 2.}), tensor({1, 1})});
            }),
            "SparseTensor: values f32[2], indices i64[1,2] and dense_shape i64[2] do not fit "
            "together: each of the values has one index for each of 2 axes, and sizes for all "
            "others of 2");
  EXPECT_EQ(message_of<ShapeError>([&] {
              dense(SparseTensor{one, tensor({1.}), tensor({2, -1})});
            }),
            "SparseTensor: sizes are not negative, got -1 for axis 1 in dense_shape");
  EXPECT_EQ(message_of<DTypeError>([&] {
              dense(SparseTensor{cast(one, f32), tensor({1.}), tensor({2, 2})});
            }),
            "SparseTensor: indices are i32 or i64, got f32[1,2]");
  EXPECT_EQ(message_of<IndexError>([&] {
              rows(IndexedSlices{ones({1, 2}), tensor({7}), tensor({3, 2})});
            }),
            "IndexedSlices: index 7 at [0,0] of i64[1,1] is out of range for axis 0 of f32[3,2], "
            "which has size 3");
  EXPECT_EQ(message_of<ShapeError>([&] {
              rows(IndexedSlices{ones({1, 2}), tensor({0}), tensor({3, 4})});
            }),
            "IndexedSlices: dense_shape says size 4 for axis 1, but values are f32[1,2]");
  EXPECT_EQ(message_of<DTypeError>([&] {
              product(SparseTensor{one, tensor({1.}), tensor({2, 2})}, ones({2, 2}, f64));
            }),
            "matmul: dtypes differ: values f32[1] and f64[2,2]; cast one of them");
  EXPECT_EQ(message_of<IndexError>([&] {
              product(SparseTensor{tensor({{0, 3}}), tensor({1.}), tensor({2, 4})}, ones({2, 2}));
            }),
            "matmul: index 3 at [0,0] of i64[1,1] is out of range for axis 0 of f32[2,2], which "
            "has size 2");
  EXPECT_EQ(message_of<ShapeError>([&] {
              product(SparseTensor{one, tensor({1.}), tensor({2, 2})}, ones({2}));
            }),
            "matmul: takes a sparse matrix and a matrix with plain sizes, got values f32[1] at "
            "indices i64[1,2], and f32[2]");
}

}  // namespace
}  // namespace reel
