// Plateau beside the rules of PyTorch's ReduceLROnPlateau, computed here in plain doubles.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using PlateauTest = InEveryMode;
REEL_IN_EVERY_MODE(PlateauTest);

/// The published rules of ReduceLROnPlateau, with numbers.
struct Reference {
  Plateau options;
  double rate, best = 0;
  std::int64_t waited = 0, cooldown = 0;
  bool has_best = false;

  double next(double score) {
    const double sign = options.higher_is_better ? 1 : -1;
    const double bound =
        options.relative ? best * (1 + sign * options.threshold) : best + sign * options.threshold;
    if (!std::isnan(score) && (!has_best || sign * score > sign * bound)) {
      best = score;
      has_best = true;
      waited = 0;
    } else {
      ++waited;
    }
    if (cooldown > 0) {
      --cooldown;
      waited = 0;
    }
    if (waited > options.patience) {
      rate = std::max(rate * options.factor, options.least);
      cooldown = options.cooldown;
      waited = 0;
    }
    return rate;
  }
};

const std::vector<double> kScores{NAN, 3, 2, 2, 2.1, 1.9, 1.89, 1.9,  NAN, 1.9, 1.9, 1.9, 1.9,
                                  1.9, 1, 1, 2, 2,   2,   2,    0.99, 2,   2,   2,   2,   2};

template <class Run>
void expect_rates(const Run& run, const Plateau& plateau) {
  Reference reference{plateau, 0.5};
  Plateau::State state = plateau.initial_state(0.5);
  const auto step = run([](const Plateau& plateau, const Tensor& score,
                           const Plateau::State& state) { return plateau(score, state); });
  for (const double score : kScores) {
    Tensor rate;
    std::tie(rate, state) = step(plateau, scalar(score, f64), state);
    ASSERT_EQ(rate.dtype(), f64);
    ASSERT_NEAR(rate.item<double>(), reference.next(score), 1e-15);
    EXPECT_EQ(state.waited.item<std::int64_t>(), reference.waited);
    EXPECT_EQ(state.cooldown.item<std::int64_t>(), reference.cooldown);
  }
  EXPECT_LT(reference.rate, 0.5);
  EXPECT_EQ(step.trace_count(), 1);
}

#define EXPECT_RATES(...) \
  expect_rates([this](auto f) { return this->run(f); }, Plateau{__VA_ARGS__})

TEST_P(PlateauTest, LowersTheRateAfterItsPatience) {
  EXPECT_RATES(.factor = 0.5, .patience = 2);
  EXPECT_RATES(.factor = 0.5, .patience = 0);
}
TEST_P(PlateauTest, CountsOnlyImprovementsAboveTheThreshold) {
  EXPECT_RATES(.factor = 0.5, .patience = 1, .threshold = 0.1);
  EXPECT_RATES(.factor = 0.5, .patience = 1, .threshold = 0.1, .relative = false);
}
TEST_P(PlateauTest, WaitsForItsCooldownAndStopsAtTheLeastRate) {
  EXPECT_RATES(.factor = 0.5, .patience = 1, .cooldown = 3);
  EXPECT_RATES(.factor = 0.1, .patience = 0, .cooldown = 1, .least = 0.02);
}
TEST_P(PlateauTest, FollowsAScoreThatIsToRise) {
  EXPECT_RATES(.factor = 0.5, .patience = 2, .higher_is_better = true);
  EXPECT_RATES(.factor = 0.5, .patience = 2, .threshold = 0.3, .relative = false,
               .higher_is_better = true);
}

TEST_P(PlateauTest, ARateBelowTheLeastStays) {
  const Plateau plateau{.patience = 0, .least = 0.1};
  const auto next = run([=](const Plateau::State& state) { return plateau(1.0, state); });
  Plateau::State state = next(plateau.initial_state(0.05)).second;
  state = next(state).second;
  expect_values(state.rate, {0.05});
}

/// The rate is a part of a traced step, which is traced once.
TEST_P(PlateauTest, SetsTheRateInsideATrainingStep) {
  const Plateau plateau{.factor = 0.5, .patience = 0};
  const auto step = run([=](Tensor p, Sgd<Tensor> sgd, const Plateau::State& state) {
    auto [rate, next] = plateau(scalar(1.f), state);
    sgd.set_learning_rate(rate);
    sgd.update(p, ones({}, f64));
    return std::tuple{p, sgd, next};
  });
  Tensor p = zeros({}, f64);
  Sgd sgd(p);
  Plateau::State state = plateau.initial_state(1);
  for (const double expected : {-1., -1.5, -1.75}) {
    std::tie(p, sgd, state) = step(p, sgd, state);
    expect_values(p, {expected});
  }
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(PlateauErrorsTest, NameTheOption) {
  const auto state_of = [](const Plateau& plateau) { return plateau.initial_state(1); };
  EXPECT_EQ(message_of<ArgumentError>([&] { state_of({.factor = 1}); }),
            "Plateau: factor must be in [0, 1), got 1");
  EXPECT_EQ(message_of<ArgumentError>([&] { state_of({.patience = -1}); }),
            "Plateau: patience must be a number that is not negative, got -1");
  EXPECT_EQ(message_of<ArgumentError>([&] { state_of({.threshold = 1}); }),
            "Plateau: a relative threshold must be in [0, 1), got 1");
  EXPECT_EQ(message_of<ArgumentError>([&] { Plateau().initial_state(-1); }),
            "Plateau: learning_rate must be a number that is not negative, got -1");
  EXPECT_EQ(message_of<ShapeError>([&] { Plateau()(ones({2}), state_of({})); }),
            "Plateau: f32[2] is not one number; give it a mean");
}

}  // namespace
}  // namespace reel
