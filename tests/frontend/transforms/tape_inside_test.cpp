// Tapes that users open, used in bodies, branches and traces inside the trace in which they were
// opened, and outside of it.
#include <functional>

#include "reel/tests/modes.h"
#include "reel/tests/occurrences.h"

namespace reel {
namespace {

class TapeInsideTest : public InEveryMode {};

TEST_P(TapeInsideTest, GivesGradientsInsideABody) {
  const auto f = [](const Tensor& x) {
    Tape tape({.persistent = true});
    tape.watch(x);
    const Tensor y = x * x;
    return map([&](const Tensor& cotangent) { return tape.gradient(y, x, cotangent); },
               tensor({1., 2.}));
  };
  expect_values(run(f)(scalar(3.)), {6, 12});
}

TEST_P(TapeInsideTest, NonPersistentTapeServesBothBranches) {
  const auto f = [](const Tensor& x) {
    Tape tape;
    tape.watch(x);
    const Tensor y = x * x;
    return cond(
        y > 0., [&] { return tape.gradient(y, x); }, [&] { return 2 * tape.gradient(y, x); });
  };
  expect_values(run(f)(scalar(3.)), {6});
}

TEST_P(TapeInsideTest, TapeOfABodyGivesGradientsInAnInnerLoop) {
  const auto f = [](const Tensor& x) {
    const auto body = [&](const Tensor& factor) {
      Tape tape({.persistent = true});
      tape.watch(x);
      const Tensor y = x * x * factor;
      const auto add = [&](const Tensor&, const Tensor& s) { return s + tape.gradient(y, x); };
      return fori_loop(0, 2, add, 0.);
    };
    return map(body, tensor({1., 2.}));
  };
  expect_values(run(f)(scalar(3.)), {12, 24});
}

TEST_P(TapeInsideTest, TapeOfABodyKnowsAWatchedTensorFromOutside) {
  const auto f = [](const Tensor& x) {
    const auto body = [&](const Tensor& factor) {
      Tape tape;
      tape.watch(x);
      return factor * tape.gradient(x, x);
    };
    return map(body, tensor({1., 2.}));
  };
  expect_values(run(f)(scalar(3.)), {1, 2});
}

TEST_P(TapeInsideTest, AWatchInABodyHoldsForOpsOutside) {
  const auto f = [](const Tensor& x) {
    Tape tape;
    const auto watch = [&](const Tensor& s) {
      tape.watch(x);
      return s;
    };
    map(watch, tensor({1., 2.}));
    return tape.gradient(x * x, x);
  };
  expect_values(run(f)(scalar(3.)), {6});
}

/// x³, with its derivative multiplied by each cotangent in a body.
template <class Outer>
Tensor second_derivative(const Tensor& x, Outer outer) {
  Tape around({.persistent = true}), tape({.persistent = true});
  around.watch(x);
  tape.watch(x);
  const Tensor y = x * x * x;
  const auto pull = [&](const Tensor& cotangent) { return tape.gradient(y, x, cotangent); };
  const Tensor all = map(pull, tensor({1., 2.}));
  return outer(around, tape, sum(all));
}

TEST_P(TapeInsideTest, ATapeAroundRecordsTheGradient) {
  const auto f = [](const Tensor& x) {
    return second_derivative(
        x, [&](Tape& around, Tape&, const Tensor& z) { return around.gradient(z, x); });
  };
  expect_values(run(f)(scalar(3.)), {54});
}

TEST_P(TapeInsideTest, ToATapeItsOwnGradientIsAConstant) {
  const auto f = [](const Tensor& x) {
    return second_derivative(
        x, [&](Tape&, Tape& tape, const Tensor& z) { return tape.gradient(z * x, x); });
  };
  expect_values(run(f)(scalar(3.)), {81});  // z itself
}

TEST_P(TapeInsideTest, AnOpenTapePrintsALoopOnce) {
  const auto f = [](const Tensor& x) {
    Tape tape({.persistent = true});
    tape.watch(x);
    const auto body = [&](const Tensor&, const Tensor& s) { return print(s, "state") * x; };
    const Tensor y = fori_loop(0, 2, body, x);
    return map([&](const Tensor& cotangent) { return tape.gradient(y, x, cotangent); },
               tensor({1., 2., 3.}));
  };
  testing::internal::CaptureStdout();
  expect_values(run(f)(scalar(2.)), {12, 24, 36});
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_EQ(occurrences("state", printed), 2) << printed;
}

REEL_IN_EVERY_MODE(TapeInsideTest);

/// In eager mode a body is C++ code, so the first two cases work there.
TEST(TapeErrorsTest, AValueOfABodyIsNotOnATapeFromOutside) {
  const std::string made_inside =
      " a value of a body or branch that is being recorded, but the tape was opened outside it; "
      "open the tape inside, or use grad";
  const auto in_body = [](const auto& of_state) {
    return jit([of_state](const Tensor& x) {
      Tape tape({.persistent = true});
      tape.watch(x);
      const Tensor y = x * x;
      const auto body = [&](const Tensor&, const Tensor& s) { return of_state(tape, x, y, s); };
      return fori_loop(0, 2, body, x);
    });
  };
  const auto target = in_body([](Tape& tape, const Tensor& x, const Tensor&, const Tensor& s) {
    return tape.gradient(s * x, x);
  });
  EXPECT_EQ(
      message_of<TraceError>([&] { target(scalar(3.)); }),
      "Tape: gradient is asked for" + made_inside + "\nin iteration 0 of fori_loop \"fori_loop\"");
  const auto source = in_body([](Tape& tape, const Tensor&, const Tensor& y, const Tensor& s) {
    return tape.gradient(y, s);
  });
  EXPECT_EQ(message_of<TraceError>([&] { source(scalar(3.)); }),
            "Tape: gradient is asked with respect to" + made_inside +
                "\nin iteration 0 of fori_loop \"fori_loop\"");
  const auto watched = in_body([](Tape& tape, const Tensor&, const Tensor&, const Tensor& s) {
    tape.watch(s);
    return s;
  });
  EXPECT_EQ(message_of<TraceError>([&] { watched(scalar(3.)); }),
            "Tape: watch is given" + made_inside + "\nin iteration 0 of fori_loop \"fori_loop\"");
}

TEST(TapeErrorsTest, AnArgumentOfATraceIsNotTheTensorThatWasWatchedOutside) {
  const Tensor x = scalar(3.);
  Tape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  const auto f = jit([&](const Tensor& x) { return tape.gradient(y, x); });
  EXPECT_EQ(message_of<TraceError>([&] { f(x); }),
            "Tape: gradient is asked with respect to a value of a body or branch that is being "
            "recorded, but the tape was opened outside it; open the tape inside, or use grad");
  EXPECT_EQ(
      jit([&](const Tensor& factor) { return factor * tape.gradient(y, x); })(x).item<float>(), 18);
}

using Pullback = std::function<Tensor(const Tensor&)>;
constexpr const char* kLeaked =
    "Tape: a tape, or the pullback of a vjp, is used outside the trace, or the body or branch, in "
    "which it was made; values leave a body only through its state or outputs";

TEST(TapeErrorsTest, APullbackDoesNotLeaveTheBodyThatItWasMadeIn) {
  const auto f = jit([](const Tensor& x) {
    Pullback leaked;
    const auto body = [&](const Tensor& factor) {
      const auto [y, pull] = vjp([&](const Tensor& x) { return x * factor; }, x);
      leaked = pull;
      return pull(factor);
    };
    const Tensor all = map(body, tensor({1., 2.}));
    return sum(all) + leaked(x);
  });
  EXPECT_EQ(message_of<TraceError>([&] { f(scalar(3.)); }), kLeaked);
}

TEST(TapeErrorsTest, APullbackThatReadsNothingDoesNotLeaveItsBranch) {
  const auto f = jit([](const Tensor& x) {
    Pullback leaked;
    const auto branch = [&] {
      const auto [y, pull] = vjp([](const Tensor& x) { return x + x; }, x);
      leaked = pull;
      return y;
    };
    const Tensor taken = cond(x > 0., branch, [&] { return x; });
    return taken + leaked(x);
  });
  EXPECT_EQ(message_of<TraceError>([&] { f(scalar(3.)); }), kLeaked);
}

TEST(TapeErrorsTest, APullbackDoesNotLeaveItsTrace) {
  Pullback leaked;
  jit([&](const Tensor& x) {
    const auto [y, pull] = vjp([](const Tensor& x) { return x * x; }, x);
    leaked = pull;
    return y;
  })(scalar(3.));
  EXPECT_EQ(message_of<TraceError>([&] { leaked(scalar(1.)); }), kLeaked);
  const auto other = jit([&](const Tensor& x) { return leaked(x); });
  EXPECT_EQ(message_of<TraceError>([&] { other(scalar(1.)); }), kLeaked);
}

TEST(TapeErrorsTest, ATapeOfEagerModeKnowsNoValueOfATrace) {
  const Tensor x = scalar(2.);
  Tape tape;
  tape.watch(x);
  Tensor leaked;
  jit([&](const Tensor& z) { return leaked = z * x; })(x);
  EXPECT_EQ(message_of<TraceError>([&] { tape.gradient(leaked, x); }),
            "Tape: gradient is asked for a value of a body or branch that is being recorded, but "
            "the tape was opened outside it; open the tape inside, or use grad");
}

}  // namespace
}  // namespace reel
