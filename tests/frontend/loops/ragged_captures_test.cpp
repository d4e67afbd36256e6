// Scans over a ragged dim: their bodies read captured tensors with another ragged dim, such as the
// keys of attention. Each entry must have the results and gradients that it has alone.
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using In = std::vector<Tensor>;  // xs, keys, w
/// Returns the next state. The dims of entries may be missing from all arguments but w.
using Step =
    std::function<Tensor(const Tensor& x, const Tensor& h, const Tensor& keys, const Tensor& w)>;

Tensor element(const Tensor& x, const Dim& dim, int i) { return gather(x, scalar(i, i32), dim); }
Tensor turned(const Tensor& h, const Tensor& w) {
  return rename(matmul(h, w, w.dims()[0]), w.dims()[1], w.dims()[0]);
}

Tensor attends(const Tensor& x, const Tensor& h, const Tensor& keys, const Tensor& w) {
  const Dim source = keys.dim("source"), hidden = w.dims()[0];
  const Tensor scores = matmul(keys, h, hidden);
  return tanh(x + matmul(softmax(scores, source), keys, source) + turned(h, w));
}
/// Divides by values that only valid keys keep away from zero.
Tensor divides(const Tensor& x, const Tensor& h, const Tensor& keys, const Tensor& w) {
  const Dim source = keys.dim("source");
  return tanh(turned(h, w) / sum(square(keys), source) + x * mean(keys * h, source));
}
/// Reads the lengths of the keys.
Tensor counts(const Tensor& x, const Tensor& h, const Tensor& keys, const Tensor& w) {
  const Dim source = keys.dim("source");
  const Tensor count = cast(source.lengths(), f64);
  return tanh(max(keys + h, source) / count + element(cumsum(keys, source), source, 0) * x +
              turned(h, w));
}
/// A loop over the keys in each iteration.
Tensor folds(const Tensor& x, const Tensor& h, const Tensor& keys, const Tensor& w) {
  const auto step = [&](const Tensor& s, const Tensor& key) { return tanh(s + key * h); };
  return foldl(step, keys, turned(h, w) + x, {.spatial_dim = keys.dim("source")});
}

class RaggedCapturesTest : public InEveryMode {
 protected:
  static constexpr double kTolerance = 1e-10;
  struct Lengths {
    std::vector<int> time, source;
  };
  const Dim hidden{"hidden", 3}, next{"next", 3};

  /// Returns arguments with NaN in all padding, and in all keys of entries without time steps.
  In arguments(const Lengths& lengths, bool entries_first = true) const {
    manual_seed(3);
    const Dim batch("batch", std::ssize(lengths.time));
    const Dim time("time", tensor(lengths.time, {batch})),
        source("source", tensor(lengths.source, {batch}));
    Tensor keys = random_normal({batch, source, hidden}, f64) + 0.3;
    keys = where(expand(time.lengths() > 0, keys.dims()), keys, NAN);
    if (!entries_first) keys = transpose(keys, {source, batch, hidden});
    return {mask_padding(random_normal({time, batch, hidden}, f64), NAN), mask_padding(keys, NAN),
            random_normal({hidden, next}, f64) * 0.4};
  }

