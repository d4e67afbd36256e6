// attention, against softmax over the whole matrix; DropoutCell and bidirectional_stack.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class AttentionTest : public InEveryMode {
 protected:
  AttentionTest() { manual_seed(5); }
  static Tensor whole(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& keys,
                      const Dim& features, const std::optional<Dim>& causal) {
    Tensor s = matmul(q, k, features) / std::sqrt(static_cast<double>(features.size()));
    if (causal) {
      const Dims both{*causal, keys};
      const Tensor seen =
          less_equal(expand(range(keys, i32), both), expand(range(*causal, i32), both));
      s = where(expand(seen, s.dims()), s, -1e30);
    }
    return matmul(softmax(s, keys), v, keys);
  }
  template <class Q>
  void expect_as_whole(const Q& q, const Tensor& k, const Tensor& v, const Dim& keys,
                       const Dim& features, const std::optional<Dim>& causal, std::int64_t block) {
    using In = std::array<Tensor, 3>;
    const In in{q, k, v};
    const auto streamed = [=](const In& x) -> Tensor {
      return attention(x[0], x[1], x[2], keys, features, {.causal = causal, .block = block});
    };
    const auto plain = [=](const In& x) -> Tensor {
      return whole(x[0], x[1], x[2], keys, features, causal);
    };
    const Tensor y = streamed(in);
    expect_all_close(run(streamed)(in), mask_padding(transpose(plain(in), Axes(y.dims()))), 1e-10);
    const auto loss = [](const auto& f) {
      return [f](const In& x) -> Tensor { return sum(sin(mask_padding(f(x)))); };
    };
    const auto slope = [](const auto& f) {
      return [f](const In& x) -> Tensor {
        const In g = grad(f)(x);
        return sum(square(g[0])) + sum(square(mask_padding(g[1]))) +
               sum(square(mask_padding(g[2])));
      };
    };
    const In expected = grad(loss(plain))(in), actual = run(grad(loss(streamed)))(in);
    const In second = grad(slope(loss(plain)))(in), again = run(grad(slope(loss(streamed))))(in);
    for (std::size_t i = 0; i < 3; ++i) {
      expect_all_close(mask_padding(actual[i]), mask_padding(expected[i]), 1e-9);
      expect_all_close(mask_padding(again[i]), mask_padding(second[i]), 1e-8);
    }
  }
};

TEST_P(AttentionTest, IsTheSoftmaxOverAllKeysInAnyBlocks) {
  const Dim time("time", 5), keys("keys", 7), f("f", 3), out("out", 2);
  const Tensor q = random_normal({time, f}, f64), k = random_normal({keys, f}, f64),
               v = random_normal({keys, out}, f64);
  for (const int block : {1, 3, 128}) expect_as_whole(q, k, v, keys, f, std::nullopt, block);
}

TEST_P(AttentionTest, KeysMayBeRaggedAndOrderCausal) {
  const Dim batch("batch", 3), heads("heads", 2), time("time", 4), f("f", 3), out("out", 2);
  const Dim keys("keys", tensor({4, 1, 2}, {batch}));
  const Tensor q = random_normal({batch, heads, time, f}, f64),
               k = random_normal({batch, heads, keys, f}, f64),
               v = random_normal({batch, heads, keys, out}, f64);
  expect_as_whole(q, k, v, keys, f, std::nullopt, 2);
  expect_as_whole(q, k, v, keys, f, time, 2);
}

TEST_P(AttentionTest, PaddingAndMissingKeysNeverCount) {
  const Dim batch("batch", 2), f("f", 1), keys("keys", tensor({0, 1}, {batch}));
  const Tensor q = ones({batch, f}, f64);
  const Tensor k = tensor({NAN, 2.0}, {batch, keys, f}, f64),
               v = tensor({NAN, 5.0}, {batch, keys}, f64);
  const auto g = [=](const Tensor& q) -> Tensor { return sum(attention(q, k, v, keys, f)); };
  expect_values(run([=](const Tensor& q) { return attention(q, k, v, keys, f); })(q), {0, 5});
  expect_values(run(grad(g))(q), {0, 0});
}

TEST(AttentionErrorTest, NamesTheTensorAndTheDim) {
  const Dim t("t", 2), s("s", 2), f("f", 2);
  EXPECT_EQ(message_of<ShapeError>([&] {
              attention(zeros({t, f}), zeros({s}), zeros({s}), s, f);
            }),
            "attention: k f32[s=2] has no dim f=2");
}

TEST_P(AttentionTest, DropoutStandsBetweenLayersAndLeavesStates) {
  const Dim batch("batch", 2), time("time", 3), in("in", 2), hidden("hidden", 3), top("top", 2);
  const LstmCell a = LstmCell::init(in, hidden), b = LstmCell::init(hidden, top);
  const Tensor x = random_normal({batch, time, in});
  auto stack = stack_cells(with_dropout(a, 0.5), b);
  set_training(stack, false);
  expect_all_close(run([=](const Tensor& x) { return recur(stack, x, time).outputs; })(x),
                   recur(stack_cells(a, b), x, time).outputs);
  set_training(stack, true);
  const auto dropped = recur(stack, x, time);
  expect_all_close(std::get<0>(dropped.state).h, recur(a, x, time).state.h);
}

TEST_P(AttentionTest, BidirectionalLayersStandOnBothDirections) {
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch})), in("in", 2),
      hidden("hidden", 3);
  const Dim both("both", 6), out("out", 6);
  using Layer = std::pair<LstmCell, LstmCell>;
  const std::vector<Layer> layers{{LstmCell::init(in, hidden), LstmCell::init(in, hidden)},
                                  {LstmCell::init(both, hidden), LstmCell::init(both, hidden)}};
  const Tensor x = random_normal({batch, time, in});
  const Tensor low =
      bidirectional(layers[0].first, layers[0].second, x, time, {.out = both}).outputs;
  const auto high = bidirectional(layers[1].first, layers[1].second, low, time, {.out = out});
  const auto f = [=](const Tensor& x) {
    return bidirectional_stack(layers, x, time, {.out = out}).outputs;
  };
  expect_all_close(run(f)(x), high.outputs);
  const auto states = bidirectional_stack(layers, x, time, {.out = out});
  ASSERT_EQ(states.forward.size(), 2u);
  expect_all_close(states.backward[1].h, high.backward.h);
  EXPECT_EQ(message_of<ArgumentError>([&] { bidirectional_stack(std::vector<Layer>(), x, time); }),
            "bidirectional_stack: takes at least one layer");
}

REEL_IN_EVERY_MODE(AttentionTest);

}  // namespace
}  // namespace reel
