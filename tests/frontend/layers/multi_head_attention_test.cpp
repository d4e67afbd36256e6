// MultiHeadAttention: numbers of plain loops, steps and chunks against the whole, memories;
// encodings of positions.
#include "reel/frontend/layers/multi_head_attention.h"

#include <cmath>
#include <limits>

#include "reel/frontend/layers/attention.h"
#include "reel/frontend/layers/positions.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr PositionEncoding kAllPositions[] = {PositionEncoding::none, PositionEncoding::rotary,
                                              PositionEncoding::alibi, PositionEncoding::relative,
                                              PositionEncoding::transformer_xl};

class MultiHeadAttentionTest : public InEveryMode {
 protected:
  MultiHeadAttentionTest() { manual_seed(21); }

  const Dim batch = Dim("batch", 3), model = Dim("model", 8);
  const Dim time = Dim("time", tensor({5, 0, 2}, {batch}));

  Tensor noisy() const { return where(mask(time), random_normal({batch, time, model}, f64), kNan); }
  /// Returns a layer in which every parameter has an effect.
  MultiHeadAttention layer_of(MultiHeadAttentionOptions options, std::int64_t heads = 4) const {
    options.dtype = f64;
    options.max_distance = 2;
    MultiHeadAttention layer = MultiHeadAttention::init(model, heads, options);
    for (Linear* linear : {&layer.query, &layer.key, &layer.value, &layer.out})
      if (linear->bias) linear->bias = random_normal(linear->bias->dims(), f64);
    if (layer.xl) {
      layer.xl->content = random_normal(layer.xl->content.dims(), f64);
      layer.xl->position = random_normal(layer.xl->position.dims(), f64);
    }
    return layer;
  }
};

/// Returns the layer's result for one entry x [time, model], by loops over heads and pairs.
std::vector<double> by_loops(const MultiHeadAttention& layer, const std::vector<double>& x,
                             std::size_t steps) {
  const auto sizes = [](const Dim& dim) { return static_cast<std::size_t>(dim.size()); };
  const std::size_t n = sizes(layer.model), key_heads = sizes(layer.key_heads),
                    group = sizes(layer.group), f = sizes(layer.features);
  const auto project = [&](const Linear& linear, const std::vector<double>& of) {
    const std::vector<double> w = values_of(linear.weight), b = values_of(*linear.bias);
    const std::size_t in = sizes(linear.in), out = sizes(linear.out);
    std::vector<double> result;
    for (std::size_t t = 0; t < steps; ++t)
      for (std::size_t o = 0; o < out; ++o) {
        double sum = b[o];
        for (std::size_t i = 0; i < in; ++i) sum += of[t * in + i] * w[i * out + o];
        result.push_back(sum);
      }
    return result;
  };
  std::vector<double> q = project(layer.query, x), k = project(layer.key, x),
                      v = project(layer.value, x);
  const auto rotate = [&](std::vector<double>& of, std::size_t heads) {
    for (std::size_t t = 0; t < steps; ++t)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < f / 2; ++i) {
          const double angle =
              static_cast<double>(t) *
              std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(f));
          double &a = of[(t * heads + h) * f + i], &b = of[(t * heads + h) * f + i + f / 2];
          const double a0 = a, b0 = b;
          a = a0 * std::cos(angle) - b0 * std::sin(angle);
          b = b0 * std::cos(angle) + a0 * std::sin(angle);
        }
  };
  const std::size_t heads = key_heads * group;
  if (layer.positions == PositionEncoding::rotary) rotate(q, heads), rotate(k, key_heads);
  std::vector<double> joined;
  for (std::size_t i = 0; i < steps; ++i)
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t kh = h / group;
      std::vector<double> weights;
      double total = 0;
      for (std::size_t j = 0; j < steps; ++j) {
        const int away = static_cast<int>(j) - static_cast<int>(i);
        double score = 0;
        for (std::size_t c = 0; c < f; ++c) {
          double of_query = q[(i * heads + h) * f + c], of_key = k[(j * key_heads + kh) * f + c];
          if (layer.positions == PositionEncoding::relative)
            of_key += values_of(
                *layer.relative)[static_cast<std::size_t>(std::clamp(away, -2, 2) + 2) * f + c];
          if (layer.xl) {
            double r = 0;
            for (std::size_t s = 0; s < n; ++s) {
              const double angle = -away * std::pow(10000.0, -2.0 * static_cast<double>(s / 2) /
                                                                 static_cast<double>(n));
              r += (s % 2 ? std::cos(angle) : std::sin(angle)) *
                   values_of(layer.xl->weight)[(s * heads + h) * f + c];
            }
            score += (of_query + values_of(layer.xl->position)[h * f + c]) * r;
            of_query += values_of(layer.xl->content)[h * f + c];
          }
          score += of_query * of_key;
        }
        score /= std::sqrt(static_cast<double>(f));
        if (layer.positions == PositionEncoding::alibi)
          score -= std::pow(2.0, -8.0 * static_cast<double>(h + 1) / static_cast<double>(heads)) *
                   std::abs(away);
        const bool is_seen =
            (!layer.is_causal || away <= 0) && (!layer.window || std::abs(away) <= *layer.window);
        weights.push_back(is_seen ? std::exp(score) : 0);
        total += weights.back();
      }
      for (std::size_t c = 0; c < f; ++c) {
        double sum = 0;
        for (std::size_t j = 0; j < steps; ++j)
          sum += weights[j] / total * v[(j * key_heads + kh) * f + c];
        joined.push_back(sum);
      }
    }
  return project(layer.out, joined);
}

