// Dims made from dims: equality of results in eager mode and in traces, and results under the
// caller's dims.
#include <limits>
#include <thread>

#include "reel/tests/modes.h"

namespace reel {
namespace {

class DimArithmeticTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 2}, time{"time", tensor({3, 0}, {batch})};
  const Dim steps{"steps", scalar(5)}, width{"width", 7};
  /// [[1, 2, 3], [-, -, -]]
  const Tensor x = tensor({1., 2., 3., NAN, NAN, NAN}, {batch, time});
};
REEL_IN_EVERY_MODE(DimArithmeticTest);

TEST(DimTest, ArithmeticOfPlainSizesGivesPlainSizes) {
  EXPECT_EQ(Dim(3) + 1, Dim(4));
  EXPECT_EQ(1 + Dim(3), Dim(4));
  EXPECT_EQ(Dim(3) - 5, Dim(0));
  EXPECT_EQ(2 * Dim(3), Dim(6));
  EXPECT_EQ(Dim(7) / 2, Dim(3));
  EXPECT_EQ(ceildiv(Dim(7), 2), Dim(4));
  EXPECT_EQ(Dim(3) + Dim(4), Dim(7));
}

TEST_P(DimArithmeticTest, LengthsAreComputed) {
  const auto lengths = [](const Tensor& x, const Dim& steps, const Dim& width) {
    const Dim time = x.dim("time");
    return std::vector<Tensor>{(time + 2).lengths(),         (time - 1).lengths(),
                               (time * 2).lengths(),         ceildiv(time, 2).lengths(),
                               (time / 2).lengths(),         (time + time).lengths(),
                               (steps + time + 1).lengths(), ((steps - 9) + 3).lengths(),
                               (width * 3 - 1).lengths(),    ((time + 1) * 2).lengths()};
  };
  const auto got = run(lengths)(x, steps, width);
  const std::vector<std::vector<double>> expected{{5, 2}, {2, 0}, {6, 0}, {2, 0}, {1, 0},
                                                  {6, 0}, {9, 6}, {3},    {20},   {8, 2}};
  for (std::size_t i = 0; i < got.size(); ++i) expect_values(got[i], expected[i]);
}

TEST_P(DimArithmeticTest, EqualExpressionsAreEqual) {
  const auto check = [](const Tensor& x, const Dim& steps, const Dim& width) {
    const Dim time = x.dim("time");
    for (const Dim& d : {time, steps, width}) {
      EXPECT_EQ(d + 1, d + 1);
      EXPECT_EQ(1 + d, d + 1);
      EXPECT_EQ((d + 1) - 1, d);
      EXPECT_EQ(d + 0, d);
      EXPECT_EQ(d - 0, d);
      EXPECT_EQ(d * 1, d);
      EXPECT_EQ((d + 1) + 1, d + 2);
      EXPECT_EQ((d + 3) - 1, d + 2);
      EXPECT_EQ((d + 1) - 3, d - 2);
      EXPECT_EQ((d - 1) - 2, d - 3);
      EXPECT_EQ(d * 2 * 3, 6 * d);
      EXPECT_EQ(d * 6 / 2, d * 3);
      EXPECT_EQ(ceildiv(d * 6, 3), d * 2);
      EXPECT_EQ(d / 2 / 3, d / 6);
      EXPECT_EQ(ceildiv(ceildiv(d, 2), 3), ceildiv(d, 6));
      EXPECT_FALSE(d + 1 == d + 2);
      EXPECT_FALSE(d + 1 == d);
      EXPECT_FALSE(d / 2 == ceildiv(d, 2));
      EXPECT_FALSE((d - 1) + 1 == d);  // an empty entry has one element there
    }
    EXPECT_EQ(time + steps, steps + time);
    EXPECT_EQ((time + 1) + steps, (steps + time) + 1);
    EXPECT_EQ((time + steps + width) - 0, width + (steps + time));
    return time + 1;
  };
  EXPECT_EQ(run(check)(x, steps, width), time + 1);
}

TEST_P(DimArithmeticTest, ADimPrintsAsItsExpressionUnderItsOperandsName) {
  const auto print = [](const Dim& width, const Dim& steps) {
    EXPECT_EQ((width + 1).name(), "width");
    EXPECT_EQ(str(width + 1), "width+1=8");
    EXPECT_EQ(str((width - 1) * 2), "(width-1)*2=12");
    EXPECT_EQ(str((width + 1) / 3), "(width+1)/3=2");
    EXPECT_EQ(str(ceildiv(width * 2, 4)), "ceildiv(width*2,4)=4");
    EXPECT_EQ(str(steps + width + 3).substr(0, 13), "steps+width+3");
    return width;
  };
  run(print)(width, steps);
}

