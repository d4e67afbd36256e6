// Dims in a loop's state, as in RETURNN's decoders: growing histories, and caches of keys and
// values.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using ReturnnDims = InEveryMode;
REEL_IN_EVERY_MODE(ReturnnDims);

const float kNan = std::numeric_limits<float>::quiet_NaN();

struct History {
  Tensor step, h;
  Dim hist;
};

TEST_P(ReturnnDims, Case11_StateGrowsAlongItsDim) {
  const Dim batch("batch", 3);
  const Dim time("time", tensor({3, 2, 1}, {batch}));
  const Tensor x = tensor({1, 2, 3, 4, 5, 6, 7, 8, 9}, {batch, time}, f32);
  const auto f = run([](const Tensor& x) {
    const Dim batch = x.dims()[0], time = x.dims()[1], hist("hist", scalar(0));
    const History s = while_loop([](const History& s) { return s.step < 3; },
                                 [&](const History& s) {
                                   auto [h, d] = cum_concat(gather(x, s.step, time), s.h, s.hist);
                                   return History{s.step + 1, h, d};
                                 },
                                 History{scalar(0), zeros({batch, hist}), hist});
    return std::tuple{sum(s.h, s.hist), s.hist.lengths(), s.h, s.hist};
  });
  const auto [sums, size, h, hist] = f(x);
  expect_values(sums, {6, 15, 24});
  expect_values(size, {3});
  EXPECT_EQ(h.dims(), (Dims{batch, hist}));
}

struct Cache {
  Tensor h;
  Dim hist;
};

/// Appends each frame to a history; y is the history's sum.
auto scan_histories(const Tensor& x, const Dim& hist) {
  const Dim batch = x.dims()[0], time = x.dims()[1];
  return scan(Scan{.spatial_dim = time,
                   .initial = Cache{zeros({batch, hist}, x.dtype()), hist},
                   .xs = x,
                   .body = [](const Tensor& x, const Cache& s) {
                     auto [h, hist] = cum_concat(x, s.h, s.hist);
                     return std::pair{sum(h, hist), Cache{h, hist}};
                   }});
}

const std::vector<double> kFrames{1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST_P(ReturnnDims, Case39_SharedKeyValueCacheGrowsInAScan) {
  const Dim batch("batch", 3), time("time", tensor({3, 2, 1}, {batch}));
  const Tensor x = cast(tensor(kFrames, {batch, time}), f32);
  const auto check = [&](auto make_hist) {
    const auto f = run([&](const Tensor& x) {
      const auto [ys, s, dim] = scan_histories(x, make_hist());
      return std::tuple{transpose(ys, {x.dims()[0], dim}), s.h, s.hist};
    });
    const auto [ys, h, hist] = f(x);
    expect_values(ys, {1, 3, 6, 4, 9, 0, 7, 0, 0});
    EXPECT_EQ(hist.size(), 3);
    EXPECT_FALSE(hist.is_ragged());
    EXPECT_EQ(h.dims(), (Dims{batch, hist}));
    expect_values(h, kFrames);
  };
  check([] { return Dim("hist", 0); });
  check([] { return Dim("hist", scalar(0)); });
}

TEST_P(ReturnnDims, Case39_KeyValueCacheHasTheLengthOfEachEntry) {
  const Dim batch("batch", 3), time("time", tensor({3, 2, 1}, {batch}));
  const auto f = run([](const Tensor& x) {
    const Dim hist("hist", zeros({x.dims()[0]}, i32));
    const auto [ys, s, dim] = scan_histories(x, hist);
    return std::tuple{transpose(ys, {x.dims()[0], dim}), s.h, s.hist};
  });
  for (const Tensor& x :
       {cast(tensor(kFrames, {batch, time}), f32),
        tensor({1.f, 2.f, 3.f, 4.f, 5.f, kNan, 7.f, kNan, kNan}, {batch, time})}) {
    const auto [ys, h, hist] = f(x);
    expect_values(ys, {1, 3, 6, 4, 9, 0, 7, 0, 0});
    expect_values(hist.lengths(), {3, 2, 1});
    EXPECT_EQ(h.dims(), (Dims{batch, hist}));
    expect_values(h, {1, 2, 3, 4, 5, 0, 7, 0, 0});
  }
}

TEST_P(ReturnnDims, Case39_GradientsOfCachesAreDerivatives) {
  const Dim batch("batch", 3), time("time", tensor({3, 2, 1}, {batch}));
  const auto check = [&](auto make_hist) {
    const auto loss = [&](const Tensor& x) {
      const auto [ys, s, dim] = scan_histories(x * x, make_hist(x.dims()[0]));
      return sum(square(ys));
    };
    const Tensor x = tensor(kFrames, {batch, time}) * 0.1;
    const Tensor dx = run(grad(loss))(x);
    expect_gradient_of(loss, x, dx, 1e-6);
    const auto norm = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
    expect_gradient_of(norm, x, run(grad(norm))(x), 1e-5);
    const double nan = kNan;
    const Tensor padded =
        tensor(std::vector<double>{.1, .2, .3, .4, .5, nan, .7, nan, nan}, {batch, time});
    expect_all_close(mask_padding(run(grad(loss))(padded)), dx, 1e-12);
  };
  check([](const Dim&) { return Dim("hist", 0); });
  check([](const Dim& batch) { return Dim("hist", zeros({batch}, i32)); });
}

struct Attention {
  Tensor q, k, v, out;  // [in, head, key]
};
struct KeysAndValues {
  Tensor k, v;
  Dim hist;
};

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& keys,
              const Dim& inner) {
  return matmul(softmax(matmul(q, k, inner), keys), v, keys);
}