TEST_P(MultiHeadAttentionTest, NumbersAreThoseOfLoopsForEachEntry) {
  const Tensor x = noisy();
  const std::vector<double> in = values_of(x);
  const std::size_t lengths[] = {5, 0, 2};
  for (const PositionEncoding positions : kAllPositions)
    for (const bool is_causal : {false, true})
      for (const int key_heads : {4, 2}) {
        MultiHeadAttentionOptions options{
            .is_causal = is_causal, .key_heads = key_heads, .positions = positions};
        if (key_heads == 2) options.window = 2;
        const MultiHeadAttention layer = layer_of(options);
        const Tensor y = run([&](const MultiHeadAttention& layer, const Tensor& x) {
          return layer(x, time);
        })(layer, x);
        EXPECT_EQ(y.dims(), (Dims{batch, time, model}));
        const std::vector<double> out = values_of(y);
        for (std::size_t b = 0; b < 3; ++b) {
          const std::vector<double> alone(in.begin() + static_cast<std::ptrdiff_t>(b * 40),
                                          in.begin() + static_cast<std::ptrdiff_t>(b * 40 + 40));
          const std::vector<double> expected = by_loops(layer, alone, lengths[b]);
          for (std::size_t i = 0; i < expected.size(); ++i)
            EXPECT_NEAR(out[b * 40 + i], expected[i], 1e-11);
        }
      }
}

TEST_P(MultiHeadAttentionTest, StepsGiveTheNumbersOfTheWholeSequence) {
  const Tensor x = noisy();
  const Dim cache("cache", 6);
  for (const PositionEncoding positions : kAllPositions) {
    const MultiHeadAttention layer =
        layer_of({.is_causal = true, .key_heads = 2, .positions = positions, .capacity = cache});
    const Tensor whole = layer(x, time);
    const auto recurred = run([&](const MultiHeadAttention& layer, const Tensor& x) {
      const auto made = recur(layer, x, time);
      return std::pair{transpose(made.outputs, {batch, time, model}), made.state.size};
    })(layer, x);
    expect_all_close(mask_padding(recurred.first), mask_padding(whole), 1e-12);
    expect_values(recurred.second, {5, 0, 2});
    const auto loss = [&](const MultiHeadAttention& layer) { return sum(sin(layer(x, time))); };
    const auto loss_of_steps = [&](const MultiHeadAttention& layer) {
      return sum(sin(recur(layer, x, time).outputs));
    };
    const Tensors a = tensors_of(flatten(run(grad(loss))(layer))),
                  b = tensors_of(flatten(run(grad(loss_of_steps))(layer)));
    for (std::size_t i = 0; i < a.size(); ++i) expect_all_close(b[i], a[i], 1e-10);
  }
}

TEST_P(MultiHeadAttentionTest, PromptsOfSeveralLengthsAreContinued) {
  const Dim cache("cache", 8), rest("rest", 3), whole("whole", tensor({8, 3, 5}, {batch}));
  const Tensor prompt = noisy(), next = random_normal({batch, rest, model}, f64);
  for (const PositionEncoding positions : {PositionEncoding::rotary, PositionEncoding::relative}) {
    const MultiHeadAttention layer = layer_of({.is_causal = true, .positions = positions});
    const auto y = run([&](const MultiHeadAttention& layer, const Tensor& prompt) {
      auto [first, state] = layer(prompt, time, layer.initial_state({batch}, cache));
      auto [second, after] = layer(next, rest, state);
      return std::tuple{first, second, after.size};
    })(layer, prompt);
    expect_values(std::get<2>(y), {8, 3, 5});
    const Tensor all = layer(concat({prompt, next}, time, whole), whole);
    for (int b = 0; b < 3; ++b) {
      const int length = b == 0 ? 5 : b == 1 ? 0 : 2;
      for (int t = 0; t < 3; ++t)
        expect_all_close(std::get<1>(y).at(b).at(t), all.at(b).at(length + t), 1e-12);
    }
    expect_all_close(mask_padding(std::get<0>(y)), mask_padding(layer(prompt, time)), 1e-12);
  }
}

TEST_P(MultiHeadAttentionTest, AFullCacheIsAnIndexError) {
  const Dim cache("cache", 2);
  const MultiHeadAttention layer = layer_of({.is_causal = true});
  const Tensor x = random_normal({batch, model}, f64);
  const auto three = run([&](const MultiHeadAttention& layer, const Tensor& x) {
    auto state = layer.initial_state({batch}, cache);
    Tensor y;
    for (int i = 0; i < 3; ++i) std::tie(y, state) = layer(x, std::move(state));
    return y;
  });
  EXPECT_THROW(three(layer, x), IndexError);
}

