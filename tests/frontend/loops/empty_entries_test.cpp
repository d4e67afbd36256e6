// Loops over batches in which no entry has an element: as beside entries that have some.
#include <algorithm>
#include <iterator>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const Dim batch("batch", 2);

class EmptyEntriesTest : public InEveryMode {};
REEL_IN_EVERY_MODE(EmptyEntriesTest);

Dim time_of(const std::vector<int>& lengths) { return Dim("time", tensor(lengths, {batch})); }
Tensor add(const Tensor& a, const Tensor& b) { return a * 2. + b; }

TEST_P(EmptyEntriesTest, FoldsWithoutAFirstValueGiveZeros) {
  const auto left =
      run([](const Tensor& x) { return foldl(add, x, {.spatial_dim = x.dim("time")}); });
  const auto right =
      run([](const Tensor& x) { return foldr(add, x, {.spatial_dim = x.dim("time")}); });
  for (const auto& lengths : {std::vector{0, 2}, {0, 0}}) {
    const Tensor x = ones({batch, time_of(lengths)});
    expect_values(left(x), {0, lengths[1] ? 3. : 0.});
    expect_values(right(x), {0, lengths[1] ? 3. : 0.});
  }
  // One trace serves both; and the dtypes and dims of the elements stay.
  if (!is_eager()) EXPECT_EQ(left.trace_count(), 1);
  const Dim feature("feature", 3);
  const Tensor counts = ones({batch, time_of({0, 0}), feature}, i64);
  const Tensor total = run([](const Tensor& x) {
    return foldl([](const Tensor& a, const Tensor& b) { return a + b; }, x,
                 {.spatial_dim = x.dim("time")});
  })(counts);
  EXPECT_EQ(str(total.type()), "i64[batch=2,feature=3]");
  expect_values(total, {0, 0, 0, 0, 0, 0});
}

TEST_P(EmptyEntriesTest, ABatchWithoutEntriesFoldsToNone) {
  const Dim none("batch", 0);
  const Dim time("time", zeros({none}, i32));
  const Tensor folded = run([](const Tensor& x) {
    return foldl(add, x, {.spatial_dim = x.dim("time")});
  })(ones({none, time}));
  EXPECT_EQ(str(folded.type()), "f32[batch=0]");
}

TEST_P(EmptyEntriesTest, ADimOfOneLengthGivesZerosToo) {
  const auto left =
      run([](const Tensor& x) { return foldl(add, x, {.spatial_dim = x.dim("time")}); });
  const auto right =
      run([](const Tensor& x) { return foldr(add, x, {.spatial_dim = x.dim("time")}); });
  for (const int length : {0, 1, 3}) {
    const Tensor x = ones({Dim("time", scalar(length)), batch});
    const double sum = (1 << length) - 1;
    expect_values(left(x), {sum, sum});
    expect_values(right(x), {sum, sum});
    const auto last =
        run([](const Tensor& x) { return gather(x, scalar(2), x.dim("time"), {.clip = true}); });
    expect_values(last(x), {length ? 1. : 0., length ? 1. : 0.});
  }
  // map therefore gives the rows of vmap.
  const Tensor x = ones({batch, time_of({0, 2})});
  const auto of_row = [](const Tensor& row) {
    return foldl(add, row, {.spatial_dim = row.dim("time")});
  };
  expect_values(run([=](const Tensor& x) { return map(of_row, x, {.spatial_dim = batch}); })(x),
                {0, 3});
}

/// Returns the last state of a scan that makes its first state of the first slice.
Tensor last_state(const Tensor& x, bool is_reverse) {
  return scan(Scan{.spatial_dim = x.dim("time"),
                   .initial = [](const Tensor& first) { return first * 3. + 1.; },
                   .xs = x,
                   .body =
                       [](const Tensor& x, const Tensor& s) {
                         const Tensor next = s * 2. + x;
                         return std::pair{next, next};
                       },
                   .reverse = is_reverse})
      .state;
}

TEST_P(EmptyEntriesTest, ScansBeginWithASliceOfZeros) {
  for (const bool is_reverse : {false, true}) {
    const auto last = run([=](const Tensor& x) { return last_state(x, is_reverse); });
    expect_values(last(ones({batch, time_of({0, 1})})), {1, 9});
    expect_values(last(ones({batch, time_of({0, 0})})), {1, 1});
    expect_values(last(ones({batch, Dim("time", scalar(0))})), {1, 1});
  }
}

TEST_P(EmptyEntriesTest, GradientsAreZeros) {
  const Tensor x = ones({batch, time_of({0, 0})}, f64);
  const Tensor w = scalar(0.5, f64);
  for (const bool is_reverse : {false, true}) {
    const auto loss = [=](const std::pair<Tensor, Tensor>& given) {
      const auto& [x, w] = given;
      const FoldOptions along{.spatial_dim = x.dim("time")};
      const auto step = [&, w = w](const Tensor& a, const Tensor& b) { return a * w + b; };
      const Tensor folded = is_reverse ? foldr(step, x, along) : foldl(step, x, along);
      return sum(folded * folded * w) + sum(last_state(x * w, is_reverse));
    };
    const auto [of_x, of_w] = run(grad(loss))(std::pair{x, w});
    EXPECT_EQ(of_x.dims(), x.dims());
    EXPECT_EQ(of_x.numel(), 0);
    expect_values(of_w, {0});
    const auto slope = [=](const Tensor& w) { return grad(loss)(std::pair{x, w}).second; };
    expect_values(run(grad(slope))(w), {0});
  }
}