/// Computes the whole sequence at once: each frame sees itself and the frames before it.
Tensor attend_to_all(const Attention& a, const Tensor& x) {
  const Dim time = x.dims()[1], in = x.dims()[2], inner = a.q.dims()[1];
  const Dim keys("keys", time.lengths());
  const Tensor k = rename(matmul(x, a.k, in), time, keys),
               v = rename(matmul(x, a.v, in), time, keys);
  const Tensor scores = matmul(matmul(x, a.q, in), k, inner);
  const Tensor causal = expand(range(keys), {time, keys}) <= expand(range(time), {time, keys});
  const Tensor weights = softmax(where(causal, scores, -1e9), keys);
  return matmul(matmul(weights, v, keys), a.out, inner);
}

Tensor attend_step_by_step(const Attention& a, const Tensor& x, const Dim& hist) {
  const Dim batch = x.dims()[0], time = x.dims()[1], in = x.dims()[2], inner = a.q.dims()[1];
  const auto [ys, s, dim] =
      scan(Scan{.spatial_dim = time,
                .initial = KeysAndValues{zeros({batch, hist, inner}, x.dtype()),
                                         zeros({batch, hist, inner}, x.dtype()), hist},
                .xs = x,
                .body = [&](const Tensor& x, const KeysAndValues& s) {
                  auto [k, more] = cum_concat(matmul(x, a.k, in), s.k, s.hist);
                  auto [v, same] = cum_concat(matmul(x, a.v, in), s.v, s.hist);
                  const Tensor y = attend(matmul(x, a.q, in), k, v, more, inner);
                  return std::pair{matmul(y, a.out, inner), KeysAndValues{k, v, more}};
                }});
  return transpose(ys, {batch, dim, ys.dims()[2]});
}

