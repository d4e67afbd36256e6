// Options of attention: bias, mask, window, offset, one dim of queries and keys, computed biases.
#include <cmath>
#include <limits>

#include "reel/frontend/layers/attention.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

/// Returns attention of one entry by loops. bias(i, j) is added to the products; -infinity hides.
template <class Bias>
std::vector<double> by_loops(const std::vector<double>& q, const std::vector<double>& k,
                             const std::vector<double>& v, int queries, int keys, int features,
                             const Bias& bias) {
  std::vector<double> result;
  for (int i = 0; i < queries; ++i) {
    std::vector<double> weights;
    double total = 0;
    for (int j = 0; j < keys; ++j) {
      double score = bias(i, j);
      for (int f = 0; f < features; ++f)
        score += q[static_cast<std::size_t>(i * features + f)] *
                 k[static_cast<std::size_t>(j * features + f)] / std::sqrt(features);
      weights.push_back(std::exp(score));
      total += weights.back();
    }
    for (int f = 0; f < features; ++f) {
      double sum = 0;
      for (int j = 0; j < keys; ++j)
        if (weights[static_cast<std::size_t>(j)] > 0)
          sum += weights[static_cast<std::size_t>(j)] / total *
                 v[static_cast<std::size_t>(j * features + f)];
      result.push_back(sum);
    }
  }
  return result;
}

class AttentionOptionsTest : public InEveryMode {
 protected:
  AttentionOptionsTest() { manual_seed(11); }

  static constexpr int kQueries = 4, kKeys = 7, kFeatures = 3;
  const Dim time = Dim("time", kQueries), keys = Dim("keys", kKeys), f = Dim("f", kFeatures);
  const Tensor q = random_normal({time, f}, f64), k = random_normal({keys, f}, f64),
               v = random_normal({keys, f}, f64);

  template <class Bias>
  std::vector<double> expected(const Bias& bias) const {
    return by_loops(values_of(q), values_of(k), values_of(v), kQueries, kKeys, kFeatures, bias);
  }
  /// Expects first and second derivatives of a loss of a tree of tensors.
  template <class F, class Tree>
  void expect_derivatives(const F& loss, const Tree& at) {
    expect_gradient_of(loss, at, run(grad(loss))(at), 1e-6);
    const auto slope = [loss](const Tree& at) {
      const Tree slopes = grad(loss)(at);
      Tensor sum_of_squares = scalar(0.0, f64);
      for (const Tensor& x : tensors_of(flatten(slopes)))
        sum_of_squares = sum_of_squares + sum(square(mask_padding(x)));
      return sum_of_squares;
    };
    expect_gradient_of(slope, at, run(grad(slope))(at), 1e-5);
  }
};

TEST_P(AttentionOptionsTest, BiasIsAddedToTheScaledProducts) {
  const Tensor bias = random_normal({keys, time}, f64);
  const std::vector<double> b = values_of(bias);
  const auto loss_of = [this](int block) {
    return [this, block](const std::array<Tensor, 4>& x) -> Tensor {
      return sum(
          sin(attention(x[0], x[1], x[2], keys, f, {.block = block, .bias = std::optional(x[3])})));
    };
  };
  for (const int block : {2, 128}) {
    const Tensor y = run([&](const Tensor& q, const Tensor& bias) {
      return attention(q, k, v, keys, f, {.block = block, .bias = bias});
    })(q, bias);
    expect_values(
        y, expected([&](int i, int j) { return b[static_cast<std::size_t>(j * kQueries + i)]; }),
        1e-12);
    expect_derivatives(loss_of(block), std::array<Tensor, 4>{q, k, v, bias});
  }
  // A bias of the queries alone changes nothing, and its gradient is 0.
  const Tensor per_query = random_normal({time}, f64);
  const auto loss = [&](const Tensor& bias) {
    return sum(sin(attention(q, k, v, keys, f, {.block = 2, .bias = bias})));
  };
  expect_all_close(loss(per_query), sum(sin(attention(q, k, v, keys, f))), 1e-12);
  expect_values(run(grad(loss))(per_query), {0, 0, 0, 0}, 1e-12);
}

