// Differences, products and quotients of two dims: equality of results in eager mode and in traces,
// and results under the caller's dims.
#include "reel/tests/modes.h"

namespace reel {
namespace {

class DimPairsTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, time{"time", tensor({6, 4, 0}, {batch})};
  const Dim labels{"labels", tensor({3, 2, 0}, {batch})};
  const Dim steps{"steps", scalar(2)}, width{"width", 12}, heads{"heads", 3};
  const Tensor x = ones({batch, time}), y = ones({batch, labels});
};
REEL_IN_EVERY_MODE(DimPairsTest);

TEST(DimTest, ArithmeticOfTwoPlainSizesGivesPlainSizes) {
  EXPECT_EQ(Dim(3) - Dim(5), Dim(0));
  EXPECT_EQ(Dim(5) - Dim(3), Dim(2));
  EXPECT_EQ(Dim(3) * Dim(5), Dim(15));
  EXPECT_EQ(Dim(6) / Dim(3), Dim(2));
  EXPECT_EQ(Dim(0) / Dim(0), Dim(0));
  EXPECT_EQ(message_of<ArgumentError>([] { Dim(7) / Dim(2); }),
            "Dim 7 / Dim 2: 7 is no multiple of 2; to round, divide by a number");
}

TEST_P(DimPairsTest, LengthsAreComputed) {
  const auto lengths = [](const Tensor& x, const Tensor& y, const Dim& steps, const Dim& width) {
    const Dim time = x.dim("time"), labels = y.dim("labels");
    return std::vector<Tensor>{
        (time - labels).lengths(),     (labels - time).lengths(),    (time - steps).lengths(),
        (width - time).lengths(),      (time * labels).lengths(),    (time * steps * 3).lengths(),
        (time / labels).lengths(),     (time / steps).lengths(),     (width / steps).lengths(),
        (time * 2 / labels).lengths(), (time - steps - 1).lengths(), (width / Dim(4)).lengths()};
  };
  const auto got = run(lengths)(x, y, steps, width);
  const std::vector<std::vector<double>> expected{{3, 2, 0},  {0, 0, 0},   {4, 2, 0}, {6, 8, 12},
                                                  {18, 8, 0}, {36, 24, 0}, {2, 2, 0}, {3, 2, 0},
                                                  {6},        {4, 4, 0},   {3, 1, 0}, {3}};
  for (std::size_t i = 0; i < got.size(); ++i) expect_values(got[i], expected[i]);
}

TEST_P(DimPairsTest, EqualExpressionsAreEqual) {
  const auto check = [](const Tensor& x, const Tensor& y, const Dim& steps, const Dim& width) {
    const Dim time = x.dim("time"), labels = y.dim("labels");
    for (const auto& [a, b] : {std::pair{time, labels}, {time, steps}, {width, steps}}) {
      EXPECT_EQ(a - b, a - b);
      EXPECT_EQ((a + b) - b, a);
      EXPECT_EQ((b + a) - b, a);
      EXPECT_EQ((a + b + 3) - (b + 1), a + 2);
      EXPECT_EQ((a + b + 1) - (b + 3), a - 2);
      EXPECT_EQ((a + a) - a, a);
      EXPECT_EQ((a - b) - b, a - (b + b));
      EXPECT_EQ((a - b) - 2, a - (b + 2));
      EXPECT_EQ((a - 2) - b, a - (b + 2));
      EXPECT_EQ((a + 3) - (b + 1), (a + 2) - b);
      EXPECT_EQ(a - Dim(2), a - 2);
      EXPECT_EQ(a * b, b * a);
      EXPECT_EQ(a * b * 2, (2 * a) * b);
      EXPECT_EQ((a * 2) * (b * 3), a * b * 6);
      EXPECT_EQ(a * b * 6 / 3, a * b * 2);
      EXPECT_EQ(a * Dim(2), a * 2);
      EXPECT_EQ((a * b) / b, a);
      EXPECT_EQ((a * b) / a, b);
      EXPECT_EQ((a * b * 6) / (b * 3), a * 2);
      EXPECT_EQ((a * 6) / Dim(3), a * 2);
      EXPECT_EQ(a / Dim(1), a);
      EXPECT_FALSE(a - b == b - a);
      EXPECT_FALSE(a - b == a);
      EXPECT_FALSE((a - b) + b == a);  // a may be shorter
      EXPECT_FALSE(a * b == a);
      EXPECT_FALSE(a * b == a + b);
    }
    EXPECT_EQ(time / labels, time / labels);
    EXPECT_EQ((time * 2) / (labels * 2), time / labels);
    EXPECT_EQ((time * steps) / (labels * steps), time / labels);
    EXPECT_EQ(time * 2 / steps / Dim(2), time / steps);
    EXPECT_EQ((time * steps / labels) / steps, time / labels);
    EXPECT_FALSE(time / labels * labels == time);
    EXPECT_FALSE(width / steps == width / 2);   // only the values are equal
    EXPECT_FALSE(width / Dim(2) == width / 2);  // the second rounds
    return std::pair{time - labels, time * labels};
  };
  const auto [difference, product] = run(check)(x, y, steps, width);
  EXPECT_EQ(difference, time - labels);
  EXPECT_EQ(product, labels * time);
}

TEST_P(DimPairsTest, ADimPrintsAsItsExpressionUnderItsFirstOperandsName) {
  const auto print = [](const Dim& width, const Dim& heads) {
    EXPECT_EQ((width - heads).name(), "width");
    EXPECT_EQ(str(width - heads), "width-heads=9");
    EXPECT_EQ(str(width + 1 - (heads + 3)), "width-(heads+2)=7");
    EXPECT_EQ(str((width + 1) - heads), "width+1-heads=10");
    EXPECT_EQ(str((width - heads) * 2), "(width-heads)*2=18");
    EXPECT_EQ(str(width * heads * 2), "width*heads*2=72");
    EXPECT_EQ(str(width / heads), "width/heads=4");
    EXPECT_EQ(str(width / (heads * 2)), "width/(heads*2)=2");
    EXPECT_EQ(str(width / ((heads + 1) * 3)), "width/((heads+1)*3)=1");
    EXPECT_EQ(str((width + 3) / (heads + 2)), "(width+3)/(heads+2)=3");
    EXPECT_EQ(str(width / Dim(4)), "width/Dim(4)=3");
    EXPECT_EQ(str(width / 4), "width/4=3");  // rounds down
    EXPECT_EQ(str(width / heads / 2), "width/heads/2=2");
    EXPECT_EQ(str((width * heads) / (heads * 2)), "width/Dim(2)=6");
    EXPECT_EQ(str(width / Dim(2) * 2), "width/Dim(2)*2=12");
    EXPECT_EQ(str(width - (width - heads)), "width-(width-heads)=3");
    EXPECT_EQ(str(heads * (width / heads)), "heads*(width/heads)=12");
    EXPECT_EQ(str(width - width), "width-width=0");
    EXPECT_EQ(str(width / width), "width/width=1");
    return width;
  };
  run(print)(width, heads);
}

TEST_P(DimPairsTest, ResultsHaveTheCallersDims) {
  const auto f = run([](const Tensor& x, const Tensor& y) {
    const Dim time = x.dim("time"), labels = y.dim("labels");
    const Tensor rest = slice(x, time, labels.lengths(), time - labels);
    return std::pair{rest, pad(rest, time - labels, 1, 0, 0, time - (labels - 1))};
  });
  EXPECT_EQ(f(x, y).first.dim(1), time - labels);
  // A trace serves all lengths, and the dims of each call.
  const auto g = run([](const Tensor& x, const Tensor& y) {
    const Dim time = x.dim("time"), labels = y.dim("labels");
    return std::tuple{cast(mask(time - labels), f32), cast(mask(time * labels), i32),
                      cast(mask(time / labels), i32)};
  });
  for (const int first : {2, 8}) {
    const Dim frames("time", tensor({first, 4, 0}, {batch}));
    const Dim words("labels", tensor({2, 1, 3}, {batch}));
    const auto [less, times, over] = g(ones({batch, frames}), ones({batch, words}));
    EXPECT_EQ(less.dim(1), frames - words);
    EXPECT_EQ(times.dim(1), words * frames);
    EXPECT_EQ(over.dim(1), frames / words);
    expect_values(sum(less, less.dim(1)), {first - 2., 3, 0});
    expect_values(sum(times, times.dim(1)), {first * 2., 4, 0});
    expect_values(sum(over, over.dim(1)), {first / 2., 4, 0});
  }
  EXPECT_EQ(g.trace_count(), 1);
}

TEST_P(DimPairsTest, HeadsArePartsOfAWidth) {
  const auto f = run([](const Tensor& x, const Dim& heads) {
    const Dim width = x.dim("width"), size = width / heads;
    const Tensor parts = split_dim(x, width, {heads, size});
    return std::pair{merge_dims(parts, {heads, size}, width), sum(parts, size)};
  });
  const auto [whole, sums] = f(cast(range(width), f32), heads);
  EXPECT_EQ(whole.dim(0), width);
  expect_values(sums, {6, 22, 38});
}

TEST_P(DimPairsTest, GradientsPassThroughComputedDims) {
  const auto gradient = [](const Tensor& x, const Tensor& y) {
    const Dim labels = y.dim("labels");
    return grad([&](const Tensor& x) {
      const Dim time = x.dim("time"), rest = time - labels;
      return sum(square(slice(x, time, labels.lengths(), rest) * cast(range(rest) + 1, f32)));
    })(x);
  };
  const Tensor g = run(gradient)(x, y);
  expect_values(mask_padding(g), {0, 0, 0, 2, 8, 18, 0, 0, 2, 8, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_P(DimPairsTest, QuotientsSkipPaddingOfLengths) {
  const Dim batch("batch", 2), item("item", tensor({2, 1}, {batch})),
      all("all", tensor({4, 6}, {batch})), part("part", tensor({2, 4, 3, 0}, {batch, item}));
  const auto lengths = run([](const Tensor& x, const Tensor& y) {
    return mask_padding((x.dim("all") / y.dim("part")).lengths());
  });
  expect_values(lengths(ones({batch, all}), ones({batch, item, part})), {2, 1, 2, 0});
}

TEST_P(DimPairsTest, ErrorsNameBothSizes) {
  const auto divide =
      run([](const Tensor& x, const Dim& steps) { return cast(mask(x.dim("time") / steps), f32); });
  EXPECT_NE(message_of<ArgumentError>([&] {
              divide(ones({Dim("time", scalar(7))}), steps);
            }).find("Dim time/steps: 7 is no multiple of 2; to round, divide by a number"),
            std::string::npos);
  EXPECT_NE(message_of<ArgumentError>([&] {
              divide(x, Dim("steps", scalar(4)));
            }).find("Dim time/steps: 6 is no multiple of 4"),
            std::string::npos);
  EXPECT_NE(message_of<ArgumentError>([&] {
              divide(x, Dim("steps", scalar(0)));
            }).find("Dim time/steps: 6 is no multiple of 0"),
            std::string::npos);
  EXPECT_EQ(message_of<ArgumentError>([&] { width / Dim("five", 5); }),
            "Dim width/five: 12 is no multiple of 5; to round, divide by a number");
  EXPECT_EQ(message_of<ArgumentError>([&] { width / Dim(5); }),
            "Dim width/Dim(5): 12 is no multiple of 5; to round, divide by a number");
  EXPECT_EQ(message_of<ArgumentError>([&] { Dim(5) - width; }),
            "Dim 5 - width=12: 5 is a plain size; give it a name, as in Dim(\"all\", 5)");
  EXPECT_EQ(message_of<ArgumentError>([&] { Dim(24) / width; }),
            "Dim 24 / width=12: 24 is a plain size; give it a name, as in Dim(\"all\", 24)");
  EXPECT_EQ(message_of<ArgumentError>([&] { width - Dim("time"); }),
            "arithmetic on dim time, which is undefined: it has no size");
  const Dim beam("beam", 2), frames("frames", tensor({1, 2}, {beam}));
  EXPECT_EQ(message_of<ShapeError>([&] { time* frames; }),
            "Dim time*frames: the lengths of frames[beam=2] run over beam=2, those of another "
            "operand over [batch=3]; one operand's must run over all dims");
  const Dim huge("huge", 1'000'000'000'000), large("large", 1'000'000'000);
  EXPECT_EQ(message_of<ArgumentError>([&] { huge* huge; }),
            "Dim huge*huge: a length does not fit into 64 bits");
  EXPECT_EQ(message_of<ArgumentError>([&] { time* large; }),
            "Dim time*large: a length does not fit into 32 bits");
}

}  // namespace
}  // namespace reel