TEST_P(EmptyEntriesTest, OtherLoopsOverNoElements) {
  const Tensor x = ones({batch, time_of({0, 0})});
  const auto options = [](const Tensor& x) { return FoldOptions{.spatial_dim = x.dim("time")}; };
  const Tensor mapped = run([=](const Tensor& x) {
    return map([](const Tensor& x) { return x * 2.; }, x, options(x));
  })(x);
  EXPECT_EQ(str(mapped.type()), "f32[time[batch=2],batch=2]");
  EXPECT_EQ(mapped.numel(), 0);
  expect_values(run([=](const Tensor& x) { return foldr(add, x, ones({batch}), options(x)); })(x),
                {1, 1});
  for (const bool is_reverse : {false, true}) {
    const Tensor partial = run([=](const Tensor& x) {
      return associative_scan([](const Tensor& a, const Tensor& b) { return a + b; }, x,
                              x.dim("time"), {.reverse = is_reverse});
    })(x);
    EXPECT_EQ(partial.dims(), x.dims());
  }
}

TEST_P(EmptyEntriesTest, WordsWithoutLettersInSentencesWithoutWords) {
  const Dim word("word", tensor({2, 0}, {batch}));
  for (const auto& lengths : {std::vector{0, 2, 0, 0}, {0, 0, 0, 0}}) {
    const Dim letter("letter", tensor(lengths, {batch, word}));
    const Tensor x = ones({batch, word, letter});
    const auto sums = run([](const Tensor& x) {
      return foldl([](const Tensor& a, const Tensor& b) { return a + b; }, x,
                   {.spatial_dim = x.dim("letter")});
    });
    expect_values(mask_padding(sums(x)), {0, lengths[1] * 1., 0, 0});
  }
}

Tensor total_of(const Tensor& x) {
  return foldl([](const Tensor& a, const Tensor& b) { return a + b; }, x,
               {.spatial_dim = x.dims()[0]});
}
using OfTensor = Tensor (*)(const Tensor&);

/// Functions that change the size of the dim of x, or give it another name, and fold along it.
const OfTensor kFoldsOfNewDims[] = {
    [](const Tensor& x) { return total_of(slice(x, x.dims()[0], 1)); },
    [](const Tensor& x) { return total_of(slice(x, x.dims()[0], 0, -1)); },
    [](const Tensor& x) { return total_of(slice(x, x.dims()[0], 1, {}, 2)); },
    [](const Tensor& x) { return total_of(slice(x, x.dims()[0], 1, {}, Dim("rest"))); },
    [](const Tensor& x) { return total_of(rename(slice(x, 0, 1), 0, Dim("other"))); },
    [](const Tensor& x) { return total_of(pad(slice(x, 0, 1), 0, 0, 0)); },
    [](const Tensor& x) {
      const Tensor rest = slice(x, 0, 1);
      return total_of(concat({rest, rest}, 0));
    },
    [](const Tensor& x) {
      const Tensor rest = slice(x, 0, 1);
      return total_of(split(concat({rest, rest}, 0), 0, 2)[0]);
    },
    [](const Tensor& x) {
      const Dim two("two", 2);
      return total_of(merge_dims(expand(slice(x, 0, 1), two), {Axis(0), Axis(1)}));
    },
    [](const Tensor& x) {
      const Dims parts{Dim("part"), Dim("one", 1)};
      return sum(total_of(split_dim(slice(x, 0, 1), 0, parts, {.fill = 0})));
    },
    [](const Tensor& x) {
      return total_of(max_pool(slice(x, 0, 1), 0, {.size = 1, .to = {Dim("pooled")}}));
    },
    [](const Tensor& x) {
      const Tensor rest = slice(x, 0, 1);
      return scan(Scan{.spatial_dim = rest.dims()[0],
                       .initial = [](const Tensor& first) { return first; },
                       .xs = rest,
                       .body =
                           [](const Tensor& x, const Tensor& s) {
                             return std::pair{s, s + x};
                           }})
          .state;
    }};

TEST_P(EmptyEntriesTest, DimsMadeOfADimWithLengthsHaveLengths) {
  for (const OfTensor fold : kFoldsOfNewDims) {
    SCOPED_TRACE(std::find(std::begin(kFoldsOfNewDims), std::end(kFoldsOfNewDims), fold) -
                 std::begin(kFoldsOfNewDims));
    const auto f = run(fold);
    const auto of_square = [=](const Tensor& x) {
      const Tensor y = fold(x);
      return y * y;
    };
    const auto slopes = run(grad(of_square));
    for (const int length : {1, 2}) {  // one element is left out
      const Tensor x = ones({Dim("time", scalar(length))}, f64) * 3.;
      expect_all_close(f(x), fold(x), 0);
      if (length == 1) {
        expect_values(f(x), {0});
        expect_values(slopes(x), {0});
      } else {
        EXPECT_NE(fold(x).item<double>(), 0);
        expect_all_close(slopes(x), grad(of_square)(x), 1e-12);
      }
    }
    if (!is_eager()) EXPECT_EQ(f.trace_count(), 1);
  }
}