TEST_P(AttentionOptionsTest, MaskHidesKeysOfABatchWithRaggedKeys) {
  const Dim batch("batch", 2), ragged("keys", tensor({5, 2}, {batch}));
  const Tensor q = random_normal({batch, time, f}, f64);
  const Tensor k = where(mask(ragged), random_normal({batch, ragged, f}, f64), kNan);
  const Tensor v = where(mask(ragged), random_normal({batch, ragged, f}, f64), kNan);
  const Tensor hidden =
      tensor({{true, false, true, true, false}, {false, true, true, true, true}}, {batch, ragged});
  const Tensor y = run([&](const Tensor& q, const Tensor& hidden) {
    return attention(q, k, v, ragged, f, {.block = 2, .mask = hidden});
  })(q, hidden);
  const int lengths[] = {5, 2};
  const std::vector<double> all_q = values_of(q), all_k = values_of(k), all_v = values_of(v),
                            all_y = values_of(y);
  const bool seen[2][5] = {{true, false, true, true, false}, {false, true, true, true, true}};
  for (std::size_t b = 0; b < 2; ++b) {
    const auto entry = [&](const std::vector<double>& x, std::size_t of) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(b * of * kFeatures);
      return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(of * kFeatures));
    };
    const std::vector<double> alone =
        by_loops(entry(all_q, kQueries), entry(all_k, 5), entry(all_v, 5), kQueries, lengths[b],
                 kFeatures, [&](int, int j) { return seen[b][j] ? 0 : -kInf; });
    const std::vector<double> here = entry(all_y, kQueries);
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], alone[i], 1e-12);
  }
  const auto loss = [&](const Tensor& q) {
    return sum(sin(attention(q, k, v, ragged, f, {.block = 2, .mask = hidden})));
  };
  expect_gradient_of(loss, q, run(grad(loss))(q));
}

TEST_P(AttentionOptionsTest, WindowSeesNeighbouringKeysOnly) {
  for (const int block : {1, 3, 128}) {
    const auto near = [&](const Tensor& q) {
      return attention(q, k, v, keys, f, {.block = block, .queries = time, .window = 1});
    };
    expect_values(run(near)(q),
                  expected([](int i, int j) { return std::abs(i - j) <= 1 ? 0 : -kInf; }), 1e-12);
    const auto behind = [&](const Tensor& q) {
      return attention(q, k, v, keys, f, {.causal = time, .block = block, .window = 2});
    };
    expect_values(run(behind)(q),
                  expected([](int i, int j) { return j <= i && i - j <= 2 ? 0 : -kInf; }), 1e-12);
    const auto loss = [&](const std::array<Tensor, 3>& x) {
      return sum(
          sin(attention(x[0], x[1], x[2], keys, f, {.causal = time, .block = block, .window = 2})));
    };
    expect_derivatives(loss, std::array<Tensor, 3>{q, k, v});
  }
}

TEST_P(AttentionOptionsTest, OffsetOfEachQueryIsItsPosition) {
  const auto f_of = [&](const Tensor& q, const Tensor& at) {
    return attention(q, k, v, keys, f, {.block = 2, .offset = at, .window = 1});
  };
  const int places[] = {5, 0, 2, 9};
  expect_values(run(f_of)(q, tensor({5, 0, 2, 9}, {time})),
                expected([&](int i, int j) { return std::abs(places[i] - j) <= 1 ? 0 : -kInf; }),
                1e-12);
}

TEST_P(AttentionOptionsTest, OffsetContinuesASequenceOfEachEntry) {
  const Dim batch("batch", 2);
  const Tensor q = random_normal({batch, time, f}, f64), k = random_normal({batch, keys, f}, f64),
               v = random_normal({batch, keys, f}, f64);
  const auto y = run([&](const Tensor& q, const Tensor& k, const Tensor& offset) {
    return attention(q, k, v, keys, f, {.causal = time, .block = 2, .offset = offset});
  });
  const Tensor several = y(q, k, tensor({2, 0}, {batch}));
  for (int b = 0; b < 2; ++b) {
    const Tensor alone = attention(q.at(b), k.at(b), v.at(b), keys, f,
                                   {.causal = time, .offset = scalar(b == 0 ? 2 : 0)});
    expect_all_close(several.at(b), alone, 1e-12);
    const std::vector<double> by =
        by_loops(values_of(q.at(b)), values_of(k.at(b)), values_of(v.at(b)), kQueries, kKeys,
                 kFeatures, [&](int i, int j) { return j <= i + (b == 0 ? 2 : 0) ? 0 : -kInf; });
    expect_values(alone, by, 1e-12);
  }
}