TEST_P(DimArithmeticTest, ResultsHaveTheCallersDims) {
  const auto f = run([](const Tensor& x) {
    const Dim time = x.dim("time");
    const Tensor longer = pad(x, time, 0, 1, 9, time + 1);
    return std::pair{longer, slice(longer, time + 1, 1, {}, time)};
  });
  for (const int last : {0, 2}) {  // a trace serves all lengths, and each call its own dims
    const Dim time("time", tensor({3, last}, {batch}));
    const auto [longer, shorter] = f(ones({batch, time}));
    EXPECT_EQ(longer.dim(1), time + 1);
    EXPECT_EQ(shorter.dim(1), time);
    EXPECT_EQ(longer.dim("time"), time + 1);
    EXPECT_EQ(str(longer.type()), "f32[batch=2,time+1[batch=2]]");
    expect_values((time + 1).lengths(), {4, 1. + last});
    expect_values(sum(longer, longer.dim(1)), {12, 9. + last});
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(DimArithmeticTest, ArgumentsOfComputedDimsMeetInsideToo) {
  const auto f = run([](const Tensor& x, const Tensor& y) {
    const Dim time = x.dim("time");
    return pad(x, time, 1, 0, 0, 1 + time) * y;
  });
  const Tensor y = mask_padding(ones({batch, time + 1}));
  EXPECT_EQ(f(x, y).dim(1), time + 1);
  expect_values(mask_padding(f(x, y)), {0, 1, 2, 3, 0, 0, 0, 0});
  // The two dims have the same origin, which is not an argument.
  const auto g =
      run([](const Tensor& a, const Tensor& b) { return pad(a, 0, 0, 1, 0, a.dim(0) + 1) + b; });
  const Tensor a = ones({width + 1}), b = ones({width + 2});
  EXPECT_EQ(g(a, b).dim(0), width + 2);
}

TEST_P(DimArithmeticTest, ADimThatGrowsFromCallToCallNeedsOneTrace) {
  const auto f = run([](const Tensor& h) { return pad(h, 0, 0, 1, 1, h.dim(0) + 1); });
  const Dim start("history", scalar(0));
  Tensor h = zeros({start});
  for (int i = 0; i < 5; ++i) h = f(h);
  EXPECT_EQ(h.dim(0), start + 5);
  expect_values(h, {1, 1, 1, 1, 1});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(DimArithmeticTest, DimsThatCodeNamesItselfMeetThoseOfArguments) {
  const Dim longer = time + 1;
  const Tensor captured = mask_padding(ones({batch, longer}));
  const auto f =
      run([=, this](const Tensor& x) { return pad(x, time, 0, 1, 2, longer) * captured; });
  EXPECT_EQ(f(x).dim(1), longer);
  expect_values(mask_padding(f(x)), {1, 2, 3, 2, 2, 0, 0, 0});
  // An eager dim of the outside, which no argument has.
  const auto g = run([this](const Tensor& x) { return x * sum(ones({steps + 1})); });
  expect_values(g(scalar(2.)), {12});
}

TEST_P(DimArithmeticTest, GradientsPassThroughComputedDims) {
  const auto gradient = [](const Tensor& x) {
    return grad([](const Tensor& x) {
      const Dim time = x.dim("time");
      return sum(square(pad(square(x), time, 1, 1, 3, time + 2)));
    })(x);
  };
  expect_values(mask_padding(run(gradient)(x)), {4, 32, 108, 0, 0, 0});
  const auto second = [gradient](const Tensor& x) {
    return grad([&](const Tensor& x) { return sum(gradient(x)); })(x);
  };
  expect_values(mask_padding(run(second)(x)), {12, 48, 108, 0, 0, 0});
  // A jitted function on an eager tape: its gradient's graph computes the dims again.
  const auto inner = jit([](const Tensor& x) {
    const Dim longer = x.dim("time") + 1;
    return square(pad(x, x.dim("time"), 0, 1, 3, longer));
  });
  const auto through = [inner](const Tensor& x) {
    return grad([&](const Tensor& x) { return sum(inner(x)); })(x);
  };
  expect_values(mask_padding(run(through)(x)), {2, 4, 6, 0, 0, 0});
}

TEST_P(DimArithmeticTest, LoopsKnowThemToo) {
  const auto f = run([](const Tensor& x) {
    const Dim time = x.dim("time");
    const Tensor start = mask_padding(pad(x, time, 0, 1, 0, time + 1));
    return while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                      [=](const Tensor& i, const Tensor& s) {
                        const Dim longer = time + 1;
                        return std::tuple{i + 1, s + cast(mask(longer), f32)};
                      },
                      std::tuple{scalar(0), start});
  });
  const auto [i, s] = f(x);
  EXPECT_EQ(s.dim(1), time + 1);
  expect_values(mask_padding(s), {4, 5, 6, 3, 3, 0, 0, 0});
  const auto g = run([](const Tensor& x) {
    const Dim longer = x.dim("time") + 1;
    const Tensor y = pad(x, x.dim("time"), 1, 0, 0, longer);
    const auto [sums, state, dim] = scan(Scan{
        .spatial_dim = longer,
        .initial = zeros({x.dim("batch")}),
        .xs = y,
        .body =
            [](const Tensor& x, const Tensor& s) {
              return std::pair{s + x, s + x};
            },
    });
    return sums;
  });
  const Tensor sums = g(x);
  EXPECT_TRUE(contains(sums.dims(), time + 1));
  expect_values(transpose(sums, {batch, time + 1}), {0, 1, 3, 6, 0, 0, 0, 0});
}

TEST_P(DimArithmeticTest, ErrorsNameTheExpression) {
  const Dim beam("beam", 2), frames("frames", tensor({1, 2}, {beam}));
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { run([](const Tensor& x) { return x.dim("time") * -1; })(x); }),
            "Dim time[batch=2] * -1: a size is not negative");
  EXPECT_EQ(
      message_of<ArgumentError>([&] { run([](const Tensor& x) { return x.dim("time") / 0; })(x); }),
      "Dim time[batch=2] divided by 0: the divisor must be positive");
  EXPECT_EQ(message_of<ArgumentError>([] { Dim("time") + 1; }),
            "arithmetic on dim time, which is undefined: it has no size");
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([](const Tensor& x, const Dim& frames) { return x.dim("time") + frames; })(
                  x, frames);
            }),
            "Dim time+frames: the lengths of frames[beam=2] run over beam=2, those of another "
            "operand over [batch=2]; one operand's must run over all dims");
  EXPECT_EQ(message_of<ArgumentError>([&] { time * 1'000'000'000'000; }),
            "Dim time*1000000000000: a length does not fit into 32 bits");
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        run([](const Tensor& x) { return pad(x, x.dim("width"), 0, 2, 0, x.dim("width") + 1); })(
            zeros({width}));
      }),
      "pad: dim width+1=8 has size 8, but axis width=7 of f32[width=7] with 0 elements before "
      "and 2 behind it has size 9");
}