  static std::function<Tensor(const In&)> loss(const Step& step, const Checkpoint& policy = {}) {
    return [=](const In& in) {
      const Tensor &xs = in[0], &keys = in[1], &w = in[2];
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor made = step(x, h, keys, w);
        return std::pair{made * h, made};
      };
      const auto result = scan(Scan{.spatial_dim = xs.dim("time"),
                                    .initial = full({xs.dim("batch"), xs.dim("hidden")}, 0.2, f64),
                                    .xs = xs,
                                    .body = body,
                                    .checkpoint = policy});
      return sum(square(result.ys)) + sum(result.state);
    };
  }
  /// Computes the same entry by entry, without padding.
  std::function<Tensor(const In&)> alone(const Step& step, const Lengths& lengths) const {
    return [=, this](const In& in) {
      Tensor total = scalar(0.0, f64);
      const Dim batch = in[0].dim("batch"), time = in[0].dim("time"), source = in[1].dim("source");
      const Tensor by_entry = transpose(in[1], {batch, source, hidden});
      for (int b = 0; b < static_cast<int>(lengths.time.size()); ++b) {
        Tensor h = full({hidden}, 0.2, f64);
        const Dim own("source", lengths.source[b]);
        Tensors rows;
        for (int s = 0; s < lengths.source[b]; ++s)
          rows.push_back(element(element(by_entry, source, s), batch, b));
        for (int t = 0; t < lengths.time[b]; ++t) {
          const Tensor made =
              step(element(element(in[0], time, t), batch, b), h, stack(rows, own), in[2]);
          total = total + sum(square(made * h));
          h = made;
        }
        total = total + sum(h);
      }
      return total;
    };
  }
  static std::function<Tensor(const In&)> slope(const std::function<Tensor(const In&)>& f) {
    return [=](const In& in) {
      Tensor total = scalar(0.0, f64);
      for (const Tensor& g : grad(f)(in)) total = total + sum(square(g));
      return total;
    };
  }

  void expect_as_alone(const Step& step, const Lengths& lengths, bool entries_first = true,
                       const Checkpoint& policy = {}) const {
    const In in = arguments(lengths, entries_first);
    const auto batched = loss(step, policy), single = alone(step, lengths);
    const auto [expected, gradient] = value_and_grad(single)(in);
    const auto [actual, made] = run(value_and_grad(batched))(in);
    expect_all_close(actual, expected, kTolerance);
    const In second = grad(slope(single))(in), made_second = run(grad(slope(batched)))(in);
    for (std::size_t i = 0; i < in.size(); ++i) {
      SCOPED_TRACE(str("argument ", i));
      expect_all_close(mask_padding(made[i]), mask_padding(gradient[i]), kTolerance);
      expect_all_close(mask_padding(made_second[i]), mask_padding(second[i]), kTolerance);
    }
  }
};

const std::vector<Step> kSteps{attends, divides, counts, folds};

TEST_P(RaggedCapturesTest, EntriesMayComeShortestFirst) {
  for (const Step& step : kSteps) expect_as_alone(step, {{1, 2, 3, 5}, {4, 1, 3, 2}});
}
TEST_P(RaggedCapturesTest, EntriesMayComeLongestFirst) {
  for (const Step& step : kSteps) expect_as_alone(step, {{5, 3, 2, 1}, {1, 4, 3, 2}});
}
TEST_P(RaggedCapturesTest, EntriesMayComeInAnyOrderOrNeverRun) {
  for (const Step& step : kSteps)
    expect_as_alone(step, {{0, 3, 1, 0, 4, 2, 3, 0}, {2, 1, 4, 3, 2, 3, 1, 1}});
}
TEST_P(RaggedCapturesTest, EntriesMayStandBehindTheSource) {
  for (const Step& step : kSteps) expect_as_alone(step, {{2, 0, 4, 1}, {4, 3, 1, 2}}, false);
}
TEST_P(RaggedCapturesTest, PoliciesLeaveEntriesAsTheyAreAlone) {
  for (const Step& step : kSteps) {
    expect_as_alone(step, {{2, 0, 4, 1}, {4, 3, 1, 2}}, true, Checkpoint::every(2));
    expect_as_alone(step, {{2, 5, 0, 1}, {1, 3, 4, 2}}, true, Checkpoint::budget(1));
  }
}

