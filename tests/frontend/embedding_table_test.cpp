#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Model {
  EmbeddingTable words;
  Tensor output;
};

Model small_model() {
  return {EmbeddingTable(tensor({{1., 2.}, {3., 4.}, {5., 6.}, {7., 8.}}, {}, f64)),
          tensor({0.5, -2.}, {}, f64)};
}

using EmbeddingTableTest = InEveryMode;
REEL_IN_EVERY_MODE(EmbeddingTableTest);

Tensor score(const Model& model, const Tensor& ids) {
  return sum(square(gather(model.words, ids)) * model.output);
}

TEST_P(EmbeddingTableTest, GradientIsTheRowsThatWereRead) {
  const auto gradient = run(grad(score))(small_model(), tensor({2, 0, 2}));
  ASSERT_TRUE(gradient.words.is_sparse());
  expect_values(gradient.words.slices().indices, {2, 0, 2});
  expect_values(gradient.words.slices().values, {5, -24, 1, -8, 5, -24});
  expect_values(gradient.words.slices().dense_shape, {4, 2});
  expect_values(gradient.words.to_dense(), {1, -8, 0, 0, 10, -48, 0, 0});
  expect_values(gradient.output, {1 + 50, 4 + 72});
}

TEST_P(EmbeddingTableTest, AScanReadsRowsStepByStep) {
  const auto loss = [](const Model& model, const Tensor& ids) {
    return scan(Scan{.initial = scalar(1.0, f64),
                     .xs = ids,
                     .body =
                         [&](const Tensor& id, const Tensor& s) {
                           const Tensor row = gather(model.words, id);
                           return std::pair{None{}, s + sum(row * row * model.output) * s};
                         }})
        .state;
  };
  const Tensor ids = tensor({{2, 0}, {3, 3}, {0, 1}});
  const auto gradient = run(grad(loss))(small_model(), ids);
  ASSERT_TRUE(gradient.words.is_sparse());
  expect_values(gradient.words.slices().indices, {2, 0, 3, 3, 0, 1});
  const auto whole = [&](const Tensor& words) {
    return loss({EmbeddingTable(words), small_model().output}, ids);
  };
  expect_values(gradient.words.to_dense(), values_of(grad(whole)(small_model().words.dense())));
}

}  // namespace
}  // namespace reel