TEST_P(AttentionOptionsTest, QueriesAndKeysMayHaveOneDim) {
  const Dim batch("batch", 3), both("time", tensor({4, 0, 2}, {batch}));
  const auto noisy = [&] { return where(mask(both), random_normal({batch, both, f}, f64), kNan); };
  const Tensor q = noisy(), k = noisy(), v = noisy();
  const Dim other("keys", tensor({4, 0, 2}, {batch}));
  const auto own = [&](const std::array<Tensor, 3>& x) {
    return attention(x[0], x[1], x[2], both, f, {.causal = both, .block = 2});
  };
  const Tensor y = run(own)(std::array<Tensor, 3>{q, k, v});
  EXPECT_TRUE(contains(y.dims(), both));
  const Tensor expected = attention(q, rename(k, both, other), rename(v, both, other), other, f,
                                    {.causal = both, .block = 2});
  expect_all_close(mask_padding(y), mask_padding(expected), 1e-13);
  const auto loss = [&](const std::array<Tensor, 3>& x) { return sum(sin(own(x))); };
  const auto clean = [](std::array<Tensor, 3> x) {
    for (Tensor& of : x) of = mask_padding(of);
    return x;
  };
  const std::array<Tensor, 3> all{q, k, v};
  expect_gradient_of(loss, clean(all), clean(run(grad(loss))(all)));
}

/// A bias table[head, distance], as relative positions have.
struct Table {
  Tensor values;
  Dim distance = 0;
};

TEST_P(AttentionOptionsTest, ComputedBiasSeesPositionsAndGivesGradients) {
  const Dim head("head", 2), distance("distance", 5);
  const Table table{random_normal({head, distance}, f64), distance};
  const Tensor q = random_normal({head, time, f}, f64);
  const auto of = [&](const Table& table) {
    return attention_bias(table, [&](const Table& table, const AttentionBlock& at) {
      const Dims both{time, at.block};
      const Tensor away = expand(at.keys, both) - expand(at.queries, both);
      return gather(table.values, clip(away, -2, 2) + 2, table.distance);
    });
  };
  const std::vector<double> b = values_of(table.values);
  for (const int block : {2, 128}) {
    const Tensor y = run([&](const Tensor& q, const Table& table) {
      return attention(q, k, v, keys, f, {.block = block, .queries = time, .bias_of = of(table)});
    })(q, table);
    for (int h = 0; h < 2; ++h)
      expect_values(
          y.at(h),
          by_loops(values_of(q.at(h)), values_of(k), values_of(v), kQueries, kKeys, kFeatures,
                   [&](int i, int j) {
                     return b[static_cast<std::size_t>(h * 5 + std::clamp(j - i, -2, 2) + 2)];
                   }),
          1e-12);
    const auto loss = [&](const std::pair<Tensor, Table>& x) {
      return sum(sin(attention(x.first, k, v, keys, f,
                               {.block = block, .queries = time, .bias_of = of(x.second)})));
    };
    expect_derivatives(loss, std::pair{q, table});
  }
}

TEST_P(AttentionOptionsTest, ComputedBooleansHideKeys) {
  const auto even = attention_bias(None{}, [&](const None&, const AttentionBlock& at) {
    const Dims both{time, at.block};
    return expand(at.keys % 2 == 0, both);
  });
  const auto y = [&](const Tensor& q) {
    return attention(q, k, v, keys, f, {.block = 3, .queries = time, .bias_of = even});
  };
  expect_values(run(y)(q), expected([](int, int j) { return j % 2 == 0 ? 0 : -kInf; }), 1e-12);
  const auto loss = [&](const Tensor& q) { return sum(sin(y(q))); };
  expect_gradient_of(loss, q, run(grad(loss))(q));
}

TEST_P(AttentionOptionsTest, EntriesUnderVmapHaveTheirOwnOffsets) {
  const Dim batch("batch", 3);
  const Tensor q = random_normal({batch, time, f}, f64);
  const Tensor offset = tensor({0, 3, 1}, {batch});
  const Tensor y = run([&](const Tensor& q, const Tensor& offset) {
    return vmap(
        [&](const std::pair<Tensor, Tensor>& x) {
          return attention(x.first, k, v, keys, f,
                           {.causal = time, .block = 2, .offset = x.second});
        },
        batch)(std::pair{q, offset});
  })(q, offset);
  expect_all_close(y, attention(q, k, v, keys, f, {.causal = time, .block = 2, .offset = offset}),
                   1e-12);
}

REEL_IN_EVERY_MODE(AttentionOptionsTest);

