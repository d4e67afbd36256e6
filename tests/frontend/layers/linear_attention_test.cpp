// linear_attention: against loops over numbers, in steps, over lengths.
#include "reel/frontend/layers/linear_attention.h"

#include <cmath>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using LinearAttentionTest = InEveryMode;
REEL_IN_EVERY_MODE(LinearAttentionTest);

struct Sizes {
  Dim batch{"batch", 2}, time{"time", 4}, feature{"feature", 3}, value{"value", 2};
};

struct Inputs {
  Tensor q, k, v, state, decay, beta;
};
Inputs make_inputs(const Sizes& at, const Dim& time) {
  manual_seed(81);
  return {cast(random_normal({at.batch, time, at.feature}), f64),
          cast(random_normal({at.batch, time, at.feature}), f64),
          cast(random_normal({at.batch, time, at.value}), f64),
          cast(random_normal({at.batch, at.feature, at.value}), f64),
          cast(random_normal({at.batch, time, at.feature}), f64) * 0.3,
          cast(random_uniform({at.batch, time}), f64)};
}

/// Returns y [batch, time, value], then the state [batch, feature, value], by loops.
std::pair<std::vector<double>, std::vector<double>> by_loops(const Inputs& in,
                                                             const std::vector<int>& lengths,
                                                             bool decays, bool corrects) {
  const auto numbers = [](const Tensor& x) { return x.to_vector<double>(); };
  const std::vector<double> q = numbers(in.q), k = numbers(in.k), v = numbers(in.v),
                            decay = numbers(in.decay), beta = numbers(in.beta);
  std::vector<double> s = numbers(in.state), y(16);
  for (int b = 0; b < 2; ++b)
    for (int t = 0; t < lengths[static_cast<std::size_t>(b)]; ++t) {
      const auto row = static_cast<std::size_t>(b * 4 + t);
      double* const own = &s[static_cast<std::size_t>(b) * 6];
      for (std::size_t f = 0; f < 3; ++f)
        for (std::size_t w = 0; w < 2; ++w)
          if (decays) own[f * 2 + w] *= std::exp(decay[row * 3 + f]);
      for (std::size_t w = 0; w < 2; ++w) {
        double recalled = 0;
        for (std::size_t f = 0; f < 3; ++f) recalled += own[f * 2 + w] * k[row * 3 + f];
        const double u = corrects ? beta[row] * (v[row * 2 + w] - recalled) : v[row * 2 + w];
        for (std::size_t f = 0; f < 3; ++f) own[f * 2 + w] += k[row * 3 + f] * u;
        for (std::size_t f = 0; f < 3; ++f)
          y[row * 2 + w] += own[f * 2 + w] * q[row * 3 + f] / std::sqrt(3.0);
      }
    }
  return {y, s};
}

LinearAttentionOptions options_of(const Inputs& in, bool decays, bool corrects) {
  LinearAttentionOptions options;
  if (decays) options.decay = in.decay;
  if (corrects) options.beta = in.beta;
  return options;
}

TEST_P(LinearAttentionTest, HasTheNumbersOfLoopsByEachRule) {
  const Sizes at;
  const Inputs in = make_inputs(at, at.time);
  for (const auto& [decays, corrects] : std::vector<std::pair<bool, bool>>{
           {false, false}, {true, false}, {false, true}, {true, true}}) {
    const auto [y, state] = run([&](const Inputs& in) {
      const auto [y, state] = linear_attention(in.q, in.k, in.v, at.time, at.feature, in.state,
                                               options_of(in, decays, corrects));
      return std::pair{transpose(y, Axes{at.batch, at.time, at.value}), state};
    })(in);
    const auto [expected, last] = by_loops(in, {4, 4}, decays, corrects);
    expect_values(y, expected, 1e-12);
    expect_values(state, last, 1e-12);
  }
}

TEST_P(LinearAttentionTest, StepsHaveTheNumbersOfTheSequence) {
  const Sizes at;
  const Inputs in = make_inputs(at, at.time);
  const auto [whole, last] =
      linear_attention(in.q, in.k, in.v, at.time, at.feature, in.state, options_of(in, true, true));
  Tensor state = in.state;
  for (int t = 0; t < 4; ++t) {
    const auto now = [&](const Tensor& x) { return gather(x, scalar(t), at.time); };
    const auto [y, next] = run([&](const Tensor& state) {
      return linear_attention_step(now(in.q), now(in.k), now(in.v), at.feature, state,
                                   {.decay = now(in.decay), .beta = now(in.beta)});
    })(state);
    expect_all_close(y, now(whole), 1e-12);
    state = next;
  }
  expect_all_close(state, last, 1e-12);
}

