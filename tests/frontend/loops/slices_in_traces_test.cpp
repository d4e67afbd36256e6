// A slice that was made outside of a trace is found by the whole dim inside of it, whichever of the
// two is an argument and whichever is captured.
#include "reel/tests/frontend/loops/words_and_letters.h"
#include "reel/tests/gradients.h"

namespace reel {
namespace {

class SlicesInTracesTest : public WordsAndLetters {
 protected:
  Tensor word(const Tensor& x) const { return gather(x, scalar(1), words); }
  template <class F>
  void expect_gradients(const F& f) const {
    const auto loss = [&](const Tensor& x) { return sum(square(f(x))); };
    expect_gradient_of(loss, text(0), mask_padding(run(grad(loss))(text())), 1e-6);
    const auto slope = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
    expect_gradient_of(slope, text(0), mask_padding(run(grad(slope))(text())), 1e-4);
  }
  /// A number for each place in a word, of the whole dim.
  Tensor places() const { return cast(range(letters) + 1, f64); }
};
REEL_IN_EVERY_MODE(SlicesInTracesTest);

/// The words are [3] and [8 9]: the sums of products with [1 2 3] are 3 and 26.
const Words kWeighted{3, 26};
/// After two iterations of s = s * places.
const Words kTwice{3, 44};

TEST_P(SlicesInTracesTest, ACapturedSliceMeetsACapturedWholeDim) {
  const auto f = [&](const Tensor& x) {
    const Tensor outside = word(x), numbers = places();
    return checkpoint([&](const Tensor& one) { return sum(outside * numbers * one, letters); })(
        scalar(1., f64));
  };
  EXPECT_EQ(valid(run(f)(text())), kWeighted);
  expect_gradients(f);
}

TEST_P(SlicesInTracesTest, AnArgumentIsASliceOfACapturedWholeDim) {
  const auto f = [&](const Tensor& x) {
    const Tensor numbers = places();
    return checkpoint([&](const Tensor& w) { return sum(w * numbers, letters); })(word(x));
  };
  EXPECT_EQ(valid(run(f)(text())), kWeighted);
  expect_gradients(f);
}

TEST_P(SlicesInTracesTest, ACapturedSliceMeetsTheWholeDimOfAnArgument) {
  const auto f = [&](const Tensor& x) {
    const Tensor outside = word(x);
    return checkpoint([&](const Tensor& numbers) { return sum(outside * numbers, letters); })(
        places());
  };
  EXPECT_EQ(valid(run(f)(text())), kWeighted);
  expect_gradients(f);
}

TEST_P(SlicesInTracesTest, ACapturedSliceIsTheStateOfALoopThatCapturesTheWholeDim) {
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(1)}) {
    const auto f = [&](const Tensor& x) {
      const Tensor outside = word(x), numbers = places();
      return checkpoint([&](const Tensor& one) {
        return fori_loop(0, 2, [&](const Tensor&, const Tensor& s) { return s * numbers * one; },
                         outside, {.checkpoint = policy});
      })(scalar(1., f64));
    };
    EXPECT_EQ(valid(sum(run(f)(text()), letters)), kTwice);
    expect_gradients(f);
  }
}

TEST_P(SlicesInTracesTest, BodiesReadSlicesOnceEntriesHaveFinished) {
  const auto f = [&](const Tensor& x) {
    const Tensor outside = word(x), numbers = places();
    const Dim time("time", tensor({2, 1}, {batch}));
    return foldl(
        [&](const Tensor& sum_before, const Tensor& step) {
          const auto weighted =
              checkpoint([&](const Tensor& one) { return sum(outside * numbers * one, letters); });
          return sum_before + weighted(step);
        },
        full({time, batch}, 1., f64), full({batch}, 0., f64), {.spatial_dim = time});
  };
  EXPECT_EQ(valid(run(f)(text())), (Words{6, 26}));
  expect_gradients(f);
}