TEST(DimLimitsTest, NumbersThatDoNotFitAreErrorsAndWrapNowhere) {
  const Dim time("time", 3);
  constexpr auto kMaxNumber = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHuge = std::numeric_limits<std::int64_t>::max();
  const std::string refused =
      "arithmetic on dim time=3: 18446744073709551615 does not fit into 64 bits with a sign";
  EXPECT_EQ(message_of<ArgumentError>([&] { time + kMaxNumber; }), refused);
  EXPECT_EQ(message_of<ArgumentError>([&] { kMaxNumber + time; }), refused);
  EXPECT_EQ(message_of<ArgumentError>([&] { time - kMaxNumber; }), refused);
  EXPECT_EQ(message_of<ArgumentError>([&] { time* kMaxNumber; }), refused);
  EXPECT_EQ(message_of<ArgumentError>([&] { time / kMaxNumber; }), refused);
  EXPECT_EQ(message_of<ArgumentError>([&] { time - kLeast; }),
            "Dim time=3 - -9223372036854775808: a length does not fit into 64 bits");
  EXPECT_EQ(message_of<ArgumentError>([&] { time* kHuge; }),
            "Dim time*9223372036854775807: a length does not fit into 64 bits");
  EXPECT_EQ(message_of<ArgumentError>([&] { time + kHuge; }),
            "Dim time+9223372036854775807: a length does not fit into 64 bits");
  EXPECT_EQ((time - kHuge).size(), 0);
  EXPECT_EQ((time + kLeast).size(), 0);
  EXPECT_EQ((time / kHuge).size(), 0);
  EXPECT_EQ((Dim(3) - kHuge).size(), 0);
  EXPECT_THROW(Dim(3) + kMaxNumber, ArgumentError);
}

TEST(DimThreadsTest, ThreadsFindTheSameDim) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const Dim a = time + 1, b = (time + 2) - 1;
        if (!(a == b) || !(a - 1 == time) || a.size() != 4) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace reel