TEST_P(MultiHeadAttentionTest, MemoriesMayHaveOtherFeaturesAndLengths) {
  const Dim heard("heard", tensor({3, 4, 0}, {batch})), sound("sound", 6);
  const Tensor memory = where(mask(heard), random_normal({batch, heard, sound}, f64), kNan);
  const Tensor x = noisy();
  const MultiHeadAttention layer = layer_of({.key_heads = 2, .memory = sound}, 2);
  const auto attend = [&](const MultiHeadAttention& layer, const Tensor& x) {
    return layer(x, layer.of(memory, heard));
  };
  const Tensor y = run(attend)(layer, x);
  EXPECT_EQ(y.dims(), (Dims{batch, time, model}));
  // One position at a time, as a decoder's step does.
  const Tensor each = run([&](const MultiHeadAttention& layer, const Tensor& x) {
    const auto prepared = layer.of(memory, heard);
    return map([&](const Tensor& x) { return layer(x, prepared); }, x, {.spatial_dim = time});
  })(layer, x);
  expect_all_close(mask_padding(transpose(each, {batch, time, model})), mask_padding(y), 1e-12);
  const auto loss = [&](const MultiHeadAttention& layer) { return sum(sin(attend(layer, x))); };
  expect_gradient_of(loss, layer, run(grad(loss))(layer), 1e-6);
}

TEST_P(MultiHeadAttentionTest, GradientsAreDerivatives) {
  const Tensor x = noisy();
  for (const PositionEncoding positions :
       {PositionEncoding::rotary, PositionEncoding::relative, PositionEncoding::transformer_xl}) {
    const MultiHeadAttention layer = layer_of({.positions = positions}, 2);
    const auto loss = [&](const MultiHeadAttention& layer) { return sum(sin(layer(x, time))); };
    expect_gradient_of(loss, layer, run(grad(loss))(layer), 1e-6);
  }
}

REEL_IN_EVERY_MODE(MultiHeadAttentionTest);

TEST(MultiHeadAttentionCacheTest, StepsWriteItInPlace) {
  const Dim batch("batch", 2), model("model", 4), cache("cache", 3);
  const MultiHeadAttention layer = MultiHeadAttention::init(model, 2, {.is_causal = true});
  auto state = layer.initial_state({batch}, cache);
  const float* before = state.keys.data<float>();
  const Tensor x = random_normal({batch, model});
  state = layer(x, std::move(state)).second;
  EXPECT_EQ(state.keys.data<float>(), before);
  // A copy of the state keeps its cache.
  const auto copy = state;
  const std::vector<double> kept = values_of(copy.keys);
  state = layer(x, std::move(state)).second;
  EXPECT_EQ(values_of(copy.keys), kept);
}

TEST(PositionsTest, SinusoidsInterleaveSinesAndCosines) {
  const Dim time("time", 3), feature("feature", 4);
  std::vector<double> expected;
  for (int t = 0; t < 3; ++t)
    for (const double rate : {1.0, 0.01}) {
      expected.push_back(std::sin(t * rate));
      expected.push_back(std::cos(t * rate));
    }
  const Tensor y = sinusoidal_positions(time, feature, f64);
  EXPECT_EQ(y.type(), TensorType(f64, {time, feature}));
  expect_values(y, expected, 1e-14);
}

TEST(PositionsTest, SlopesOfHeadsAreThoseOfThePaper) {
  expect_values(alibi_slopes(Dim("heads", 4), f64), {0.25, 0.0625, 1.0 / 64, 1.0 / 256});
  expect_values(alibi_slopes(Dim("heads", 3), f64), {1.0 / 16, 1.0 / 256, 0.25});
}

TEST(PositionsTest, ErrorsNameTheFunction) {
  const Dim time("time", 3), feature("feature", 3);
  EXPECT_EQ(message_of<ArgumentError>([&] {
              rotary(zeros({time, feature}), feature, range(time));
            }),
            "rotary: the size of feature=3 must be even");
  EXPECT_EQ(message_of<ShapeError>([&] { rotary(zeros({feature}), feature, range(time)); }),
            "rotary: x f32[feature=3] lacks the dim time=3 of positions i32[time=3]");
}

TEST(MultiHeadAttentionErrorTest, NamesTheOption) {
  const Dim model("model", 6), batch("batch", 2);
  EXPECT_EQ(message_of<ArgumentError>([&] { MultiHeadAttention::init(model, 4); }),
            "MultiHeadAttention: 4 heads do not divide model model=6");
  EXPECT_EQ(
      message_of<ArgumentError>([&] { MultiHeadAttention::init(model, 6, {.key_heads = 4}); }),
      "MultiHeadAttention: 4 key_heads do not divide 6 heads");
  const MultiHeadAttention layer = MultiHeadAttention::init(model, 2);
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.initial_state({batch}); }),
            "MultiHeadAttention: the number of positions in the state is not known; give init the "
            "option capacity, or initial_state a Dim");
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { layer(zeros({model}), layer.initial_state({}, Dim("cache", 2))); }),
            "MultiHeadAttention: steps need a causal layer; give init is_causal = true");
}

}  // namespace
}  // namespace reel
