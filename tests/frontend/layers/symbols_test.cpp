// Symbols that Embedding and SparseEmbedding take: 0 to n - 1, in padding and finished entries any.
#include <limits>
#include <type_traits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

class SymbolsTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, time{"time", tensor({3, 0, 2}, {batch})};
  const Dim vocab{"vocab", 5}, feature{"feature", 2};

  Embedding whole() const { return {random_normal({vocab, feature}), vocab, feature}; }
  SparseEmbedding sparse() const {
    return {EmbeddingTable(random_normal({vocab, feature})), vocab, feature};
  }
  /// Symbols with this number in all padding.
  Tensor symbols(std::int32_t padding) const {
    const std::int32_t p = padding;
    return tensor(std::vector<std::int32_t>{1, 2, 3, p, p, p, 4, 0, p}, {batch, time});
  }
};
REEL_IN_EVERY_MODE(SymbolsTest);

TEST_P(SymbolsTest, NegativeOnesAreOutOfRange) {
  const Embedding table = whole();
  const SparseEmbedding rows = sparse();
  const auto look_up = run([](const Embedding& table, const Tensor& i) { return table(i); });
  const auto look_up_rows =
      run([](const SparseEmbedding& table, const Tensor& i) { return table(i); });
  EXPECT_EQ(message_of<IndexError>([&] { look_up(table, scalar(-1)); }),
            "Embedding: index -1 is out of range for axis vocab=5 of f32[vocab=5,feature=2], which "
            "has size 5");
  EXPECT_EQ(message_of<IndexError>([&] {
              look_up_rows(rows, tensor(std::vector<std::int64_t>{0, 1, -5}, {batch}));
            }),
            "SparseEmbedding: index -5 at [2] of i64[batch=3] is out of range for axis vocab=5 of "
            "f32[vocab=5,feature=2], which has size 5");
}

TEST_P(SymbolsTest, TheGradientOfRowsRefusesNegativeOnes) {
  const auto gradient = run(
      grad([](const SparseEmbedding& table, const Tensor& i) { return sum(square(table(i))); }));
  EXPECT_THROW(gradient(sparse(), tensor({0, 1, -2}, {batch})), IndexError);
}

TEST_P(SymbolsTest, EachRowOfVmapIsChecked) {
  const Embedding table = whole();
  const auto f = run([=, this](const Tensor& i) {
    return vmap([&](const Tensor& i) { return table(i); }, batch)(i);
  });
  const Tensor symbols = tensor({0, 4, 2}, {batch});
  expect_same_bits(f(symbols), table(symbols));
  EXPECT_THROW(f(tensor({0, 4, -1}, {batch})), IndexError);
}

/// A padding symbol with or without a row of its own has zeros, whatever the row contains.
TEST_P(SymbolsTest, PaddingSymbolsHaveZerosAndNoGradient) {
  const Tensor nan = scalar(std::numeric_limits<float>::quiet_NaN());
  const auto loss = [](const Embedding& table, const Tensor& i) {
    return sum(exp(table(i)) * 3.0);
  };
  for (const std::int64_t padding : {-1, 2, 99}) {
    Embedding table = whole();
    const Tensor is_padding = range(vocab, i64) == padding;
    const Tensor expected = where(is_padding, 0, table.weight);
    table.weight = where(is_padding, nan, table.weight);
    table.padding_symbol = padding;
    const auto p = static_cast<std::int32_t>(padding);
    const Tensor i = tensor(std::vector<std::int32_t>{1, p, 3, p, p, 7, 4, 0, -5}, {batch, time});
    const Tensor y =
        run([](const Embedding& table, const Tensor& i) { return table(i); })(table, i);
    const Tensor known = tensor({1, 0, 3, 0, 0, 0, 4, 0, 0}, {batch, time});
    expect_same_bits(mask_padding(y),
                     mask_padding(where(i == padding, 0, gather(expected, known, vocab))));
    const Tensor g = run(grad(loss))(table, i).weight;
    for (const std::int64_t row : {0, 1, 3, 4})
      expect_all_close(slice(g, vocab, row, row + 1),
                       3.0 * exp(slice(expected, vocab, row, row + 1)), 1e-5);
    expect_values(slice(g, vocab, 2, 3), {0, 0});
  }
}

TEST_P(SymbolsTest, APaddingSymbolMayBeAScalar) {
  Embedding table = whole();
  table.padding_symbol = -1;
  const auto look_up = run([](const Embedding& table, const Tensor& i) { return table(i); });
  expect_values(look_up(table, scalar(-1)), {0, 0});
  expect_same_bits(look_up(table, scalar(3)), gather(table.weight, scalar(3), vocab));
  EXPECT_THROW(look_up(table, tensor({1, -1, -2}, {batch})), IndexError);
}

