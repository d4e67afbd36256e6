// Padding becomes an element only if the program says so: by an option of merge_dims or split_dim,
// or by dims that it gives to reshape, rename or pad.
#include <cmath>
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class CountedPaddingTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 2}, feature{"feature", 2}, two{"two", 2};
  const Dim time{"time", tensor({3, 4}, {batch})};
  const Tensor x = tensor({{-1., -2., -3., kNan}, {-1., -2., -3., -4.}}, {batch, time}, f64);

  /// Returns the message of f(x); the same in every mode.
  template <class F>
  std::string refused(const F& f, const Tensor& x) {
    return message_of<ShapeError>([&] { run(f)(x); });
  }
};
REEL_IN_EVERY_MODE(CountedPaddingTest);

// ---- split_dim ----------------------------------------------------------------------------------

TEST_P(CountedPaddingTest, SplitDimOfARaggedDimNeedsAFill) {
  const auto halves = [=, this](const Tensor& x) {
    return split_dim(x, x.dim("time"), {Dim("half"), two});
  };
  const std::string message = refused(halves, x);
  EXPECT_EQ(message.substr(0, message.find('\n')),
            "split_dim: axis time[batch=2] of f64[batch=2,time[batch=2]] is ragged, and entries "
            "whose lengths are no multiples of [two=2] would get padding as elements; max_pool and "
            "mean_pool take windows of valid elements, pack(x, {batch, time}) has the valid "
            "elements alone, and {.fill = value} gives the padding a value: 0 to stack frames, or "
            "what a pool over the parts ignores, 0 for a sum, -infinity for a maximum");
  // Lengths do not count: a trace does not know them.
  const Dim even("time", tensor({4, 4}, {batch}));
  EXPECT_EQ(refused(halves, zeros({batch, even}, f64)).substr(0, 10), "split_dim:");
  const auto given = [=, this](const Tensor& x) {
    return split_dim(x, x.dim("time"), {ceildiv(x.dim("time"), 2), two});
  };
  EXPECT_EQ(refused(given, x).substr(0, 10), "split_dim:");
}

TEST_P(CountedPaddingTest, TheFillIsTheElementsThatAPoolIgnores) {
  const auto pooled = [=, this](double fill) {
    return run([=, this](const Tensor& x) {
      const Tensor parts = split_dim(x, x.dim("time"), {Dim("half"), two}, {.fill = fill});
      return mask_padding(max(parts, two));
    })(x);
  };
  expect_values(pooled(-kInfinity), {-1, -3, -1, -3});
  expect_values(pooled(0), {-1, 0, -1, -3});
  const Tensor means = run([=, this](const Tensor& x) {
    const Dim time = x.dim("time"), half = ceildiv(time, 2);
    const auto sums = [=, this](const Tensor& of) {
      return sum(split_dim(of, time, {half, two}, {.fill = 0}), two);
    };
    return sums(x) / sums(ones_like(x));
  })(x);
  expect_values(mask_padding(means), {-1.5, -3, -1.5, -3.5});
}

TEST_P(CountedPaddingTest, FillsOfOtherDtypesAreExact) {
  const auto parts = [=, this](double fill) {
    return [=, this](const Tensor& x) {
      return mask_padding(split_dim(x, x.dim("time"), {Dim("half"), two}, {.fill = fill}));
    };
  };
  const double least = std::numeric_limits<std::int32_t>::min();
  const Tensor numbers = cast(mask_padding(x), i32);
  expect_values(run(parts(least))(numbers), {-1, -2, -3, least, -1, -2, -3, -4});
  expect_values(run(parts(7))(cast(numbers, i64)), {-1, -2, -3, 7, -1, -2, -3, -4});
  expect_values(run(parts(1))(numbers < -1), {0, 1, 1, 1, 0, 1, 1, 1});
  EXPECT_EQ(message_of<DTypeError>([&] { parts(.5)(numbers); }),
            "split_dim: 0.5 does not fit i32[batch=2,time[batch=2]], which holds no fractions");
}