TEST(AttentionOptionsErrorTest, NamesTheOption) {
  const Dim t("t", 2), s("s", 3), f("f", 2), head("head", 2);
  const Tensor q = zeros({t, f}), k = zeros({s, f});
  EXPECT_EQ(message_of<ShapeError>([&] {
              attention(q, k, k, s, f, {.bias = zeros({head, t})});
            }),
            "attention: bias f32[head=2,t=2] has the dim head=2, which neither q nor k has; they "
            "have t=2, s=3");
  EXPECT_EQ(message_of<DTypeError>([&] {
              attention(q, k, k, s, f, {.mask = zeros({t, s})});
            }),
            "attention: mask must be boolean, got f32[t=2,s=3]; a mask of 0 and "
            "1: mask != 0; numbers to add, as 0 and -inf: option bias");
  EXPECT_EQ(message_of<DTypeError>([&] { attention(q, k, k, s, f, {.bias = zeros({t}, f64)}); }),
            "attention: bias must have the dtype of q, f32, got f64[t=2]");
  EXPECT_EQ(message_of<ArgumentError>([&] { attention(q, k, k, s, f, {.window = -1}); }),
            "attention: window must not be negative, got -1");
  EXPECT_EQ(message_of<DTypeError>(
                [&] { attention(q, k, k, s, f, {.causal = t, .offset = scalar(1.5, f32)}); }),
            "attention: offset must be i32 or i64, got f32[]");
}

TEST(AttentionOptionsErrorTest, OffsetsLackTheDimAlongWhichPositionsCount) {
  const Dim batch("batch", 3), t("t", 2), s("s", 4), f("f", 2);
  const Tensor q = zeros({batch, t, f}), k = zeros({batch, s, f}), each = zeros({batch, t}, i32);
  for (const AttentionOptions& options :
       {AttentionOptions{.causal = t, .offset = each}, {.queries = t, .offset = each, .window = 1}})
    EXPECT_EQ(message_of<ShapeError>([&] { attention(q, k, k, s, f, options); }),
              "attention: offset i32[batch=3,t=2] has the dim t=2, along which positions count "
              "from it; give it dims of entries only, or hide keys of other positions by a mask");
}

TEST(AttentionOptionsErrorTest, WindowsNeedPositionsOfQueries) {
  const Dim batch("batch", 3), t("t", 2), s("s", 4), f("f", 2);
  const Tensor q = zeros({batch, t, f}), k = zeros({batch, s, f}), one = zeros({batch, f});
  const std::string unknown =
      "attention: window counts from the position of a query, which is not known; give queries, "
      "the dim of q along which positions count, or offset, a position for each query";
  const auto of = [&](const Tensor& q, const AttentionOptions& options) {
    return message_of<ArgumentError>([&] { attention(q, k, k, s, f, options); });
  };
  EXPECT_EQ(of(q, {.window = 1}), unknown + " over the dims that only q has, t=2");
  EXPECT_EQ(of(q, {.offset = zeros({batch}, i32), .window = 1}),
            unknown + " over the dims that only q has, t=2");
  EXPECT_EQ(of(one, {.window = 1}), unknown);
  const Tensor keys_of_one = zeros({s, f});
  const auto row = [&](const Tensor& q) {
    return attention(q, keys_of_one, keys_of_one, s, f, {.window = 1});
  };
  EXPECT_EQ(message_of<ArgumentError>([&] { vmap(row, t)(zeros({t, f})); }), unknown);
}

TEST(AttentionOptionsErrorTest, ComputedBiasesThatReadUnknownPositionsTellTheRepair) {
  const Dim t("t", 2), s("s", 4), f("f", 2);
  const Tensor q = zeros({t, f}), k = zeros({s, f});
  const auto away = attention_bias(None{}, [](const None&, const AttentionBlock& at) {
    return cast(at.keys - at.queries, f32);
  });
  EXPECT_NE(
      message_of<ArgumentError>([&] { attention(q, k, k, s, f, {.bias_of = away}); })
          .find("AttentionBlock::queries is empty, because attention does not know the positions "
                "of queries; give it queries, the dim of q along which they count, or offset, a "
                "position for each query"),
      std::string::npos);
  const auto of_keys = attention_bias(
      None{}, [](const None&, const AttentionBlock& at) { return cast(at.keys, f32); });
  expect_all_close(attention(q, k, k, s, f, {.bias_of = of_keys}),
                   attention(q, k, k, s, f, {.bias = range(s, f32)}), 1e-6);
}

}  // namespace
}  // namespace reel
