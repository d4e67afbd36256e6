#include <gtest/gtest.h>

#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class SparseTensorTest : public InEveryMode {
 protected:
  /// Returns a number of elements as type rules print it; a trace serves any number.
  std::string number(int n) const { return is_eager() ? str(n) : "?"; }
};
REEL_IN_EVERY_MODE(SparseTensorTest);

/// Elements at {1,2}, {0,0} and {1,2} again, in a matrix of 3 by 4.
SparseTensor matrix(const Tensor& values) {
  return {tensor({{1, 2}, {0, 0}, {1, 2}}, {}, i64), values, tensor({3, 4}, {}, i64)};
}
Tensor three() { return tensor({1., 2., 4.}, {}, f64); }

TEST_P(SparseTensorTest, ToDenseAddsValuesOfEqualIndices) {
  const auto f = run([](const Tensor& values) { return to_dense(matrix(values)); });
  expect_values(f(three()), {2, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0});
  EXPECT_EQ(f(three()).shape(), (std::vector<std::int64_t>{3, 4}));
}

TEST_P(SparseTensorTest, ToDenseTakesNoIndicesAndScalars) {
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

TEST_P(SparseTensorTest, GradientsAreTheElementsAtTheIndices) {
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
  expect_same_bits(back(scalar(2.)), scalar(2.));
  expect_same_bits(back(scalar(0.)), scalar(0.));
  EXPECT_EQ(f(scalar(0.)).indices.shape(), (std::vector<std::int64_t>{0, 0}));
  const Tensor mask = equal(x, 0);
  expect_same_bits(back(mask), mask);
  EXPECT_EQ(f(mask).values.dtype(), boolean);
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

// The gradient by the struct is in its values; its indices are zeros.
TEST_P(SparseTensorTest, TheGradientOfTheStructIsInItsValues) {
  const auto loss = [](const SparseTensor& a) { return sum(square(to_dense(a))); };
  const SparseTensor at = matrix(three()), gradient = run(grad(loss))(at);
  expect_values(gradient.values, {10, 4, 10});
  expect_values(gradient.indices, std::vector<double>(6));
  expect_values(gradient.dense_shape, {0, 0});
  expect_values(to_dense(SparseTensor{at.indices, gradient.values, at.dense_shape}),
                {4, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0});
  const auto rows = [](const IndexedSlices& s) { return sum(square(to_dense(s))); };
  const IndexedSlices slices{tensor({{1.}, {2.}, {4.}}, {}, f64), tensor({2, 0, 2}),
                             tensor({3, 1})};
  const IndexedSlices of_rows = run(grad(rows))(slices);
  expect_values(of_rows.values, {10, 4, 10});
  expect_values(to_dense(IndexedSlices{of_rows.values, slices.indices, slices.dense_shape}),
                {4, 0, 20});
}

TEST_P(SparseTensorTest, TransposeChangesRowsAndColumns) {
  const auto f = run([](const SparseTensor& a) { return transpose(a); });
  const SparseTensor turned = f(matrix(three()));
  expect_values(to_dense(turned), {2, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0});
  EXPECT_EQ(to_dense(turned).shape(), (std::vector<std::int64_t>{4, 3}));
  // The product of a vector from the left: x A = (Aᵀ x)ᵀ.
  const auto product = run([](const Tensor& values, const Tensor& x) {
    return reshape(matmul(transpose(matrix(values)), reshape(x, {-1, 1})), {-1});
  });
  expect_values(product(three(), tensor({3., 1., 7.}, {}, f64)), {6, 0, 5, 0});
  const auto loss = [](const Tensor& v) { return sum(square(to_dense(transpose(matrix(v))))); };
  expect_gradient_of(loss, three(), run(grad(loss))(three()));
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(SparseTensor{tensor({{0}}), tensor({1.}), tensor({2})});
            }),
            "transpose: takes a sparse matrix, got indices i32[" + number(1) +
                ",1] and dense_shape i32[1]");
}