TEST_P(CountedPaddingTest, AMultipleOfTheFirstPartNeedsNoFill) {
  const Tensor frames = mask_padding(expand(x, {batch, time, two}) * 2., kNan);
  const auto there_and_back = [=, this](const Tensor& x) {
    const Dim time = x.dim("time"), doubled = time * 2;
    const Tensor flat = merge_dims(x, {time, two}, doubled);
    return split_dim(flat, doubled, {time, two});
  };
  const Tensor back = run(there_and_back)(frames);
  EXPECT_EQ(back.dims(), frames.dims());
  expect_values(mask_padding(back), values_of(mask_padding(frames)));
  const auto more = [=, this](const Tensor& x) {
    const Dim time = x.dim("time"), three("three", 3), one("one", 1);
    const Tensor all = pad(x, time, 0, 0, 0, time);
    return sum(split_dim(split_dim(all, time, {Dim("same"), one}), one, {Dim("a", 1)}) * 1.);
  };
  expect_values(run(more)(x), {-16});
  const auto thirds = [=, this](const Tensor& x) {
    const Dim time = x.dim("time");
    return sum(split_dim(zeros({batch, time * 6}), time * 6, {time * 3, two}), two);
  };
  expect_values(run(thirds)(x).dim(1).lengths(), {9, 12});
}

TEST_P(CountedPaddingTest, FilledElementsHaveNoGradient) {
  const Tensor start = mask_padding(x);
  const auto loss = [=, this](const Tensor& x) {
    const Tensor y = split_dim(x, x.dim("time"), {Dim("half"), two}, {.fill = 5});
    return sum(square(y) * sum(y, two)) + sum(max(y, two));
  };
  const Tensor g = run(grad(loss))(x);
  expect_gradient_of(loss, start, mask_padding(g));
  const auto slope = [loss](const Tensor& x) { return sum(sin(grad(loss)(x))); };
  expect_gradient_of(slope, start, mask_padding(run(grad(slope))(x)), 1e-5);
  const Tensor along = run([loss](const Tensor& x) { return jvp(loss, x, x).second; })(start);
  expect_values(along, values_of(sum(start * grad(loss)(start))), 1e-9);
}

TEST_P(CountedPaddingTest, AxesWithOneSizeAreFilledUpToo) {
  const Tensor plain = tensor({{1., 2., 3.}, {4., 5., 6.}});
  const auto columns = [](const Tensor& x) { return split_dim(x, 1, {unknown, 2}, {.fill = 9}); };
  const Tensor y = run(columns)(plain);
  EXPECT_EQ(str(y.type()), "f32[2,2,2]");
  expect_values(y, {1, 2, 3, 9, 4, 5, 6, 9});
  expect_values(run([](const Tensor& x) {
                  return split_dim(x, 0, {2, 1}, {.fill = 9});
                })(plain),
                values_of(plain));
  const Dim steps("steps", 5), any("steps", scalar(5));
  for (const Dim& dim : {steps, any})
    for (const Dim& chunk : {Dim("chunk"), ceildiv(dim, 2)}) {
      const auto split = [=, this](const Tensor& x) {
        return split_dim(x, x.dim("steps"), {chunk, two}, {.fill = -kInfinity});
      };
      if (!is_eager() && chunk.has_size() && dim == any) continue;  // another dim than the trace's
      expect_values(run(split)(range(dim, f32)), {0, 1, 2, 3, 4, -kInfinity});
    }
}

TEST_P(CountedPaddingTest, ASizeThatOnlyARunKnowsMustBeAMultiple) {
  const auto split = run([=, this](const Tensor& x) {
    return split_dim(x, x.dim("steps"), {Dim("chunk"), two});
  });
  expect_values(split(range(Dim("steps", scalar(4)), f32)), {0, 1, 2, 3});
  const std::string message =
      message_of<ShapeError>([&] { split(range(Dim("steps", scalar(5)), f32)); });
  EXPECT_EQ(message.substr(0, message.find('\n')),
            "split_dim: axis steps=5 of f32[steps=5] has size 5, but [chunk=3,two=2] make 6; "
            "{.fill = value} adds elements up to a multiple");
  EXPECT_EQ(message_of<ShapeError>([&] { split(range(Dim("steps", 5), f32)); }),
            "split_dim: axis steps=5 of f32[steps=5] has size 5, but [chunk,two=2] take multiples "
            "of 2; {.fill = value} adds elements up to a multiple");
}