TEST_P(ReturnnDims, Case41_P9_StepwiseSelfAttentionEqualsCausalAttention) {
  const Dim batch("batch", 3), time("time", tensor({4, 2, 3}, {batch}));
  const Dim in("in", 3), inner("inner", 2), out("out", 3);
  manual_seed(1);
  const auto draw = [](const Dims& dims) { return random_normal(dims, f64); };
  const Attention a{draw({in, inner}), draw({in, inner}), draw({in, inner}), draw({inner, out})};
  const Tensor x = mask_padding(draw({batch, time, in}));
  const Tensor nan = mask_padding(x, kNan);
  const auto all = [&](const std::pair<Attention, Tensor>& ax) {
    return sum(square(mask_padding(attend_to_all(ax.first, ax.second))));
  };
  const auto check = [&](auto make_hist) {
    const auto steps = run([&](const Attention& a, const Tensor& x) {
      return attend_step_by_step(a, x, make_hist(x.dims()[0]));
    });
    expect_all_close(steps(a, x), mask_padding(attend_to_all(a, x)), 1e-9);
    expect_all_close(steps(a, nan), steps(a, x), 1e-12);
    const auto loss = [&](const std::pair<Attention, Tensor>& ax) {
      return sum(square(attend_step_by_step(ax.first, ax.second, make_hist(ax.second.dims()[0]))));
    };
    const auto [da, dx] = run(grad(loss))(std::pair{a, x});
    const auto [ea, ex] = grad(all)(std::pair{a, x});
    for (const auto& [d, e] : {std::pair{da.q, ea.q}, std::pair{da.k, ea.k}, std::pair{da.v, ea.v},
                               std::pair{da.out, ea.out}, std::pair{dx, ex}})
      expect_all_close(d, e, 1e-9);
    const auto [na, nx] = run(grad(loss))(std::pair{a, nan});
    expect_all_close(na.q, da.q, 1e-12);
    expect_all_close(na.k, da.k, 1e-12);
    expect_all_close(nx, dx, 1e-12);
  };
  check([](const Dim&) { return Dim("hist", 0); });
  check([](const Dim&) { return Dim("hist", scalar(0)); });
  check([](const Dim& batch) { return Dim("hist", zeros({batch}, i32)); });
}

struct Labels {
  Tensor step, score, labels;
  Dim count;
};

/// cond ends the entries, which get a label only in every other step. Each history has its own
/// length.
TEST_P(ReturnnDims, P14_LabelHistoriesOfEntriesThatFinishByCond) {
  const Dim batch("batch", 3);
  const auto decode = [](const Tensor& steps, const Tensor& x) {
    const Dim batch = steps.dims()[0], count("labels", zeros({batch}, i32));
    const auto [ys, s, dim] = scan(
        Scan{.cond_dims = {batch},
             .initial = Labels{scalar(0), zeros({batch}, f64), zeros({batch, count}, f64), count},
             .cond = [&](const Labels& s) { return s.step < steps; },
             .body =
                 [&](const Labels& s) {
                   const Tensor score = s.score + x / (cast(s.count.lengths(), f64) + 1.0);
                   auto [more, longer] = cum_concat(score, s.labels, s.count);
                   // A hypothesis has a label in every second step of its own.
                   const Tensor has_label = mod(s.step + range(batch), 2) < 1;
                   const Labels next = where_nested(has_label, Labels{s.step, score, more, longer},
                                                    Labels{s.step, score, s.labels, s.count});
                   return std::pair{sum(next.labels, next.count),
                                    Labels{s.step + 1, next.score, next.labels, next.count}};
                 },
             .max_seq_len = 5});
    return std::tuple{s, ys};
  };
  const Tensor steps = tensor({4, 2, 9}, {batch}), x = tensor({1., 10., 100.}, {batch}, f64);
  const auto [s, ys] = run(decode)(steps, x);
  expect_values(s.count.lengths(), {2, 1, 3});
  expect_values(mask_padding(s.labels), {1, 2, 0, 20, 0, 0, 100, 200, 800 / 3.}, 1e-9);
  EXPECT_EQ(s.labels.dims(), (Dims{batch, s.count}));
  const auto loss = [&](const Tensor& x) {
    const auto [s, ys] = decode(steps, x * x);
    return sum(square(s.labels)) + sum(ys);
  };
  expect_gradient_of(loss, x * 0.01, run(grad(loss))(x * 0.01));
}

}  // namespace
}  // namespace reel
