// scan with truncate: gradients are cut between pieces of the iterations.
#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct History {
  Tensor last;
  TensorArray all;
};

class TruncateTest : public InEveryMode {};

TEST_P(TruncateTest, StateIsAConstantWhereGradientsAreTruncated) {
  manual_seed(3);
  const Tensor w = random_normal({3, 3}, f64) * 0.5, x = random_normal({7, 2, 3}, f64);
  for (const bool reverse : {false, true}) {
    const auto f = [&](std::int64_t truncate) {
      return run(value_and_grad([&x, truncate, reverse](const std::pair<Tensor, Tensor>& p) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor next = tanh(x + matmul(h, p.first));
          return std::pair{next, next};
        };
        const auto made = scan(Scan{
            .initial = p.second, .xs = x, .body = body, .reverse = reverse, .truncate = truncate});
        return sum(square(made.ys)) + sum(made.state);
      }));
    };
    const std::pair p{w, ones({2, 3}, f64)};
    const auto full = f(0)(p);
    for (const int steps : {7, 8, 1000}) {
      const auto same = f(steps)(p);
      expect_same_bits(same.first, full.first);
      expect_same_bits(same.second.first, full.second.first);
      expect_same_bits(same.second.second, full.second.second);
    }
    // By hand: pieces with the state passed on as a constant.
    const auto stopped_by_hand = [&](const std::pair<Tensor, Tensor>& p) {
      Tensor h = p.second, total = scalar(0.0, f64);
      for (int k = 0; k < 7; ++k) {
        if (k == 3 || k == 6) h = stop_gradient(h);
        h = tanh(gather(x, scalar(reverse ? 6 - k : k), 0) + matmul(h, p.first));
        total = total + sum(square(h));
      }
      return total + sum(h);
    };
    const auto cut = f(3)(p), expected = value_and_grad(stopped_by_hand)(p);
    expect_all_close(cut.first, full.first, 1e-12);
    expect_all_close(cut.second.first, expected.second.first, 1e-12);
    expect_all_close(cut.second.second, expected.second.second, 1e-12);
    EXPECT_GT(max(abs(cut.second.first - full.second.first)).item<double>(), 1e-3);
  }
}

TEST_P(TruncateTest, StateOfAFinishedEntryIsNotTruncated) {
  const Dim batch("batch", 2), time("time", tensor({2, 7}, {batch}));
  const Tensor x = ones({time, batch}, f64);
  const auto f = run(grad([&](const Tensor& initial) {
    const auto body = [](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, h * x * 2.0};
    };
    return sum(
        scan(Scan{.spatial_dim = time, .initial = initial, .xs = x, .body = body, .truncate = 3})
            .state);
  }));
  expect_all_close(f(ones({batch}, f64)), tensor({4.0, 0.0}, {batch}, f64), 1e-12);
}

TEST_P(TruncateTest, ArraysOfTheStateAreCutToo) {
  const Tensor x = random_normal({7}, f64);
  const auto loss = [&x](std::int64_t truncate, auto step, Checkpoint checkpoint) {
    return [&x, truncate, step, checkpoint](const Tensor& w) {
      const auto body = [&](const std::pair<Tensor, Tensor>& xs, const History& h) {
        return std::pair{None{}, step(w, xs.first, xs.second, h)};
      };
      const History initial{w * 0.5, TensorArray({f64, {}}).push_back(w)};
      const auto made = scan(Scan{.initial = initial,
                                  .xs = std::pair{x, range(7)},
                                  .body = body,
                                  .checkpoint = checkpoint,
                                  .truncate = truncate});
      return sum(made.state.last) + sum(square(made.state.all.stack()));
    };
  };
  const auto step = [](const Tensor& w, const Tensor& x, const Tensor& i, const History& h) {
    const Tensor next = tanh(w * h.last + h.all[i / 2] + x);
    return History{next, h.all.push_back(next)};
  };
  // The state at the first iteration of a piece is a constant.
  const auto by_hand = [&](const Tensor& w) {
    History h{w * 0.5, TensorArray({f64, {}}).push_back(w)};
    for (int i = 0; i < 7; ++i) {
      if (i == 3 || i == 6)
        h = {stop_gradient(h.last), TensorArray::of_list(stop_gradient(h.all.list()))};
      h = step(w, gather(x, scalar(i), 0), scalar(i), h);
    }
    return sum(h.last) + sum(square(h.all.stack()));
  };
  const Tensor w = scalar(0.7, f64);
  const auto expected = value_and_grad(by_hand)(w);
  for (const Checkpoint& policy : {Checkpoint{}, Checkpoint::every(2), Checkpoint::budget(200)}) {
    const auto cut = run(value_and_grad(loss(3, step, policy)))(w);
    expect_all_close(cut.first, expected.first, 1e-12);
    expect_all_close(cut.second, expected.second, 1e-12);
    expect_same_bits(run(grad(loss(7, step, policy)))(w), run(grad(loss(0, step, policy)))(w));
  }
}

