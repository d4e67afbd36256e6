// Errors name the line of the user's program. This file is compiled with -g1.
#include <sys/resource.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

/// The error that fn throws, and the line that it names.
struct Caught {
  std::string what, message, where;
};
template <class Fn>
Caught caught(Fn fn) {
  try {
    (void)fn();
  } catch (const Error& error) {
    return {error.what(), error.message(), error.where()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

std::string line_text(int line) { return str("error_place_test.cpp:", line); }

int line_of_gather = 0;
/// Fails depending on the value of the index, which a trace does not know.
Tensor third_row(const Tensor& table, const Tensor& place) {
  line_of_gather = __LINE__ + 1;
  return gather(table, place, 0);
}

TEST(ErrorPlaceTest, IsTheLineOfTheUserBelowTheMessage) {
  const int line = __LINE__ + 1;
  const Caught error = caught([] { return ones({2}) + ones({3}); });
  EXPECT_TRUE(error.where.ends_with(line_text(line))) << error.where;
  EXPECT_EQ(error.what, error.message + "\nat " + error.where);
}

// In a process of its own: the first error opens the file that has the lines.
TEST(ErrorPlaceTest, IsThereAgainAfterAnErrorWithoutAFreeFileDescriptor) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto fail = [] { return caught([] { return ones({2}) + ones({3}); }).where; };
  EXPECT_EXIT(
      {
        rlimit limit{};
        getrlimit(RLIMIT_NOFILE, &limit);
        const rlim_t before = std::exchange(limit.rlim_cur, 0);
        setrlimit(RLIMIT_NOFILE, &limit);
        const std::string without = fail();
        limit.rlim_cur = before;
        setrlimit(RLIMIT_NOFILE, &limit);
        std::cerr << "[" << without << "] then " << fail();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "^.. then .*error_place_test.cpp:");
}

TEST(ErrorPlaceTest, IsTheInnermostCallOutsideOfTheLibrary) {
  const Caught error = caught([] { return third_row(ones({2, 3}), scalar(7)); });
  EXPECT_TRUE(error.where.ends_with(line_text(line_of_gather))) << error.where;
}

TEST(ErrorPlaceTest, ErrorOfAnEagerLoopIsInItsBody) {
  const Caught error = caught([] {
    return fori_loop(
        0, 9,
        [](const Tensor& i, const Tensor& s) {
          return s + sum(third_row(ones({4, 2}), i));
        },
        scalar(0.));
  });
  EXPECT_TRUE(error.where.ends_with(line_text(line_of_gather))) << error.where;
  EXPECT_NE(error.message.find("in iteration 4 of"), std::string::npos) << error.message;
}

class ErrorPlaceOfGraphTest : public ::testing::TestWithParam<Executor> {};

TEST_P(ErrorPlaceOfGraphTest, IsTheLineThatRecordedTheOp) {
  const auto rows = jit([](const Tensor& table, const Tensor& i) { return third_row(table, i); },
                        {.executor = GetParam()});
  rows(ones({2, 3}), scalar(1));
  const Caught error = caught([&] { return rows(ones({2, 3}), scalar(7)); });
  EXPECT_TRUE(error.where.ends_with(line_text(line_of_gather))) << error.where;
}

TEST_P(ErrorPlaceOfGraphTest, IsTheLineThatRecordedTheOpOfABody) {
  const auto total = jit(
      [](const Tensor& table, const Tensor& n) {
        return fori_loop(
            0, n, [&](const Tensor& i, const Tensor& s) { return s + sum(third_row(table, i)); },
            scalar(0.));
      },
      {.executor = GetParam()});
  total(ones({4, 2}), scalar(2));
  const Caught error = caught([&] { return total(ones({4, 2}), scalar(9)); });
  EXPECT_TRUE(error.where.ends_with(line_text(line_of_gather))) << error.where;
}

INSTANTIATE_TEST_SUITE_P(AllExecutors, ErrorPlaceOfGraphTest,
                         ::testing::Values(Executor::interpreter, Executor::plan,
                                           Executor::dataflow));

TEST(ErrorPlaceTest, StaysWithCopiesAndLinesThatAreAdded) {
  try {
    ones({2}) + ones({3});
  } catch (ShapeError& error) {
    const std::string where = error.where();
    const ShapeError copy = error;
    error.add_line("in iteration 3 of my loop");
    EXPECT_EQ(error.where(), where);
    EXPECT_EQ(copy.where(), where);
    EXPECT_EQ(error.what(), copy.message() + "\nin iteration 3 of my loop\nat " + where);
    EXPECT_EQ(copy.what(), copy.message() + "\nat " + where);
  }
}

int line_of_sqrt = 0;
Tensor root_of(const Tensor& x) {
  line_of_sqrt = __LINE__ + 1;
  return sqrt(x);
}

/// Returns the error of a call under DetectNan.
template <class F>
Caught detected(const F& f, const Tensor& x) {
  return caught([&] {
    const DetectNan guard;
    return f(x);
  });
}

TEST_P(ErrorPlaceOfGraphTest, NaNIsAtTheLineOfItsOpAlsoInAGradient) {
  const auto loss = [](const Tensor& x) { return sum(root_of(x)); };
  const auto gradient = [&](const Tensor& x) { return grad(loss)(x); };
  const JitOptions options{.executor = GetParam()};
  for (const Caught& error :
       {detected(loss, scalar(-1.)), detected(jit(loss, options), scalar(-1.)),
        detected(gradient, scalar(0.)), detected(jit(gradient, options), scalar(0.)),
        detected([&](const Tensor& x) { return grad(jit(loss, options))(x); }, scalar(0.))})
    EXPECT_TRUE(error.where.ends_with(line_text(line_of_sqrt))) << error.what;
  const Caught error = detected(jit(gradient, options), scalar(0.));
  EXPECT_NE(error.message.find("in the gradient of sqrt at " + error.where), std::string::npos)
      << error.message;
}

int line_of_shift = 0;
Tensor later(const Tensor& x) {
  line_of_shift = __LINE__ + 1;
  return shift(x, x.dim("time"), 1);
}

// shift is composed of where and other ops, which the program does not name.
TEST_P(ErrorPlaceOfGraphTest, NaNNamesTheFunctionThatTheUserCalled) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor x = log(zeros({batch, time}) - 1.0);
  const JitOptions options{.executor = GetParam()};
  for (const Caught& error : {detected(later, x), detected(jit(later, options), x)}) {
    EXPECT_TRUE(error.message.starts_with("where: its result")) << error.message;
    EXPECT_TRUE(error.where.ends_with(line_text(line_of_shift))) << error.what;
    EXPECT_EQ(error.what, error.message + "\nin shift at " + error.where);
  }
}

TEST_P(ErrorPlaceOfGraphTest, NaNInALayerNamesTheLayer) {
  const Dim in("in", 2);
  const auto layer = LayerNorm::init(in);
  const auto normed = [&](const Tensor& x) { return layer(x); };
  const Tensor x = log(zeros({in}) - 1.0);
  const JitOptions options{.executor = GetParam()};
  for (const Caught& error : {detected(normed, x), detected(jit(normed, options), x)})
    EXPECT_NE(error.what.find("\nin LayerNorm at "), std::string::npos) << error.what;
}

TEST(ErrorPlaceTest, FunctionThatTheMessageNamesIsNotRepeated) {
  for (const Caught& error :
       {caught([] { return sum(ones({2}), 3); }), caught([] { return random_normal({unknown}); })})
    EXPECT_EQ(error.what, error.message + "\nat " + error.where);
}

struct Net {
  Linear in;
};

// Adam and AdamW have one update(), of their base class.
TEST(ErrorPlaceTest, NaNInAnUpdateNamesOptimiserAndParameter) {
  const Dim feature("feature", 2), hidden("hidden", 3);
  Net net{Linear::init(feature, hidden)}, gradient = net;
  gradient.in.weight = log(zeros({feature, hidden}) - 1.0);
  const auto update = [&](auto optimiser) {
    return caught([&] {
      const DetectNan guard;
      optimiser.update(net, gradient);
      return net.in.weight;
    });
  };
  const Caught adam = update(Adam(net)), sgd = update(Sgd(net)),
               clipped = update(AdamW(net, {.clip_norm = 1}));
  EXPECT_TRUE(adam.message.ends_with("already\nin Adam::update of in.weight")) << adam.message;
  EXPECT_TRUE(sgd.message.ends_with("already\nin Sgd::update of in.weight")) << sgd.message;
  EXPECT_TRUE(clipped.message.ends_with("\nin AdamW::update by clip_norm")) << clipped.message;
  for (const Caught& error : {adam, sgd, clipped})
    EXPECT_EQ(error.what, error.message + "\nat " + error.where);
}

TEST_P(ErrorPlaceOfGraphTest, NaNInATracedUpdateNamesTheOptimiser) {
  const auto step = jit(
      [](Tensor w, const Tensor& gradient) {
        Adam adam(w);
        adam.update(w, gradient);
        return w;
      },
      {.executor = GetParam()});
  const Tensor gradient = log(zeros({2}) - 1.0);
  const Caught error = caught([&] {
    const DetectNan guard;
    return step(ones({2}), gradient);
  });
  EXPECT_EQ(error.what, error.message + "\nin Adam::update at " + error.where);
}

TEST(ErrorPlaceTest, ErrorThatTheUserThrowsNamesNoFunction) {
  const Caught inherited = caught([]() -> Tensor { throw ShapeError("mine"); });
  EXPECT_EQ(inherited.what, "mine\nat " + inherited.where);
  const Caught base = caught([]() -> Tensor { throw Error("mine"); });
  EXPECT_EQ(base.what, "mine\nat " + base.where);
}

TEST(ErrorPlaceTest, ProfilesHaveLinesOfCode) {
  const auto f = jit([](const Tensor& x) { return sin(x); }, {.profile = true});
  f(ones({2}));
  const std::string summary = f.profile().summary();
  EXPECT_NE(summary.find("sin -> f32[2]  (error_place_test.cpp:"), std::string::npos) << summary;
  EXPECT_EQ(summary.find("-g1"), std::string::npos);
}

}  // namespace
}  // namespace reel