TEST_P(SymbolsTest, RowsOfAPaddingSymbolStay) {
  SparseEmbedding table = SparseEmbedding::init(vocab, feature, {.padding_symbol = 0});
  expect_values(slice(table.weight.dense(), 0, 0, 1), {0, 0});
  const auto step = run([](SparseEmbedding table, const Tensor& i) {
    Adam adam(table);
    adam.update(table, grad([](const SparseEmbedding& table, const Tensor& i) {
                  return sum(exp(table(i)));
                })(table, i));
    return table;
  });
  const Tensor before = table.weight.dense();
  const Tensor after = step(table, tensor({0, 2, 0}, {batch})).weight.dense();
  for (const std::int64_t row : {0, 1, 3, 4})
    expect_same_bits(slice(after, 0, row, row + 1), slice(before, 0, row, row + 1));
  EXPECT_NE(values_of(slice(after, 0, 2, 3)), values_of(slice(before, 0, 2, 3)));
}

TEST(SymbolsTest, PaddingSymbolsOfRowsNeedARow) {
  const Dim vocab("vocab", 5), feature("feature", 2);
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { SparseEmbedding::init(vocab, feature, {.padding_symbol = -1}); }),
            "SparseEmbedding: padding_symbol -1 is no symbol of vocab=5; a gradient of rows needs "
            "a row for it");
  const Embedding table = Embedding::init(vocab, feature, {.padding_symbol = 3});
  expect_values(slice(table.weight, vocab, 3, 4), {0, 0});
  EXPECT_NE(values_of(slice(table.weight, vocab, 2, 3)),
            values_of(slice(table.weight, vocab, 3, 4)));
}

TEST_P(SymbolsTest, GatherCountsFromTheEnd) {
  const Embedding table = whole();
  const auto last = run([=](const Tensor& i) { return gather(table.weight, i, vocab); });
  expect_same_bits(last(scalar(-1)), table(scalar(4)));
  const auto last_row =
      run([](const EmbeddingTable& table, const Tensor& i) { return gather(table, i); });
  expect_same_bits(last_row(EmbeddingTable(table.weight), scalar(-1)), table(scalar(4)));
}

/// A sum over scans that read symbols: as slices, as vectors of slices, and as a state.
template <class Table>
Tensor read_in_loops(const Table& table, const Tensor& symbols) {
  const Dim batch = symbols.dim(0), time = symbols.dim(1);
  const Tensor zero = zeros({batch, table.feature});
  const auto of_symbol = [&](const Tensor& i, const Tensor& h) {
    const Tensor next = tanh(h + table(i));
    return std::pair{next, next};
  };
  const auto of_vector = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = tanh(h + x);
    return std::pair{next, next};
  };
  const auto of_state = [&](const Tensor& i, const std::pair<Tensor, Tensor>& s) {
    const Tensor next = tanh(s.first + table(s.second));
    return std::pair{next, std::pair{next, i}};
  };
  const auto a = scan(Scan{.spatial_dim = time, .initial = zero, .xs = symbols, .body = of_symbol});
  const auto b =
      scan(Scan{.spatial_dim = time, .initial = zero, .xs = table(symbols), .body = of_vector});
  const auto c = scan(Scan{.spatial_dim = time,
                           .initial = std::pair{zero, zeros({batch}, i32)},
                           .xs = symbols,
                           .body = of_state});
  return sum(square(a.state)) + sum(a.ys) + sum(b.ys) * 2 + sum(c.ys) + sum(table(symbols));
}

TEST_P(SymbolsTest, PaddingAndFinishedEntriesMayHoldAnything) {
  manual_seed(3);
  const auto check = [&](const auto& table) {
    using Table = std::decay_t<decltype(table)>;
    const auto f = run([](const Table& table, const Tensor& symbols) {
      auto [value, gradient] = value_and_grad(&read_in_loops<Table>)(table, symbols);
      return std::pair{value, with_dense_tables(gradient)};
    });
    const auto expected = f(table, symbols(0));
    for (const std::int32_t padding : {-1, -7, 1'000'000'000}) {
      const auto actual = f(table, symbols(padding));
      expect_same_bits(actual.first, expected.first);
      expect_same_bits(tensors_of(flatten(actual.second))[0],
                       tensors_of(flatten(expected.second))[0]);
    }
  };
  check(whole());
  check(sparse());
}

TEST_P(SymbolsTest, PaddingOfRowsMayHoldAnything) {
  const Embedding table = whole();
  const auto f = run([=](const Tensor& symbols) {
    return vmap([&](const Tensor& s) { return sum(table(s)); }, symbols.dim(0))(symbols);
  });
  const Tensor expected = f(symbols(0));
  for (const std::int32_t padding : {-1, -7, 1'000'000'000})
    expect_same_bits(f(symbols(padding)), expected);
}

}  // namespace
}  // namespace reel