// The mean over entries counts the values of the first running entry in place of finished ones.
TEST_P(RaggedCapturesTest, BodiesThatMixEntries) {
  const In in = arguments({{2, 1, 3}, {1, 3, 2}});
  const auto mixed =
      loss([](const Tensor& x, const Tensor& h, const Tensor& keys, const Tensor& w) {
        const Tensor made = attends(x, h, keys, w);
        return made + mean(made, x.dim("batch"));
      });
  const auto by_hand = [&](const In& in) {
    const Dim batch = in[0].dim("batch"), time = in[0].dim("time"), source = in[1].dim("source");
    const int lengths[] = {2, 1, 3}, sources[] = {1, 3, 2};
    Tensors states(3, full({hidden}, 0.2, f64));
    Tensor total = scalar(0.0, f64);
    for (int t = 0; t < 3; ++t) {
      const int first = lengths[0] > t ? 0 : 2;
      Tensors made;
      for (int b = 0; b < 3; ++b) {
        const int seen = lengths[b] > t ? b : first;
        Tensors rows;
        for (int s = 0; s < sources[seen]; ++s)
          rows.push_back(element(element(in[1], source, s), batch, seen));
        made.push_back(attends(element(element(in[0], time, t), batch, seen), states[seen],
                               stack(rows, Dim("source", sources[seen])), in[2]));
      }
      const Tensor average = (made[0] + made[1] + made[2]) / 3;
      for (int b = 0; b < 3; ++b) {
        if (lengths[b] <= t) continue;
        const Tensor next = made[b] + average;
        total = total + sum(square(next * states[b]));
        states[b] = next;
      }
    }
    return total + sum(states[0]) + sum(states[1]) + sum(states[2]);
  };
  const auto [expected, gradient] = value_and_grad(by_hand)(in);
  const auto [actual, made] = run(value_and_grad(mixed))(in);
  expect_all_close(actual, expected, kTolerance);
  for (std::size_t i = 0; i < in.size(); ++i)
    expect_all_close(mask_padding(made[i]), mask_padding(gradient[i]), kTolerance);
}

// Entries finish by a condition, so that lengths are known only after the loop.
TEST_P(RaggedCapturesTest, EntriesThatACondFinishes) {
  const Dim batch("batch", 4), source("source", tensor({2, 4, 1, 3}, {batch}));
  const Tensor limit = tensor({3, 0, 5, 1}, {batch});
  manual_seed(5);
  const In in{mask_padding(random_normal({batch, source, hidden}, f64), NAN),
              random_normal({hidden, next}, f64) * 0.4};
  const auto until = [&](const Tensor& keys, const Tensor& w) {
    using State = std::pair<Tensor, Tensor>;
    const auto body = [&](const State& state) {
      const Tensor made = attends(state.first, state.first, keys, w);
      return std::pair{made, State{made, state.second + 1}};
    };
    return scan(Scan{.cond_dims = {batch},
                     .initial = State{full({batch, hidden}, 0.2, f64), zeros_like(limit)},
                     .cond = [&](const State& state) { return state.second < limit; },
                     .body = body,
                     .max_seq_len = 6});
  };
  const auto all = [&](const In& in) {
    const auto result = until(in[0], in[1]);
    return sum(square(result.ys)) + sum(result.state.first);
  };
  const auto single = [&](const In& in) {
    Tensor total = scalar(0.0, f64);
    const int steps[] = {3, 0, 5, 1}, sources[] = {2, 4, 1, 3};
    for (int b = 0; b < 4; ++b) {
      Tensor h = full({hidden}, 0.2, f64);
      Tensors rows;
      for (int s = 0; s < sources[b]; ++s)
        rows.push_back(element(element(in[0], source, s), batch, b));
      for (int t = 0; t < steps[b]; ++t) {
        h = attends(h, h, stack(rows, Dim("source", sources[b])), in[1]);
        total = total + sum(square(h));
      }
      total = total + sum(h);
    }
    return total;
  };
  const auto [expected, gradient] = value_and_grad(single)(in);
  const auto [actual, made] = run(value_and_grad(all))(in);
  expect_all_close(actual, expected, kTolerance);
  for (std::size_t i = 0; i < in.size(); ++i)
    expect_all_close(mask_padding(made[i]), mask_padding(gradient[i]), kTolerance);
}

REEL_IN_EVERY_MODE(RaggedCapturesTest);

}  // namespace
}  // namespace reel