TEST_P(TruncateTest, DrawsAreTheSame) {
  const Tensor x = random_normal({7}, f64);
  const auto f = [&](std::int64_t truncate) {
    manual_seed(11);
    return run([&x, truncate](const Tensor& w) {
      const auto body = [](const Tensor& x, const History& h) {
        const Tensor next = h.last * x + h.all[0] * random_uniform({}, 0.5, 1.5, f64);
        return std::pair{None{}, History{next, h.all.push_back(next)}};
      };
      const History initial{w, TensorArray({f64, {}}).push_back(w)};
      return scan(Scan{.initial = initial, .xs = x, .body = body, .truncate = truncate})
          .state.all.stack();
    })(scalar(0.7, f64));
  };
  expect_same_bits(f(3), f(0));
}

TEST_P(TruncateTest, EntriesThatFinishAreTruncatedAsAlone) {
  const Dim batch("batch", 3), time("time", tensor({2, 7, 4}, {batch}));
  const Tensor x = random_normal({time, batch}, f64), w = random_normal({batch}, f64);
  const auto cell = [&w](const Tensor& x, const Tensor& h) { return tanh(w * h + x); };
  // By hand: pieces of three steps, entry by entry.
  const auto by_hand = [&](const Tensor& initial) {
    Tensor total = scalar(0.0, f64);
    const int lengths[] = {2, 7, 4};
    for (int b = 0; b < 3; ++b) {
      const Tensor at = scalar(b);
      Tensor h = gather(initial, at, batch);
      for (int k = 0; k < lengths[b]; ++k) {
        if (k == 3 || k == 6) h = stop_gradient(h);
        h = tanh(gather(w, at, batch) * h + gather(gather(x, at, batch), scalar(k), 0));
      }
      total = total + square(h);
    }
    return total;
  };
  const auto with_lengths = run(value_and_grad([&](const Tensor& initial) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, cell(x, h)};
    };
    return sum(square(
        scan(Scan{.spatial_dim = time, .initial = initial, .xs = x, .body = body, .truncate = 3})
            .state));
  }));
  const Tensor initial = random_normal({batch}, f64);
  const auto actual = with_lengths(initial), expected = value_and_grad(by_hand)(initial);
  expect_all_close(actual.first, expected.first, 1e-12);
  expect_all_close(actual.second, expected.second, 1e-12);
}

// A reverse entry begins at its own end, regardless of the lengths of others.
TEST_P(TruncateTest, ReverseEntriesAreTruncatedFromTheirOwnEnd) {
  const auto gradient = [&](int length, int other, std::int64_t truncate) {
    const Dim batch("batch", 2), time("time", tensor({length, other}, {batch})), unit("unit", 3);
    const Tensor x = expand(cast(range(time), f64) * 0.1 + 0.2, {time, batch});
    const auto f = run(grad([&](const std::pair<Tensor, Tensor>& initial) {
      using State = std::pair<Tensor, Tensor>;
      const auto body = [](const Tensor& x, const State& h) {
        return std::pair{None{}, State{sin(h.first * x) + 0.3, tanh(h.second + x)}};
      };
      const State last = scan(Scan{.spatial_dim = time,
                                   .initial = initial,
                                   .xs = x,
                                   .body = body,
                                   .reverse = true,
                                   .truncate = truncate})
                             .state;
      return sum(gather(last.first, scalar(0), batch)) + sum(gather(last.second, scalar(0), batch));
    }));
    const auto both = f(std::pair{full({unit, batch}, 0.5, f64), full({batch, unit}, 0.5, f64)});
    return sum(both.first).template item<double>() + 10 * sum(both.second).template item<double>();
  };
  for (const int length : {3, 4, 5}) {
    const double alone = gradient(length, length, 4);
    EXPECT_EQ(alone == gradient(length, length, 0), length <= 4) << length;
    for (const int other : {1, 4, 5, 6, 9})
      EXPECT_NEAR(gradient(length, other, 4), alone, 1e-12) << length << " beside " << other;
  }
}

TEST_P(TruncateTest, TheNumberOfStepsIsNotNegative) {
  const auto f = [](std::int64_t truncate) {
    const auto body = [](const Tensor& x, const Tensor& h) { return std::pair{None{}, h + x}; };
    return scan(Scan{.initial = scalar(0.0), .xs = ones({3}), .body = body, .truncate = truncate})
        .state;
  };
  EXPECT_EQ(message_of<ArgumentError>([&] { run([&](Tensor) { return f(-1); })(scalar(0.0)); }),
            "scan \"scan\": truncate is a number of steps, got -1; 0 stands for all");
}

TEST_P(TruncateTest, BackwardsTheNumberOfStepsMustBeKnown) {
  const auto f = run([](const Tensor& x) {
    const auto grow = [](const Tensor& x) {
      const auto body = [](const Tensor& x, const Tensor& h) { return std::pair{h, h + x}; };
      const Tensor ys =
          scan(Scan{.initial = scalar(0.0), .xs = x, .body = body, .reverse = true, .truncate = 2})
              .ys;
      return concat({ys, ys}, 0);
    };
    return sum(while_loop([](const Tensor& x) { return sum(x) < 100.0; }, grow, x,
                          {.shape_invariants = {PartialShape{unknown}}}));
  });
  const auto call = [&] { f(ones({3})); };
  if (is_eager())
    EXPECT_NO_THROW(call());
  else
    EXPECT_NE(message_of<ArgumentError>(call).find("truncate counts iterations from the last one"),
              std::string::npos);
}

REEL_IN_EVERY_MODE(TruncateTest);

}  // namespace
}  // namespace reel