TEST_P(CountedPaddingTest, RowsAreFilledAsTheyAreAlone) {
  const auto row = [=, this](const Tensor& x) {
    return max(max(split_dim(x, x.dim("time"), {Dim("half"), two}, {.fill = -kInfinity}), two));
  };
  const auto refusing = [=, this](const Tensor& x) {
    return max(max(split_dim(x, x.dim("time"), {Dim("half"), two}), two));
  };
  const Tensor start = mask_padding(x);
  expect_values(run([=, this](const Tensor& x) { return vmap(row, batch)(x); })(start), {-1, -1});
  expect_values(
      run([=, this](const Tensor& x) { return map(row, x, {.spatial_dim = batch}); })(start),
      {-1, -1});
  expect_values(
      mask_padding(run([=, this](const Tensor& x) { return vmap(grad(row), batch)(x); })(start)),
      {1, 0, 0, 0, 1, 0, 0, 0});
  EXPECT_THROW(run([=, this](const Tensor& x) { return vmap(refusing, batch)(x); })(start),
               ShapeError);
  EXPECT_THROW(
      run([=, this](const Tensor& x) { return map(refusing, x, {.spatial_dim = batch}); })(start),
      ShapeError);
}

TEST_P(CountedPaddingTest, EmptyEntriesHaveNoPartsToFill) {
  const auto sums = [=, this](const Tensor& x) {
    return sum(split_dim(x, x.dim("time"), {Dim("half"), two}, {.fill = 5}));
  };
  for (const auto& [lengths, expected] :
       {std::pair{std::vector<int>{0, 3}, 3 * 1 + 5}, {std::vector<int>{0, 0}, 0}}) {
    const Dim time("time", tensor(lengths, {batch}));
    expect_values(run(sums)(ones({batch, time})), {static_cast<double>(expected)});
  }
  const Dim none("batch", 0), nothing("time", zeros({none}, i32));
  expect_values(run(sums)(ones({none, nothing})), {0});
}

// ---- merge_dims ---------------------------------------------------------------------------------

TEST_P(CountedPaddingTest, MergeDimsRefusesPadding) {
  const auto merged = [](const Tensor& x) {
    return mean(merge_dims(x, {x.dim("batch"), x.dim("time")}));
  };
  const std::string repair =
      "is ragged, and its padding would become elements; use pack(x, {batch, time}) for the valid "
      "elements alone, max_pool or mean_pool for windows of valid elements, or {.counts_padding = "
      "true} for padding as elements of value 0";
  std::string message = refused(merged, x);
  EXPECT_EQ(message.substr(0, message.find('\n')),
            "merge_dims: axis time[batch=2] of f64[batch=2,time[batch=2]] " + repair);
  const Dim full("time", tensor({4, 4}, {batch}));
  EXPECT_EQ(refused(merged, ones({batch, full}, f64)).substr(0, 11), "merge_dims:");
  const Dim all("all", 8);
  const auto given = [=, this](const Tensor& x) {
    return merge_dims(x, {batch, x.dim("time")}, all);
  };
  EXPECT_EQ(refused(given, x).substr(0, 11), "merge_dims:");
  const auto flat = [=, this](const Tensor& x) {
    return merge_dims(x, x.dim("time"), Dim("t", 4));
  };
  message = refused(flat, x);
  EXPECT_EQ(message.substr(0, message.find(';')),
            "merge_dims: axis time[batch=2] of f64[batch=2,time[batch=2]] is ragged, and its "
            "padding would become elements");
}