TEST_P(SparseTensorTest, ElementsWithoutAPlaceAddNothingToAProduct) {
  // 0 times infinity is NaN, so elements without a place must be left out instead of multiplied by
  // zeros.
  const double inf = std::numeric_limits<double>::infinity();
  const auto loss = [](const std::pair<Tensor, Tensor>& at) {
    const SparseTensor a{tensor({{1, -1}, {-1, 0}, {0, 1}}), at.first, tensor({2, 2})};
    return sum(matmul(a, at.second));
  };
  const auto product = run([](const Tensor& values, const Tensor& b) {
    return matmul(SparseTensor{tensor({{1, -1}, {-1, 0}, {0, 1}}), values, tensor({2, 2})}, b);
  });
  const std::pair at{tensor({inf, inf, 2.}, {}, f64), tensor({{inf}, {3.}}, {}, f64)};
  expect_values(product(at.first, at.second), {6, 0});
  const auto gradient = run(grad(loss))(at);
  expect_values(gradient.first, {0, 0, 3});
  expect_values(gradient.second, {0, 2});
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

/// n ones along the diagonal of a matrix of 6 by 6; from the seventh on they have no place.
SparseTensor diagonal(int n) {
  const Tensor place = where(range(n, i64) < 6, range(n, i64), -1);
  return {stack(Tensors{place, place}, 1), ones({n}, f64), tensor({6, 6}, {}, i64)};
}

TEST_P(SparseTensorTest, OneTraceServesAnyNumberOfElements) {
  const auto loss = [](const SparseTensor& a, const Tensor& x) {
    return sum(square(matmul(a, matmul(a, x))));
  };
  const auto product = run([](const SparseTensor& a, const Tensor& x) { return matmul(a, x); });
  const auto gradient =
      run([&](const SparseTensor& a, const Tensor& x) { return grad(loss)(a, x).values; });
  const auto doubled = run([](const SparseTensor& a) {
    return std::get<1>(while_loop(
        [](const Tensor& i, const SparseTensor&) { return i < 2; },
        [](const Tensor& i, const SparseTensor& s) {
          return std::tuple{i + 1, SparseTensor{concat({s.indices, s.indices}, 0),
                                                concat({s.values, s.values}, 0), s.dense_shape}};
        },
        std::tuple{0, a}));
  });
  const Tensor x = random_normal({6, 2}, f64);
  for (const int n : {3, 0, 1, 6, 9}) {
    const SparseTensor a = diagonal(n);
    expect_all_close(product(a, x), matmul(to_dense(a), x));
    expect_all_close(gradient(a, x), grad(loss)(a, x).values);
    EXPECT_EQ(gradient(a, x).shape(), (std::vector<std::int64_t>{n}));
    EXPECT_EQ(doubled(a).values.shape(), (std::vector<std::int64_t>{4 * n}));
  }
  EXPECT_EQ(product.trace_count(), 1);
  EXPECT_EQ(gradient.trace_count(), 1);
  EXPECT_EQ(doubled.trace_count(), 1);
}

TEST_P(SparseTensorTest, TheNumberOfElementsMayChangeInEveryLoop) {
  const auto twice = [](const SparseTensor& s) {
    return SparseTensor{concat({s.indices, s.indices}, 0), concat({s.values, s.values * 2.}, 0),
                        s.dense_shape};
  };
  const auto with_x = [=](const Tensor& x, const SparseTensor& s) {
    const SparseTensor next = twice(s);
    return std::pair{to_dense(next) * x, next};
  };
  const auto expect_grows = [&](const auto& f) {
    const auto of_argument = [&](const SparseTensor& s) { return to_dense(f(s)); };
    const auto of_built = [&](const SparseTensor& s) {
      return to_dense(f(SparseTensor{tensor({{2}, {0}}), s.values, s.dense_shape}));
    };
    const auto loss = [&](const SparseTensor& s) { return sum(square(of_argument(s))); };
    const SparseTensor s{tensor({{1}, {3}}), tensor({2., 5.}, {}, f64), tensor({4}, {}, i64)};
    expect_values(run(of_argument)(s), {0, 54, 0, 135});
    expect_values(run(of_built)(s), {135, 0, 54, 0});
    expect_values(run([&](const SparseTensor& s) { return grad(loss)(s).values; })(s),
                  {2916, 7290});
  };
  const Tensor xs = ones({3}, f64);
  expect_grows([&](const SparseTensor& s) {
    return scan(Scan{.initial = s, .xs = xs, .body = with_x}).state;
  });
  expect_grows([&](const SparseTensor& s) {
    return scan(Scan{.initial = s, .xs = xs, .body = with_x, .checkpoint = Checkpoint::every(2)})
        .state;
  });
  const auto with_count = [&](const Tensor&, const SparseTensor& s) { return twice(s); };
  expect_grows([&](const SparseTensor& s) { return fori_loop(0, 3, with_count, s); });
  expect_grows(
      [&](const SparseTensor& s) { return fori_loop(0, sum(cast(xs, i32)), with_count, s); });
  expect_grows([&](const SparseTensor& s) {
    return foldl([&](const SparseTensor& s, const Tensor&) { return twice(s); }, xs, s);
  });
}

// The ys do not depend on the state. Without the growing state, the loop would run in chunks.
TEST_P(SparseTensorTest, AStateMayGainElementsBesideHoistedYs) {
  const Tensor xs = cast(range(7), f64) * 0.1 + 0.3, start = tensor({1., 2., 3.}, {}, f64);
  for (const Checkpoint& checkpoint : {Checkpoint(), Checkpoint::every(2)}) {
    const auto f = [&](const Tensor& v, const Tensor& xs) {
      const auto body = [](const Tensor& x, const SparseTensor& s) {
        const SparseTensor next{concat({s.indices, tensor({{1}})}, 0),
                                concat({sin(s.values * x), ones({1}, f64)}, 0), s.dense_shape};
        return std::pair{tanh(x) + 1., next};
      };
      const auto made = scan(Scan{.initial = SparseTensor{tensor({{0}, {2}, {0}}), v, tensor({3})},
                                  .xs = xs,
                                  .body = body,
                                  .checkpoint = checkpoint});
      return std::pair{sum(made.ys) + sum(square(to_dense(made.state))), made.state.values};
    };
    const auto loss = [&](const Tensor& v, const Tensor& xs) { return f(v, xs).first; };
    EXPECT_EQ(run(f)(start, xs).second.dims()[0].size(), 10);
    expect_all_close(run(f)(start, xs).second, f(start, xs).second, 1e-14);
    const Tensor dv = grad(loss)(start, xs);
    expect_all_close(run(grad(loss))(start, xs), dv, 1e-13);
    const auto traced = run(loss);
    const Tensor outside = grad([&](const Tensor& v) { return traced(v, xs); })(start);
    expect_all_close(outside, dv, 1e-13);
  }
}

TEST_P(SparseTensorTest, ATapeOutsideOfATraceThatServesAnyNumber) {
  const auto f = run([](const SparseTensor& a) { return sum(square(to_dense(a))); });
  for (const int n : {2, 5})
    expect_values(grad([&](const SparseTensor& a) { return f(a); })(diagonal(n)).values,
                  std::vector<double>(static_cast<std::size_t>(n), 2.));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(SparseTensorTest, BranchesMayHaveOtherNumbersOfElements) {
  const auto loss = [](const Tensor& p, const Tensor& v) {
    const Tensor size = tensor({4}, {}, i64);
    return square(to_dense(cond(
        p > 0,
        [&] {
          return SparseTensor{tensor({{0}, {1}}), v, size};
        },
        [&] {
          return SparseTensor{tensor({{2}, {3}, {3}}), concat({v, slice(v, 0, 0, 1)}, 0), size};
        })));
  };
  const Tensor v = tensor({2., 3.}, {}, f64);
  const auto f = run(loss);
  expect_values(f(scalar(1), v), {4, 9, 0, 0});
  expect_values(f(scalar(0), v), {0, 0, 4, 25});
  const auto g = run(grad([&](const Tensor& v, const Tensor& p) { return sum(loss(p, v)); }));
  expect_values(g(v, scalar(1)), {4, 6});
  expect_values(g(v, scalar(0)), {4 + 10, 10});
}

TEST_P(SparseTensorTest, CoalescedSlicesKeepTheirDTypeAsStateOfALoop) {
  const auto f = run([](const IndexedSlices& s) {
    return std::get<1>(while_loop(
        [](const Tensor& i, const IndexedSlices&) { return i < 3; },
        [](const Tensor& i, const IndexedSlices& s) {
          return std::tuple{i + 1,
                            coalesced({concat({s.values, ones({1, 2})}, 0),
                                       concat({s.indices, cast(tensor({3}), s.indices.dtype())}, 0),
                                       s.dense_shape})};
        },
        std::tuple{0, s}, {.shape_invariants = {std::nullopt, PartialShape{unknown, 2}}}));
  });
  for (const DType dtype : {i32, i64}) {
    const IndexedSlices sum =
        f(IndexedSlices{ones({2, 2}), tensor({0, 3}, {}, dtype), tensor({10, 2})});
    EXPECT_EQ(sum.indices.dtype(), dtype);
    expect_values(sum.indices, {0, 3, -1, -1, -1});
    expect_values(sum.values, {1, 1, 4, 4, 0, 0, 0, 0, 0, 0});
  }
}

TEST_P(SparseTensorTest, AStateOfALoopNeedsADenseShape) {
  const auto f = run([](const Tensor& values) {
    return while_loop([](const IndexedSlices& s) { return any(s.values > 1); },
                      [](const IndexedSlices& s) { return s; },
                      IndexedSlices{values, tensor({0}), {}});
  });
  EXPECT_EQ(message_of<StructureError>([&] {
              f(ones({1, 2}));
            }),
            "while_loop \"while\": the initial state has empty Tensors: state.dense_shape; give "
            "them values, or let them be std::optional<Tensor>. A dense_shape is a vector, the "
            "sizes of the whole tensor: tensor({rows, columns})");
  const auto counted = run([](const Tensor& values) {
    return fori_loop(
        0, 2, [](const Tensor&, const IndexedSlices& s) { return s; },
        IndexedSlices{values, tensor({0}), {}});
  });
  EXPECT_EQ(message_of<StructureError>([&] {
              counted(ones({1, 2}));
            }),
            "fori_loop \"fori_loop\": the initial state has empty Tensors: state.dense_shape; give "
            "them values, or let them be std::optional<Tensor>. A dense_shape is a vector, the "
            "sizes of the whole tensor: tensor({rows, columns})");
}

TEST_P(SparseTensorTest, ErrorsNameIndicesAndSizesThatDoNotFit) {
  const auto dense = run([](const SparseTensor& s) { return to_dense(s); });
  const auto rows = run([](const IndexedSlices& s) { return to_dense(s); });
  const auto product = run([](const SparseTensor& s, const Tensor& b) { return matmul(s, b); });
  const Tensor one = tensor({{0, 1}});
  EXPECT_EQ(message_of<IndexError>([&] {
              dense(SparseTensor{one, tensor({1.}), tensor({1, 1})});
            }),
            "SparseTensor: index 1 at indices[0,1] is out of range for axis 1 of f32[1,1], "
            "which has size 1");
  EXPECT_EQ(message_of<ShapeError>([&] {
              dense(SparseTensor{one, tensor({1., 2.}), tensor({1, 1})});
            }),
            "SparseTensor: values f32[2], indices [1,2] and dense_shape [2] do not fit "
            "together: each of the values has one index for each of 2 axes, and sizes for all "
            "others of 2");
  EXPECT_EQ(message_of<ShapeError>([&] {
              dense(SparseTensor{one, tensor({1.}), tensor({2, -1})});
            }),
            "SparseTensor: sizes are not negative, got -1 for axis 1 in dense_shape");
  const std::int64_t many = std::int64_t{1} << 40;
  EXPECT_EQ(message_of<ShapeError>([&] {
              dense(SparseTensor{one, tensor({1.}), tensor({many, many}, {}, i64)});
            }),
            "SparseTensor: f32[1099511627776,1099511627776]: too many elements; their bytes are "
            "more than 64 bits can count");
  EXPECT_EQ(message_of<DTypeError>([&] {
              dense(SparseTensor{cast(one, f32), tensor({1.}), tensor({2, 2})});
            }),
            "SparseTensor: indices are i32 or i64, got f32[" + number(1) + ",2]");
  EXPECT_EQ(message_of<IndexError>([&] {
              rows(IndexedSlices{ones({1, 2}), tensor({7}), tensor({3, 2})});
            }),
            "IndexedSlices: index 7 at indices[0] is out of range for axis 0 of f32[3,2], "
            "which has size 3");
  EXPECT_EQ(message_of<ShapeError>([&] {
              rows(IndexedSlices{ones({1, 2}), tensor({0}), tensor({3, 4})});
            }),
            "IndexedSlices: dense_shape says size 4 for axis 1, but values are f32[1,2]");
  EXPECT_EQ(message_of<DTypeError>([&] {
              product(SparseTensor{one, tensor({1.}), tensor({2, 2})}, ones({2, 2}, f64));
            }),
            "matmul: dtypes differ: values f32[" + number(1) + "] and f64[2,2]; cast one of them");
  EXPECT_EQ(message_of<ShapeError>([&] {
              product(SparseTensor{tensor({{0, 3}}), tensor({1.}), tensor({2, 4})}, ones({2, 2}));
            }),
            "matmul: inner sizes differ: dense_shape [2,4] of the sparse matrix has 4 columns, rhs "
            "f32[2,2] has 2 rows");
  EXPECT_EQ(message_of<ShapeError>([&] {
              product(SparseTensor{one, tensor({1.}), tensor({2, 2})}, ones({2}));
            }),
            "matmul: takes a sparse matrix and a matrix with plain sizes, got values f32[" +
                number(1) + "] at indices [" + number(1) + ",2], and f32[2]");
  EXPECT_EQ(message_of<IndexError>([&] {
              product(SparseTensor{tensor({{0, 2}}), tensor({1.}), tensor({3, 2})}, ones({2, 2}));
            }),
            "matmul: index 2 at indices[0,1] is out of range for axis 1 of a sparse matrix of "
            "dense_shape [3,2]");
  EXPECT_EQ(message_of<IndexError>([&] {
              product(SparseTensor{tensor({{3, 0}}), tensor({1.}), tensor({3, 2})}, ones({2, 2}));
            }),
            "matmul: index 3 at indices[0,0] is out of range for axis 0 of a sparse matrix of "
            "dense_shape [3,2]");
  for (const Tensor& shape : {tensor({2}), tensor({2, 2, 4})})
    EXPECT_EQ(message_of<ShapeError>([&] {
                product(SparseTensor{one, tensor({1.}), shape}, ones({2, 2}));
              }),
              str("matmul: dense_shape of a sparse matrix is the number of its rows and that of "
                  "its columns, got ",
                  shape.dims()));
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        product(SparseTensor{tensor({{0, 1}, {1, 1}}), tensor({1.}), tensor({2, 2})}, ones({2, 2}));
      }),
      "matmul: values and indices of a sparse matrix differ in number: values f32[1] at "
      "indices [2,2]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              dense(SparseTensor{tensor({0}), tensor({1.}), tensor({2})});
            }),
            "SparseTensor: indices are [n, rank], got i32[" + number(1) + "]");
}

