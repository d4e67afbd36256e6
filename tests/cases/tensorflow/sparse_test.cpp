// IndexedSlices and SparseTensor as state of tf.while_loop: values, gradients, shape invariants.
#include <gtest/gtest.h>

#include "reel/tests/cases/derivatives.h"

namespace reel {
namespace {

using TensorFlowSparse = DerivativesInEveryMode;
REEL_IN_EVERY_MODE(TensorFlowSparse);

// ---- Gradients ----------------------------------------------------------------------------------

TEST_P(TensorFlowSparse, G32_ALoopCarriesIndexedSlices) {
  const auto f = [](const Tensors& x) {
    const IndexedSlices start{x[0], tensor({0, 3}), tensor({10}, {}, i64)};
    const auto [i, slices] = while_loop(
        [](const Tensor& i, const IndexedSlices&) { return i < 10; },
        [](const Tensor& i, const IndexedSlices& s) {
          return std::tuple{i + 1, IndexedSlices{s.values * 2., s.indices, s.dense_shape}};
        },
        std::tuple{0, start});
    return sum(slices.values);
  };
  expect_derivatives(f, {tensor({2., 4.})}, 2048 + 4096, {{1024, 1024}});
}

TEST_P(TensorFlowSparse, G32_IndexedSlicesMadeWhole) {
  const auto f = [](const Tensors& x) {
    const auto body = [](const IndexedSlices& s) {
      return IndexedSlices{s.values * 2., s.indices, s.dense_shape};
    };
    const auto last = fori_loop(
        0, 10, [&](const Tensor&, const IndexedSlices& s) { return body(s); },
        IndexedSlices{x[0], tensor({3, 3}), tensor({5}, {}, i64)});
    return sum(square(to_dense(last)));
  };
  expect_derivatives(f, {tensor({0.5, 1.5})}, 2048. * 2048, {{2 * 2048 * 1024, 2 * 2048 * 1024}});
}

TEST_P(TensorFlowSparse, G32_ALoopCarriesASparseTensor) {
  const auto f = [](const Tensors& x) {
    const SparseTensor start{tensor({{0}, {3}}, {}, i64), x[0], tensor({10}, {}, i64)};
    const auto [i, last] = while_loop(
        [](const Tensor& i, const SparseTensor&) { return i < 10; },
        [](const Tensor& i, const SparseTensor& s) {
          return std::tuple{i + 1, SparseTensor{s.indices, s.values * 2., s.dense_shape}};
        },
        std::tuple{0, start});
    return sum(last.values);
  };
  expect_derivatives(f, {tensor({2., 4.})}, 2048 + 4096, {{1024, 1024}});
}

TEST_P(TensorFlowSparse, G33_RowsOfALoopsResultHaveTheirDerivative) {
  const auto f = [](const Tensors& x) {
    const EmbeddingTable last(repeat(
        2, [](const Tensor& v) { return v * v; }, x[0]));
    return sum(gather(last, tensor({0})));
  };
  expect_derivatives(f, {tensor({2.})}, 16, {{32}});
}

TEST_P(TensorFlowSparse, G33_ATableThatALoopChangesHasAWholeGradient) {
  const auto f = [](const EmbeddingTable& table) {
    const Tensor last = repeat(
        2, [](const Tensor& v) { return v * v; }, table.dense());
    return sum(gather(last, tensor({0}), 0));
  };
  const auto gradient = run(grad(f))(EmbeddingTable(tensor({2., 3.})));
  EXPECT_FALSE(gradient.is_sparse());
  expect_values(gradient.dense(), {32, 0});
}

// ---- Shape invariants ---------------------------------------------------------------------------

/// Calls body five times on a state.
template <class State, class Body>
State five_times(const State& state, const Body& body, const WhileOptions& options = {}) {
  return std::get<1>(while_loop([](const Tensor& i, const State&) { return i < 5; },
                                [&](const Tensor& i, const State& s) {
                                  return std::tuple{i + 1, body(s)};
                                },
                                std::tuple{0, state}, options));
}

SparseTensor two_of_ten() {
  return {tensor({{0}, {3}}, {}, i64), tensor({2., 4.}), tensor({10}, {}, i64)};
}
SparseTensor doubled(const SparseTensor& s) { return {s.indices, s.values * 2., s.dense_shape}; }
SparseTensor with_more(const SparseTensor& s) {
  return {concat({s.indices, tensor({{1}, {3}}, {}, i64)}, 0), concat({s.values, ones({2})}, 0),
          s.dense_shape};
}

TEST_P(TensorFlowSparse, P08_ASparseTensorKeepsItsRankAndMayGainElements) {
  const auto same = run([](const SparseTensor& s) { return five_times(s, doubled); });
  expect_values(same(two_of_ten()).values, {64, 128});
  const auto grows = run([](const SparseTensor& s) { return five_times(s, with_more); });
  expect_values(to_dense(grows(two_of_ten())), {2, 5, 0, 9, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(grows(two_of_ten()).values.numel(), 12);
}

TEST_P(TensorFlowSparse, P08_ItsInvariantIsTheShapeOfItsDenseShape) {
  const auto with = [&](const PartialShape& shape, auto body) {
    return run([=](const SparseTensor& s) {
      return five_times(s, body, {.shape_invariants = {std::nullopt, shape}, .name = "sparse"});
    });
  };
  for (const PartialShape& shape :
       {PartialShape{1}, PartialShape{unknown}, PartialShape::unknown_rank()})
    expect_values(with(shape, with_more)(two_of_ten()).dense_shape, {10});
  EXPECT_EQ(message_of<ShapeError>([&] { with({5}, doubled)(two_of_ten()); }).substr(0, 70),
            "while_loop \"sparse\": initial values do not match their shape invariant");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              with({10, 2}, doubled)(two_of_ten());
            }),
            "while_loop \"sparse\": the shape invariant of a SparseTensor is the shape of its "
            "dense_shape, a vector, as in PartialShape{2} for matrices; got [10,2]");
}

TEST_P(TensorFlowSparse, P08_ARankThatChangesNeedsAnInvariant) {
  const auto body = [](const SparseTensor& s) {
    return SparseTensor{concat({s.indices, s.indices}, 1), s.values,
                        concat({s.dense_shape, s.dense_shape}, 0)};
  };
  const auto with = [&](const WhileOptions& options) {
    return run([=](const SparseTensor& s) { return five_times(s, body, options); });
  };
  const auto last = with({.shape_invariants = {std::nullopt, PartialShape{unknown}}})(two_of_ten());
  EXPECT_EQ(last.indices.numel(), 64);
  EXPECT_EQ(last.dense_shape.numel(), 32);
  EXPECT_NE(message_of<ShapeError>([&] {
              with({})(two_of_ten());
            }).find("state.1.dense_shape: i64[1] going in, i64[2] coming out"),
            std::string::npos);
}

IndexedSlices two_of_ten_rows() {
  return {tensor({{2., 4.}, {3., 5.}}), tensor({0, 3}), tensor({10, 2})};
}
IndexedSlices with_rows(const IndexedSlices& s) {
  return {concat({s.values, ones({1, 2})}, 0), concat({s.indices, tensor({3})}, 0), s.dense_shape};
}

TEST_P(TensorFlowSparse, P09_TheInvariantOfIndexedSlicesIsThatOfTheirValues) {
  const auto with = [&](const PartialShape& shape) {
    return run([=](const IndexedSlices& s) {
      return five_times(s, with_rows, {.shape_invariants = {std::nullopt, shape}, .name = "rows"});
    });
  };
  const auto last = with({unknown, 2})(two_of_ten_rows());
  EXPECT_EQ(last.indices.numel(), 7);
  expect_values(gather(to_dense(last), tensor({0, 3}), 0), {2, 4, 8, 10});
  EXPECT_NE(message_of<ShapeError>([&] {
              with({2, 2})(two_of_ten_rows());
            }).find("state.1.values: f32[2,2] going in, f32[3,2] coming out"),
            std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] {
              with({unknown, 3})(two_of_ten_rows());
            }).find("state.1.values: f32[2,2], shape invariant [?,3]"),
            std::string::npos);
}

TEST_P(TensorFlowSparse, P09_WithoutOneTheNumberOfRowsStays) {
  const auto f = run([](const IndexedSlices& s) { return five_times(s, with_rows); });
  EXPECT_NE(message_of<ShapeError>([&] { f(two_of_ten_rows()); }).find("state.1.values"),
            std::string::npos);
  const auto same = run([](const IndexedSlices& s) {
    return five_times(s, [](const IndexedSlices& s) {
      return IndexedSlices{s.values * 2., s.indices, s.dense_shape};
    });
  });
  expect_values(same(two_of_ten_rows()).values, {64, 128, 96, 160});
}

TEST_P(TensorFlowSparse, P09_EachCountsOnce) {
  const auto f = run([](const IndexedSlices& s) {
    return five_times(s, with_rows, {.shape_invariants = {{}, {}, {}, {}}, .name = "rows"});
  });
  EXPECT_EQ(message_of<ArgumentError>([&] { f(two_of_ten_rows()); }),
            "while_loop \"rows\": shape_invariants has 4 entries, but the state has 2 tensors, an "
            "IndexedSlices or a SparseTensor counted once; give one entry for each, std::nullopt "
            "for the default");
}

}  // namespace
}  // namespace reel
