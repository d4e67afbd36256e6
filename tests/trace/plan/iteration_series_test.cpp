// Loops with one fused op as body: many iterations run in one call, with the bits of single
// iterations.
#include <stop_token>
#include <thread>

#include "reel/tests/gradients.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/explained.h"
#include "reel/tests/trace/plan/row_cuts.h"

namespace reel {
namespace {

/// Calls f in a plan on one thread and on three, and expects the bits of the interpreter and the
/// values of eager mode. Returns explain().
template <class F, class... Args>
std::string expect_bits_of_single_iterations(const F& f, const Args&... args) {
  const TreeLeaves expected = flatten(jit(f, {.executor = Executor::interpreter})(args...)),
                   eager = flatten(f(args...));
  std::string text;
  for (const int count : {1, 3}) {
    const Threads threads(count);
    const auto planned = jit(f);
    for (int call = 0; call < 2; ++call) {
      const TreeLeaves actual = flatten(planned(args...));
      EXPECT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expect_same_bits(actual[i].tensor, expected[i].tensor);
        expect_all_close(actual[i].tensor, eager[i].tensor, 1e-5);
      }
    }
    text = planned.explain();
  }
  return text;
}

constexpr const char* kSeries = "series: ";

struct Recurrence {
  Tensor a, b, x, h;  ///< {channel}, {channel}, {time, channel}, {channel}
};
Recurrence recurrence(std::int64_t steps, std::int64_t channels, DType dtype = f32) {
  manual_seed(3);
  const Dim channel("channel", channels), time("time", steps);
  const auto random = [&](const Dims& dims) { return random_uniform(dims, -0.9, 0.9, dtype); };
  return {random({channel}), random({channel}), random({time, channel}), random({channel})};
}

/// Returns h_t = a h_{t-1} + b x_t for all t, and the last state.
std::pair<Tensor, Tensor> states_of(const Recurrence& at, bool is_reverse = false) {
  const auto step = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = at.a * h + at.b * x;
    return std::pair{next, next};
  };
  const auto result = scan(Scan{.spatial_dim = at.x.dim("time"),
                                .initial = at.h,
                                .xs = at.x,
                                .body = step,
                                .reverse = is_reverse});
  return {result.ys, result.state};
}