TEST_P(SparseTensorTest, ValuesAreAsManyAsIndicesWhereOnlyARunKnows) {
  const auto f = run([](const Tensor& x, const Tensor& indices) {
    const SparseTensor some{indices, from_dense(x).values, tensor({2, 2})};
    return matmul(some, ones({2, 1}));
  });
  const Tensor two_places = tensor({{0, 1}, {1, 1}});
  expect_values(f(tensor({1., 2.}), two_places), {1, 2});
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(tensor({0., 2.}), two_places);
            }),
            "matmul: values and indices of a sparse matrix differ in number: values f32[1] at "
            "indices [2,2]");
}

TEST_P(SparseTensorTest, ErrorsOfSlicesNameTheirArguments) {
  const auto to_dims = [&](const Dims& dims) {
    return run([=](const IndexedSlices& s) { return to_dense(s, dims); });
  };
  const IndexedSlices slices{ones({2, 3}), tensor({0, 1}), tensor({2, 3})};
  EXPECT_EQ(message_of<ShapeError>([&] {
              to_dims({2, 4})(slices);
            }),
            "IndexedSlices: values f32[2,3] at indices i32[2] do not fit f32[2,4]: values have one "
            "row for each index, with the sizes of all axes but the first");
  EXPECT_EQ(message_of<ShapeError>([&] {
              to_dims({2, 3})(IndexedSlices{ones({2, 3}), tensor({0}), {}});
            }),
            "IndexedSlices: values f32[2,3] at indices i32[1] do not fit f32[2,3]: values have one "
            "row for each index, with the sizes of all axes but the first");
  EXPECT_EQ(message_of<IndexError>([&] {
              to_dims({2, 3})(IndexedSlices{ones({2, 3}), tensor({0, 7}), {}});
            }),
            "IndexedSlices: index 7 at [1] of i32[2] is out of range for a table with 2 rows");
  EXPECT_EQ(message_of<ArgumentError>([] { to_dense(IndexedSlices{}); }),
            "IndexedSlices: an empty IndexedSlices was used; give it values and indices");
  EXPECT_EQ(message_of<ArgumentError>([] {
              to_dense(IndexedSlices{ones({1}), tensor({0}), {}});
            }),
            "IndexedSlices: dense_shape is empty; give the sizes of the whole tensor");
  EXPECT_EQ(
      message_of<ArgumentError>([] { to_dense(SparseTensor{}); }),
      "SparseTensor: an empty SparseTensor was used; give it indices, values and a dense_shape");
  EXPECT_EQ(
      message_of<ArgumentError>([] {
        matmul(SparseTensor{}, ones({2, 2}));
      }),
      "SparseTensor: an empty SparseTensor was used; give it indices, values and a dense_shape");
}

}  // namespace
}  // namespace reel
