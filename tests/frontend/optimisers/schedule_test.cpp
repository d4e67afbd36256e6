#include "reel/frontend/optimisers/schedule.h"

#include "reel/tests/modes.h"

namespace reel {
namespace {

using ScheduleTest = InEveryMode;
REEL_IN_EVERY_MODE(ScheduleTest);

/// Expects the schedule at every step, for a number and for a tensor.
template <class Run, class Expected>
void expect_schedule(const Run& run, const Schedule& schedule, int steps,
                     const Expected& expected) {
  const auto traced = run([&](const Tensor& step) { return schedule(step); });
  for (std::int64_t t = 0; t < steps; ++t) {
    ASSERT_NEAR(schedule(t), expected(static_cast<double>(t)), 1e-14) << "at " << t;
    const Tensor rate = traced(scalar(t, i64));
    ASSERT_EQ(rate.dtype(), f64);
    expect_values(rate, {expected(static_cast<double>(t))}, 1e-14);
  }
  EXPECT_EQ(traced.trace_count(), 1);
}

#define EXPECT_SCHEDULE(schedule, ...) \
  expect_schedule([this](auto f) { return this->run(f); }, schedule, 30, __VA_ARGS__)

TEST_P(ScheduleTest, WarmsUpAlongALine) {
  EXPECT_SCHEDULE(Schedule::warm_up(0.5, 10),
                  [](double t) { return t < 10 ? 0.5 * (t + 1) / 10 : 0.5; });
}

TEST_P(ScheduleTest, CosineEndsAtItsLowerValueAndStaysThere) {
  EXPECT_SCHEDULE(Schedule::cosine(0.4, 0.1, 20), [](double t) {
    return t < 20 ? 0.1 + 0.3 * (1 + std::cos(M_PI * t / 20)) / 2 : 0.1;
  });
}

TEST_P(ScheduleTest, ExponentialFallsByItsFactor) {
  EXPECT_SCHEDULE(Schedule::exponential(2, 0.25, 4),
                  [](double t) { return 2 * std::pow(0.25, t / 4); });
}

TEST_P(ScheduleTest, ConstantsHoldUntilTheNextSchedule) {
  EXPECT_SCHEDULE(Schedule::constant(0.3), [](double) { return 0.3; });
  EXPECT_SCHEDULE(Schedule::constant(0.3, 4).then(Schedule::cosine(0.3, 0, 8)), [](double t) {
    return t < 4 ? 0.3 : t < 12 ? 0.15 * (1 + std::cos(M_PI * (t - 4) / 8)) : 0;
  });
}

/// The numbers of torch.optim.lr_scheduler.OneCycleLR(max_lr=0.5, total_steps=20), by its formulas.
TEST_P(ScheduleTest, OneCycleRisesToItsPeakAndFalls) {
  const auto along = [](double from, double to, double share) {
    return to + (from - to) / 2 * (1 + std::cos(M_PI * share));
  };
  EXPECT_SCHEDULE(Schedule::one_cycle(0.5, 20), [&](double t) {
    if (t <= 5) return along(0.5 / 25, 0.5, t / 5);
    return along(0.5, 0.5 / 25 / 1e4, std::min((t - 5) / 14, 1.));
  });
  const Schedule cycle = Schedule::one_cycle(2, 10, {.rise = 0.5, .start = 0.25, .end = 0.125});
  EXPECT_EQ(cycle(0), 0.5);
  EXPECT_EQ(cycle(4), 2);
  EXPECT_NEAR(cycle(9), 0.25, 1e-15);
  EXPECT_SCHEDULE(cycle.then(Schedule::constant(3)), [&](double t) {
    if (t >= 10) return 3.;  // the cycle has ten steps, the last one too
    return t <= 4 ? along(0.5, 2, t / 4) : along(2, 0.25, (t - 4) / 5);
  });
}

TEST_P(ScheduleTest, RestartsBeginTheCosineAgain) {
  EXPECT_SCHEDULE(Schedule::cosine_restarts(0.4, 0.1, 7),
                  [](double t) { return 0.1 + 0.15 * (1 + std::cos(M_PI * std::fmod(t, 7) / 7)); });
  EXPECT_SCHEDULE(Schedule::cosine_restarts(0.4, 0.1, 2, 3), [](double t) {
    double begin = 0, length = 2;
    while (t >= begin + length) begin += length, length *= 3;
    return 0.1 + 0.15 * (1 + std::cos(M_PI * (t - begin) / length));
  });
}

TEST(ScheduleTest, RestartsAreExactAfterManyRuns) {
  for (const std::int64_t growth : {2, 3, 10}) {
    const Schedule schedule = Schedule::cosine_restarts(1, 0, 5, growth);
    std::int64_t begin = 0, length = 5;
    while (begin < 1'000'000'000'000) {
      EXPECT_EQ(schedule(begin), 1) << begin;
      EXPECT_EQ(schedule(scalar(begin, i64)).item<double>(), 1) << begin;
      if (begin) EXPECT_LT(schedule(begin - 1), 0.2) << begin;
      begin += length;
      length *= growth;
    }
  }
}

TEST_P(ScheduleTest, SchedulesFollowEachOther) {
  const Schedule schedule = Schedule::warm_up(1, 5)
                                .then(Schedule::cosine(1, 0.5, 10))
                                .then(Schedule::exponential(0.5, 0.9, 1));
  EXPECT_SCHEDULE(schedule, [](double t) {
    if (t < 5) return (t + 1) / 5;
    if (t < 15) return 0.5 + 0.5 * (1 + std::cos(M_PI * (t - 5) / 10)) / 2;
    return 0.5 * std::pow(0.9, t - 15);
  });
}

TEST_P(ScheduleTest, SetsTheRateInsideATrainingStep) {
  const Schedule schedule = Schedule::warm_up(1, 3).then(Schedule::exponential(1, 0.5, 1));
  const auto step = run([&](Tensor p, Sgd<Tensor> sgd) {
    sgd.set_learning_rate(schedule(sgd.step()));
    sgd.update(p, ones({}, f64));
    return std::pair{p, sgd};
  });
  Tensor p = zeros({}, f64);
  Sgd sgd(p);
  double expected = 0;
  for (const double rate : {1. / 3, 2. / 3, 1., 1., 0.5, 0.25}) {
    std::tie(p, sgd) = step(p, sgd);
    expected -= rate;
    expect_values(p, {expected}, 1e-14);
  }
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(ScheduleTest, StepsBelowZeroCountAsZero) {
  EXPECT_EQ(Schedule::exponential(2, 0.5, 1)(-3), 2);
  EXPECT_EQ(Schedule::warm_up(2, 4)(-1), 0.5);
}

TEST(ScheduleTest, ArgumentsOutOfRangeAreRefused) {
  EXPECT_EQ(message_of<ArgumentError>([] { return Schedule::warm_up(1, 0); }),
            "Schedule::warm_up: steps must be positive, got 0");
  EXPECT_EQ(message_of<ArgumentError>([] { return Schedule::cosine(1, INFINITY, 5); }),
            "Schedule::cosine: takes finite numbers, got inf");
  EXPECT_EQ(message_of<ArgumentError>([] { return Schedule::exponential(1, 0, 5); }),
            "Schedule::exponential: factor must be positive, got 0");
  const Schedule endless = Schedule::exponential(1, 0.5, 5);
  EXPECT_EQ(message_of<ArgumentError>([&] { return endless.then(endless); }),
            "Schedule::then: an exponential schedule has no end");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Schedule::constant(1).then(endless); }),
            "Schedule::then: a constant schedule has no end");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Schedule::cosine_restarts(1, 0, 5, 0); }),
            "Schedule::cosine_restarts: growth must be positive, got 0");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Schedule::one_cycle(1, 4); }),
            "Schedule::one_cycle: a rise of 0.3 of 4 steps leaves no step for one half; the rise "
            "takes at least 2 steps, the fall at least 1");
  EXPECT_EQ(message_of<DTypeError>([&] { return endless(scalar(1.0)); }),
            "Schedule: a step is an integer scalar, got f32[]");
  EXPECT_EQ(message_of<ShapeError>([&] { return endless(zeros({2}, i64)); }),
            "Schedule: a step is an integer scalar, got i64[2]");
}

}  // namespace
}  // namespace reel