TEST_P(EmptyEntriesTest, DimsMadeOfAFixedSizeKeepTheirErrors) {
  for (const OfTensor fold : kFoldsOfNewDims) {
    SCOPED_TRACE(std::find(std::begin(kFoldsOfNewDims), std::end(kFoldsOfNewDims), fold) -
                 std::begin(kFoldsOfNewDims));
    EXPECT_THROW(run(fold)(ones({Dim("n", 1)}, f64)), Error);
  }
}

TEST_P(EmptyEntriesTest, MapAndVmapSliceRowsWithLengthsAlike) {
  const Tensor x = tensor({1., 2., 3., 4., 5., 6.}, {batch, time_of({3, 1})}, f64);
  const auto rest = [](const Tensor& row) { return slice(row, row.dim("time"), 1); };
  const auto both = [](const Tensor& row) { return concat({row, row}, row.dim("time")); };
  const auto expect_rows = [&](const auto& f, const std::vector<double>& expected) {
    const Tensor mapped =
        run([=](const Tensor& x) { return map(f, x, {.spatial_dim = x.dim("batch")}); })(x);
    const Tensor rows = run([=](const Tensor& x) { return vmap(f, x.dim("batch"))(x); })(x);
    EXPECT_EQ(str(mapped.type()), str(rows.type()));
    EXPECT_EQ(mask_padding(mapped).to_vector<double>(), expected);
    EXPECT_EQ(mask_padding(rows).to_vector<double>(), expected);
  };
  expect_rows(rest, {2, 3, 0, 0});
  expect_rows(both, {1, 2, 3, 1, 2, 3, 4, 4, 0, 0, 0, 0});
}

TEST_P(EmptyEntriesTest, APlainSizeOfZeroIsAnError) {
  const auto fold = run([](const Tensor& x) { return foldl(add, x, {.name = "total"}); });
  EXPECT_EQ(message_of<ArgumentError>([&] { fold(zeros({0})); }),
            "foldl \"total\": xs have no elements to start from; give an initial value");
  const auto named = run([](const Tensor& x) {
    return foldr(add, x, {.spatial_dim = x.dim("time"), .name = "total"});
  });
  EXPECT_EQ(message_of<ArgumentError>([&] { named(zeros({Dim("time", 0)})); }),
            "foldr \"total\": xs have no elements to start from; give an initial value");
}

TEST(EmptyEntriesErrorsTest, ASizeThatOnlyARunKnows) {
  const auto of = [](const JitOptions& options) {
    return jit(
        [](const Tensor& x) {
          FoldOptions along{.name = "total"};
          if (x.type().is_named()) along.spatial_dim = x.dim("time");
          return foldl(add, x, along);
        },
        options);
  };
  const auto plain = of({.any_length = {{0, 0}}});
  expect_values(plain(ones({2})), {3});
  EXPECT_EQ(message_of<IndexError>([&] { plain(zeros({0})); }),
            "foldl \"total\": the first slice: index 0 is out of range for axis 0 of f32[0], which "
            "has size 0");
  const auto dynamic = of({.dynamic = {Dim("time")}});
  expect_values(dynamic(ones({Dim("time", 2)})), {3});
  EXPECT_EQ(message_of<IndexError>([&] { dynamic(zeros({Dim("time", 0)})); }),
            "foldl \"total\": the first slice: index 0 is out of range for axis time=0 of "
            "f32[time=0], which has size 0");
}

TEST(EmptyEntriesErrorsTest, ATraceOfADynamicSizeTellsFixedSizesFromLengths) {
  for (const Executor executor : {Executor::interpreter, Executor::plan, Executor::dataflow})
    for (const OfTensor fold : kFoldsOfNewDims) {
      SCOPED_TRACE(std::find(std::begin(kFoldsOfNewDims), std::end(kFoldsOfNewDims), fold) -
                   std::begin(kFoldsOfNewDims));
      const auto f = jit(fold, {.executor = executor, .dynamic = {Dim("n")}});
      const Tensor fixed = ones({Dim("n", 1)}, f64);
      for (int call = 0; call < 2; ++call) {
        EXPECT_GT(f(ones({Dim("n", 2)}, f64)).item<double>(), 0);
        EXPECT_THROW(f(fixed), IndexError);
      }
    }
}

TEST(NewDimsOfLengthsTest, OneTraceServesSlicesOfEachLength) {
  const auto f = jit([](const Tensor& x) { return sum(x); });
  for (const int length : {3, 4, 5}) {
    const Tensor x = ones({Dim("time", scalar(length))});
    expect_values(f(slice(x, 0, 1)), {length - 1.});
  }
  EXPECT_EQ(f.trace_count(), 1);
}

}  // namespace
}  // namespace reel