TEST(IterationSeriesTest, ARecurrenceAndItsGradientsHaveTheBitsOfSingleIterations) {
  // Around the 32 terms of a block of a sum, and more elements than a tile.
  for (const int steps : {1, 2, 3, 31, 32, 33, 34, 65, 200})
    for (const int channels : {1, 5, 16, 100, 1500})
      for (const bool is_reverse : {false, true}) {
        if (steps * channels > 60'000) continue;
        SCOPED_TRACE(str(steps, " iterations, ", channels, " channels, reverse: ", is_reverse));
        const auto f = [&](const Recurrence& at) { return states_of(at, is_reverse); };
        const auto loss = [&](const Recurrence& at) {
          const auto [all, last] = states_of(at, is_reverse);
          return sum(square(all)) + sum(last);
        };
        const Recurrence at = recurrence(steps, channels);
        const std::string text = expect_bits_of_single_iterations(f, at);
        EXPECT_TRUE(has(text, kSeries)) << text;
        expect_bits_of_single_iterations(value_and_grad(loss), at);
      }
}

TEST(IterationSeriesTest, GradientsOfF64AgreeWithDifferences) {
  const Recurrence at = recurrence(70, 3, f64);
  const auto loss = [](const Recurrence& at) {
    const auto [all, last] = states_of(at);
    return sum(square(all)) + sum(last);
  };
  expect_bits_of_single_iterations(grad(loss), at);
  expect_gradient_of(jit(loss), at, jit(grad(loss))(at));
}

/// No stack holds the states: they alternate between buffers, or stay in one.
TEST(IterationSeriesTest, StatesWithoutAStackKeepTheirBits) {
  const Recurrence at = recurrence(77, 40);
  const auto leapfrog = [](const Recurrence& at) {
    struct State {
      Tensor place, speed;
    };
    const auto step = [&](const Tensor& x, const State& s) {
      const Tensor place = s.place + 0.1f * s.speed;
      return std::pair{None{}, State{place, s.speed - 0.1f * place + x}};
    };
    return scan(Scan{.spatial_dim = at.x.dim("time"),
                     .initial = State{at.a, at.b},
                     .xs = at.x,
                     .body = step})
        .state;
  };
  EXPECT_TRUE(has(expect_bits_of_single_iterations(leapfrog, at), kSeries));
  const auto total = [&](const Recurrence& at) {
    const auto end = leapfrog(at);
    return sum(end.place * end.speed);
  };
  expect_bits_of_single_iterations(value_and_grad(total), at);
}

/// Each state becomes the other: no state is computed where it lay.
TEST(IterationSeriesTest, StatesThatChangePlacesKeepTheirBits) {
  struct State {
    Tensor a, b;
  };
  const auto f = [](const Tensor& a, const Tensor& b) {
    const auto body = [](const Tensor&, const State& s) {
      return State{s.b - 0.5f * s.a, s.a + 0.25f * s.b};
    };
    return fori_loop(0, 41, body, State{a, b});
  };
  const Recurrence at = recurrence(1, 33);
  EXPECT_TRUE(has(expect_bits_of_single_iterations(f, at.a, at.b), kSeries));
  const auto exchanged = [](const Tensor& a, const Tensor& b) {
    const auto body = [](const Tensor&, const State& s) { return State{s.b, s.a + 0.25f * s.b}; };
    return fori_loop(0, 41, body, State{a, b});
  };
  expect_bits_of_single_iterations(exchanged, at.a, at.b);
}

/// Rows of a batch share parameters, and one element serves all columns.
TEST(IterationSeriesTest, OperandsMayRepeatAlongRowsAndColumns) {
  manual_seed(5);
  const Dim time("time", 37), batch("batch", 3);
  for (const std::int64_t width : {5, 64}) {
    const Dim channel("channel", width);
    const Tensor x = random_normal({time, batch, channel}),
                 a = random_uniform({channel}, -0.9, 0.9),
                 scale = random_uniform({batch}, 0.1, 0.9);
    const auto f = [&](const Tensor& x, const Tensor& a, const Tensor& scale) {
      const auto step = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = a * h + scale * x;
        return std::pair{next, next};
      };
      return sum(square(
          scan(Scan{.spatial_dim = time, .initial = zeros({batch, channel}), .xs = x, .body = step})
              .ys));
    };
    expect_bits_of_single_iterations(value_and_grad(f), x, a, scale);
  }
}

/// Ops without machine code are several steps of the tile program.
TEST(IterationSeriesTest, BodiesOfSeveralStepsRunAsASeries) {
  const Recurrence at = recurrence(50, 24);
  const auto f = [](const Recurrence& at) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(at.a * h + x) * sigmoid(h);
      return std::pair{next * x, next};
    };
    const auto result =
        scan(Scan{.spatial_dim = at.x.dim("time"), .initial = at.h, .xs = at.x, .body = step});
    return sum(result.ys) + sum(result.state);
  };
  EXPECT_TRUE(has(expect_bits_of_single_iterations(f, at), kSeries));
  expect_bits_of_single_iterations(value_and_grad(f), at);
  const auto second = grad([&](const Recurrence& at) { return sum(square(grad(f)(at).a)); });
  expect_all_close(jit(second)(at).x, second(at).x);
}

constexpr const char* kShares = "cut: 4 shares of its elements, on 3 threads\n";

/// Tiles of the states do not depend on each other: threads take some through all iterations.
TEST(IterationSeriesTest, ThreadsShareTheTilesOfStates) {
  for (const std::int64_t channels : {4100, 4096, 1500}) {
    const Recurrence at = recurrence(70, channels);
    const auto f = [](const Recurrence& at) {
      const auto step = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = sin(at.a * h + x) + log1p(square(h));
        return std::pair{next * x, next};
      };
      const auto result =
          scan(Scan{.spatial_dim = at.x.dim("time"), .initial = at.h, .xs = at.x, .body = step});
      return sum(result.ys) + sum(result.state);
    };
    const std::string text = expect_bits_of_single_iterations(f, at);
    EXPECT_TRUE(has(text, kSeries)) << text;
    EXPECT_EQ(has(text, kShares), channels > 3 * 1024) << text;
    expect_bits_of_single_iterations(value_and_grad(f), at);
  }
}

