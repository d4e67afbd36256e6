// Gradients of embedding tables have the bits of eager mode, in modes that promise them.
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Model {
  EmbeddingTable words;
  Tensor output;
};

class EmbeddingTableBitsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(EmbeddingTableBitsTest);

TEST_P(EmbeddingTableBitsTest, RowsHaveTheBitsOfEagerMode) {
  if (!is_exact()) return;
  const Model at{EmbeddingTable(random_normal({50, 3})), random_normal({3})};
  const Tensor ids = cast(floor(random_uniform({40, 2}) * 50.), i32);
  const auto f = [](const Model& m, const Tensor& ids) {
    const auto step = [&](const Tensor& id, const Tensor& s) {
      return std::pair{None{}, tanh(s + sum(gather(m.words, id), 0) * m.output)};
    };
    return sum(scan(Scan{.initial = zeros({3}), .xs = ids, .body = step}).state);
  };
  const Model eager = grad(f)(at, ids), here = run(grad(f))(at, ids);
  expect_same_bits(here.words.slices().values, eager.words.slices().values);
  expect_same_bits(here.words.slices().indices, eager.words.slices().indices);
  expect_same_bits(here.words.to_dense(), eager.words.to_dense());
}

/// Gradients of rows are added behind the gradients of other reads. A body once added them in each
/// iteration.
TEST_P(EmbeddingTableBitsTest, ATableReadWholeAndByRowsHasTheBitsOfEagerMode) {
  if (!is_exact()) return;
  const Model at{EmbeddingTable(random_normal({6, 3})), random_normal({3})};
  const Tensor ids = cast(floor(random_uniform({40, 2}) * 6.), i32);
  const auto next = [](const Model& m, const Tensor& id, const Tensor& s) {
    const Tensor scores = matmul(m.words.dense(), s);  // tied: the table is the output layer too
    return tanh(s + sum(gather(m.words, id), 0) * m.output + mean(scores));
  };
  const auto along = [](const Tensor& ids, const auto& step) {
    return sum(scan(Scan{.initial = ones({3}), .xs = ids, .body = step}).state);
  };
  const auto expect_bits = [&](const auto& f) {
    const Model eager = grad(f)(at, ids), here = run(grad(f))(at, ids);
    EXPECT_FALSE(eager.words.is_sparse());
    expect_same_bits(here.words.dense(), eager.words.dense());
    if (is_eager()) return;
    const auto traced = jit(f, options_of(GetParam()));
    const auto under_tape = [&](const Model& m) { return traced(m, ids); };
    expect_same_bits(grad(under_tape)(at).words.dense(), eager.words.dense());
  };
  expect_bits([&](const Model& m, const Tensor& ids) {
    return along(ids, [&](const Tensor& id, const Tensor& s) {
      return std::pair{None{}, next(m, id, s)};
    });
  });
  expect_bits([&](const Model& m, const Tensor& ids) {
    return along(ids, [&](const Tensor& id, const Tensor& s) {
      const Tensor by_rows = sum(gather(m.words, id), 0);
      return std::pair{None{}, cond(
                                   sum(id) % 2 == 0, [&] { return tanh(s + by_rows); },
                                   [&] { return next(m, id, s); })};
    });
  });
  expect_bits([&](const Model& m, const Tensor& ids) {
    return along(ids, [&](const Tensor& id, const Tensor& s) {
      return std::pair{None{}, cond(
                                   sum(id) % 2 == 0, [&] { return next(m, id, s); },
                                   [&] { return s * sum(gather(m.words, id)); })};
    });
  });
}

}  // namespace
}  // namespace reel