TEST_P(LinearAttentionTest, EntriesFinishApartAndPaddingDoesNotCount) {
  const Sizes at;
  const Dim time("time", tensor({4, 2}, {at.batch}));
  const Inputs plain = make_inputs(at, at.time);
  Inputs in = plain;
  const auto with_padding = [&](const Tensor& x) {
    Dims dims = x.dims();
    for (Dim& dim : dims)
      if (dim == at.time) dim = time;
    return mask_padding(reshape(x, dims), std::nan(""));
  };
  for (Tensor* x : {&in.q, &in.k, &in.v, &in.decay, &in.beta}) *x = with_padding(*x);
  const auto [y, state] = run([&](const Inputs& in) {
    const auto [y, state] =
        linear_attention(in.q, in.k, in.v, time, at.feature, in.state, options_of(in, true, true));
    return std::pair{mask_padding(transpose(y, Axes{at.batch, time, at.value})), state};
  })(in);
  const auto [expected, last] = by_loops(plain, {4, 2}, true, true);
  expect_values(y, expected, 1e-12);
  expect_values(state, last, 1e-12);
}

TEST_P(LinearAttentionTest, DerivativesAgreeWithDifferences) {
  const Sizes at;
  const Inputs in = make_inputs(at, at.time);
  const Tensors x{in.q, in.k, in.v, in.state, in.decay, in.beta};
  const auto loss = [&](const Tensors& x) {
    const auto [y, state] = linear_attention(x[0], x[1], x[2], at.time, at.feature, x[3],
                                             {.decay = x[4], .beta = x[5]});
    return sum(square(y)) + sum(state * state * state);
  };
  expect_gradient_of(loss, x, run(grad(loss))(x), 1e-6);
  const auto slope = [&](const Tensors& x) {
    Tensor total = scalar(0, f64);
    for (const Tensor& g : grad(loss)(x)) total = total + sum(square(g));
    return total;
  };
  expect_gradient_of(slope, x, run(grad(slope))(x), 1e-4);
}

TEST_P(LinearAttentionTest, HeadsOfQueriesShareAState) {
  const Sizes at;
  const Dim heads("heads", 2);
  const Inputs in = make_inputs(at, at.time);
  const Tensor q = cast(random_normal({at.batch, heads, at.time, at.feature}), f64);
  const Tensor together = run([&](const Tensor& q) {
    return linear_attention(q, in.k, in.v, at.time, at.feature, in.state).first;
  })(q);
  for (int h = 0; h < 2; ++h)
    expect_all_close(
        gather(together, scalar(h), heads),
        linear_attention(gather(q, scalar(h), heads), in.k, in.v, at.time, at.feature, in.state)
            .first,
        1e-12);
}

TEST_P(LinearAttentionTest, ASequenceWithoutElementsReturnsItsState) {
  const Sizes at;
  const Dim none("time", 0);
  const Inputs in = make_inputs(at, none);
  const auto [y, state] = run([&](const Inputs& in) {
    return linear_attention(in.q, in.k, in.v, none, at.feature, in.state,
                            {.decay = in.decay, .beta = in.beta});
  })(in);
  EXPECT_EQ(y.numel(), 0);
  expect_same_bits(state, in.state);
}

TEST(LinearAttentionErrorTest, NamesTheRoleAndItsDims) {
  const Sizes at;
  const Tensor q = ones({at.time, at.feature}), v = ones({at.time, at.value}),
               state = ones({at.feature, at.value});
  EXPECT_EQ(message_of<ShapeError>(
                [&] { linear_attention(q, q, v, at.time, at.feature, ones({at.feature})); }),
            "linear_attention: the state f32[feature=3] has no dim value=2");
  EXPECT_EQ(message_of<ShapeError>([&] { linear_attention(q, q, q, at.time, at.feature, state); }),
            "linear_attention: v f32[time=4,feature=3] has the dim of features, feature=3; give "
            "it another name");
  EXPECT_EQ(message_of<DTypeError>(
                [&] { linear_attention(q, q, cast(v, f64), at.time, at.feature, state); }),
            "linear_attention: v is f64[time=4,value=2], but q is f32; q, k, v, the state and the "
            "options need one floating dtype");
  EXPECT_EQ(message_of<ShapeError>([&] {
              linear_attention_step(ones({at.feature}), ones({at.feature}), ones({at.value}),
                                    at.feature, state, {.beta = ones({at.time})});
            }),
            "linear_attention: beta f32[time=4] has the dim time=4; its dims must be among "
            "value=2");
}

}  // namespace
}  // namespace reel