/// A number per row is a state, too: each tile has whole rows.
TEST(IterationSeriesTest, ThreadsShareRowsWithTheirSums) {
  struct State {
    Tensor h, level;
  };
  const Dim batch("batch", 40), channel("channel", 130), time("time", 50);
  manual_seed(4);
  const Tensor x = random_normal({time, batch, channel});
  const auto f = [&](const Tensor& x) {
    const auto step = [&](const Tensor& x, const State& s) {
      const Tensor level = s.level * 0.5f + sum(sin(s.h), channel) * 0.01f;
      const Tensor h = x + s.h * 0.5f - level;
      return std::pair{None{}, State{h, level}};
    };
    const State last = scan(Scan{.spatial_dim = time,
                                 .initial = State{zeros({batch, channel}), zeros({batch})},
                                 .xs = x,
                                 .body = step})
                           .state;
    return std::pair{last.h, last.level};
  };
  const std::string text = expect_bits_of_single_iterations(f, x);
  EXPECT_TRUE(has(text, kShares)) << text;
}

/// The halves of a state change places: a tile reads the half that another tile wrote, unless both
/// are together.
TEST(IterationSeriesTest, TilesThatReadEachOtherHaveTheBitsOfSingleIterations) {
  manual_seed(4);
  const Tensor start = random_normal({5200}), x = random_normal({40, 2600});
  const auto f = [&](const Tensor& start, const Tensor& x) {
    const auto step = [](const Tensor& x, const Tensor& h) {
      const auto [a, b] = split<2>(h, 0);
      const Tensor next = concat({sin(b) + x, a * 0.5f}, 0);
      return std::pair{None{}, next};
    };
    return scan(Scan{.initial = start, .xs = x, .body = step}).state;
  };
  const std::string text = expect_bits_of_single_iterations(f, start, x);
  EXPECT_TRUE(has(text, kSeries)) << text;
  EXPECT_FALSE(has(text, kShares)) << text;
}

TEST(IterationSeriesTest, PoliciesAndOtherLengthsHaveTheSameBits) {
  const auto gradient = [](const Checkpoint& policy) {
    return jit(value_and_grad([=](const Recurrence& at) {
      const auto step = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = at.a * h + at.b * x;
        return std::pair{next, next};
      };
      return sum(square(scan(Scan{.spatial_dim = at.x.dim("time"),
                                  .initial = at.h,
                                  .xs = at.x,
                                  .body = step,
                                  .checkpoint = policy})
                            .ys));
    }));
  };
  const auto of_all = gradient({}), of_few = gradient(Checkpoint::every(7));
  for (const int channels : {20, 4100})  // threads share 4100
    for (const int steps : {45, 3, 130}) {
      SCOPED_TRACE(str(steps, " iterations, ", channels, " channels"));
      const Recurrence at = recurrence(steps, channels);
      const auto all = of_all(at), few = of_few(at);
      expect_same_bits(all.first, few.first);
      expect_same_bits(all.second.a, few.second.a);
      expect_same_bits(all.second.x, few.second.x);
    }
}

TEST(IterationSeriesTest, ErrorsNameTheIterationAndProfilesCountThemAll) {
  Recurrence at = recurrence(100, 8);
  at.x = set_at(abs(at.x), 71, full({at.x.dims()[1]}, -1.f));
  const auto f = [](const Recurrence& at) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = at.a * h + sqrt(x);
      return std::pair{next, next};
    };
    return scan(Scan{.spatial_dim = at.x.dim("time"), .initial = at.h, .xs = at.x, .body = step})
        .ys;
  };
  try {
    const DetectNan guard;
    jit(f)(at);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "in iteration 71 of scan")) << error.what();
  }
  const auto timed = jit(f, {.profile = true});
  timed(at);
  timed(at);
  EXPECT_TRUE(has(timed.profile().summary(), "100")) << timed.profile().summary();
}

TEST(IterationSeriesTest, ALongSeriesCanBeCancelled) {
  const Recurrence at = recurrence(2, 16);
  const auto endless = jit([](const Tensor& a, const Tensor& b) {
    const auto body = [&](const Tensor&, const Tensor& h) { return a * h + b; };
    return fori_loop(0, 1 << 30, body, a);
  });
  std::stop_source source;
  std::thread stopping([&] { source.request_stop(); });
  const CancellationScope scope(source.get_token());
  EXPECT_THROW(endless(at.a, at.b), CancelledError);
  stopping.join();
}

}  // namespace
}  // namespace reel