TEST_P(CountedPaddingTest, MergeDimsCountsPaddingOnRequest) {
  const Tensor ones = this->x * 0. + 1.;
  const auto of = [](const Tensor& x) { return Dims{x.dim("batch"), x.dim("time")}; };
  expect_values(run([=](const Tensor& x) {
                  return mean(merge_dims(x, of(x), {.counts_padding = true}));
                })(ones),
                {7. / 8});
  expect_values(run([=](const Tensor& x) { return mean(pack(x, of(x))); })(ones), {1});
  const Dim all("all", 8);
  const Tensor y =
      run([=](const Tensor& x) { return merge_dims(x, of(x), all, {.counts_padding = true}); })(x);
  EXPECT_EQ(y.dims(), Dims{all});
  expect_values(y, {-1, -2, -3, 0, -1, -2, -3, -4});
  const Dim four("four", 4);
  expect_values(run([=](const Tensor& x) {
                  return merge_dims(x, x.dim("time"), four, {.counts_padding = true});
                })(x),
                {-1, -2, -3, 0, -1, -2, -3, -4});
}

TEST_P(CountedPaddingTest, ARaggedDimInFrontNeedsNoWord) {
  const Tensor frames = expand(x, {batch, time, two});
  const Tensor means = run([=, this](const Tensor& x) {
    const Tensor y = merge_dims(x, {x.dim("time"), two});
    return mean(y, y.dim(1));
  })(frames);
  expect_values(means, {-2, -2.5});
  // The lengths belong to the entries of the batch: without it, all positions are elements.
  const Tensor sums = run([=, this](const Tensor& x) {
    const Tensor y = sum(x, batch);
    return merge_dims(y, {two, x.dim("time")});
  })(frames);
  expect_values(sums, {-2, -4, -6, -4, -2, -4, -6, -4});
}

TEST_P(CountedPaddingTest, EntriesOfAGivenDimAreFilledWithZeros) {
  const Dim longer("longer", tensor({8, 8}, {batch}));
  const Tensor y = run([=, this](const Tensor& x) {
    return merge_dims(x, {x.dim("time"), two}, longer);
  })(expand(x, {batch, time, two}));
  expect_values(y, {-1, -1, -2, -2, -3, -3, 0, 0, -1, -1, -2, -2, -3, -3, -4, -4});
}

// ---- reshape, rename ----------------------------------------------------------------------------

TEST_P(CountedPaddingTest, DimsThatTheCallerGivesHaveZerosForPadding) {
  const Dim all("all", 8), steps("steps", 4);
  const std::vector<double> expected{-1, -2, -3, 0, -1, -2, -3, -4};
  expect_values(run([](const Tensor& x) { return reshape(x, {2, -1}); })(x), expected);
  expect_values(run([=](const Tensor& x) { return reshape(x, Dims{all}); })(x), expected);
  expect_values(run([=](const Tensor& x) { return rename(x, x.dim("time"), steps); })(x), expected);
  expect_values(run([=](const Tensor& x) { return pad(x, x.dim("time"), 0, 0, -7, steps); })(x),
                {-1, -2, -3, -7, -1, -2, -3, -4});
}

TEST_P(CountedPaddingTest, ReshapeKeepsPaddingOfMultiples) {
  const Tensor frames = expand(x, {batch, time, two});
  const Tensor y =
      run([=, this](const Tensor& x) {
        const Dim time = x.dim("time");
        const Tensor flat = reshape(x, Dims{batch, time * 2});
        return std::pair{mean(flat, time * 2), mean(reshape(flat, Dims{batch, time, two}), time)};
      })(frames)
          .second;
  expect_values(y, {-2, -2, -2.5, -2.5});
}

TEST_P(CountedPaddingTest, ARowIsRenamedOnlyToItsOwnSize) {
  const Dim steps("steps", 4);
  const auto row = [=](const Tensor& x) { return sum(rename(x, x.dim("time"), steps)); };
  const auto rows = [=, this](const Tensor& x) { return vmap(row, batch)(x); };
  const auto mapped = [=, this](const Tensor& x) { return map(row, x, {.spatial_dim = batch}); };
  EXPECT_THROW(run(mapped)(x), ShapeError);
  EXPECT_THROW(run(rows)(x), ShapeError);
  const Dim full("time", tensor({4, 4}, {batch}));
  expect_values(run(rows)(ones({batch, full})), {4, 4});
}

}  // namespace
}  // namespace reel