/// The entries are words, and their Dim has lengths itself. Finished entries see that Dim
/// unchanged, without the lengths of a running entry. The body mixes entries: the first sentence
/// reads the second. Its words sum to 24, then to 20, as [7] has finished and is a copy of [1 2],
/// then to 30 for two copies of [4 5 6].
TEST_P(SlicesInTracesTest, SentencesMoveInABodyWhoseWordsFinish) {
  const auto f = [&](const Tensor& x) {
    return foldl(
        [&](const Tensor& before, const Tensor&) {
          return before + sum(reverse(x, batch), {words, letters});
        },
        x, full({batch, words}, 0., f64), {.spatial_dim = letters});
  };
  EXPECT_EQ(by_sentence(run(f)(text())), (Words{44, 24, 74, 21, 42}));
  expect_gradients(f);
}

/// Without letters, finished sentences have the same lengths of letters as running ones. The words
/// that those lengths run over differ. The loop inside takes one Dim of words from its state and
/// one from a captured value.
TEST_P(SlicesInTracesTest, WordsWithoutLettersInABodyWhoseSentencesFinish) {
  const auto f = [&](const Tensor& x) {
    const Dim letters = x.dim("letters"), words = x.dim("words");
    return foldl(
        [&](const Tensor& before, const Tensor& step) {
          const Tensor sums = fori_loop(
              0, 2,
              [&](const Tensor&, const Tensor& s) {
                return s + sum(sum(x, {letters, batch}));
              },
              full({letters, batch}, 0., f64));
          return before + step + sum(sums, letters);
        },
        full({words, batch}, 3., f64), full({batch}, 0., f64), {.spatial_dim = words});
  };
  const Dim none("letters", full({batch, words}, 0, i32));
  expect_values(run(f)(full({none, batch, words}, 1., f64)), {9, 6});
}

/// A trace that took an argument's Dim for the whole of a captured slice serves that Dim only.
TEST(SlicesInJitTest, AnArgumentOfAnotherDimIsRefused) {
  const Dim batch("batch", 2), words("words", 2);
  const auto letters_of = [&] { return Dim("letters", tensor({{1, 2}, {2, 3}}, {batch, words})); };
  const Dim letters = letters_of();
  const Tensor slice = gather(full({batch, words, letters}, 2., f64), scalar(1), words);
  const auto numbers = [](const Dim& dim) { return cast(range(dim) + 1, f64); };
  const auto f = jit([&](const Tensor& x) { return sum(slice * x); });
  EXPECT_EQ(values_of(f(numbers(letters))), (Words{18}));
  EXPECT_THROW(f(numbers(letters_of())), ShapeError);
  EXPECT_EQ(values_of(f(numbers(letters))), (Words{18}));

  const Tensor whole = numbers(letters);
  const auto g = jit([&](const Tensor& x) { return sum(whole * x); });
  EXPECT_EQ(values_of(g(slice)), (Words{18}));
  const Dim other = letters_of();
  EXPECT_THROW(g(gather(full({batch, words, other}, 2., f64), scalar(1), words)), ShapeError);
}

/// A trace is not bound to the Dim of a captured slice that none of its ops meets.
TEST(SlicesInJitTest, AnArgumentIsNotBoundToACapturedSliceThatItDoesNotMeet) {
  const Dim batch("batch", 2), words("words", 2);
  const auto letters_of = [&] { return Dim("letters", tensor({{1, 2}, {2, 3}}, {batch, words})); };
  const Dim letters = letters_of();
  const Tensor slice = gather(full({batch, words, letters}, 2., f64), scalar(1), words);
  const auto f = jit([&](const Tensor& x) { return sum(slice) + sum(x); });
  for (const Dim& dim : {letters, letters_of()})
    EXPECT_EQ(values_of(f(full({batch, words, dim}, 1., f64))), (Words{18}));
}

}  // namespace
}  // namespace reel
