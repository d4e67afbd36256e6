// Dims among the ys of scan, map and vmap: each is the dim of the stack whose element has it.
#include "reel/tests/modes.h"

namespace reel {
namespace {

class DimsAmongYsTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 2};
  const Dim words{"words", tensor({2, 1}, {batch})};
  const Dim letters{"letters", tensor({3, 1, 2, 0}, {batch, words})};
  const Tensor text = mask_padding(cast(reshape(range(12), {batch, words, letters}), f32));
};
REEL_IN_EVERY_MODE(DimsAmongYsTest);

struct Part {
  Tensor values;
  Dim dim;
};

TEST_P(DimsAmongYsTest, VaryingDimsFollowTheirStack) {
  const Dim time("time", 3);
  const auto f = run([&](const Tensor& counts) {
    return map(
        [](const Tensor& n) {
          const Dim place("place", n);
          return Part{range(place), place};
        },
        counts, {.spatial_dim = counts.dim("time")});
  });
  const Part part = f(tensor({2, 0, 3}, {time}));
  EXPECT_EQ(part.dim, part.values.dims().back());
  expect_values(part.dim.lengths(), {2, 0, 3});
}

/// Returns the words of a sentence in reverse order, and the Dim of their letters.
Part moved_words(const Tensor& sentence) {
  const Tensor moved = reverse(sentence, sentence.dim("words"));
  return {moved, moved.dim("letters")};
}

TEST_P(DimsAmongYsTest, DimsOfMovedSlicesFollowTheirStack) {
  const auto f =
      run([&](const Tensor& text) { return map(moved_words, text, {.spatial_dim = batch}); });
  const Part part = f(text);
  EXPECT_EQ(part.dim, part.values.dims().back());
  EXPECT_EQ(part.dim.length_dims(), (Dims{batch, words}));
  expect_values(mask_padding(part.dim.lengths()), {1, 3, 2, 0});
}

TEST_P(DimsAmongYsTest, ADimOfVmapIsTheDimOfItsTensor) {
  const auto f = run([&](const Tensor& text) { return vmap(moved_words, batch)(text); });
  const Part part = f(text);
  EXPECT_EQ(part.dim, part.values.dims().back());
  expect_values(mask_padding(part.dim.lengths()), {1, 3, 2, 0});
}

TEST_P(DimsAmongYsTest, ADimThatNoTensorHasStays) {
  const Dim other("other", tensor({4, 1}, {batch}));
  const auto f = run([&](const Tensor& text, const Tensor& numbers) {
    const Dim outside = numbers.dim("other");
    return map(
        [&](const Tensor& sentence) {
          return Part{sentence, outside};
        },
        text, {.spatial_dim = batch});
  });
  EXPECT_EQ(f(text, ones({batch, other})).dim, other);
}

TEST_P(DimsAmongYsTest, DimsFollowStacksThatEndEarly) {
  const auto f = run([&](const Tensor& text) {
    const auto [ys, state, dim] =
        scan(Scan{.spatial_dim = words,
                  .initial = zeros({batch}, i32),
                  .xs = text,
                  .cond = [](const Tensor& count) { return count < 1; },
                  .body =
                      [](const Tensor& word, const Tensor& count) {
                        return std::pair{Part{word, word.dim("letters")}, count + 1};
                      }});
    return ys;
  });
  const Part part = f(text);
  EXPECT_EQ(part.dim, part.values.dims().back());
  expect_values(part.dim.lengths(), {3, 2});
}

TEST_P(DimsAmongYsTest, DimsOfSlicesBecomeTheWholeDims) {
  const auto f = run([&](const Tensor& text) {
    return map(
        [](const Tensor& sentence) {
          return Part{sentence, sentence.dim("letters")};
        },
        text, {.spatial_dim = batch});
  });
  const Part part = f(text);
  EXPECT_EQ(part.dim, letters);
}

TEST_P(DimsAmongYsTest, ReversedEntriesKeepTheirOrder) {
  const auto f = run([&](const Tensor& text) {
    const auto [ys, state, dim] =
        scan(Scan{.spatial_dim = words,
                  .xs = text,
                  .body =
                      [&](const Tensor& word) {
                        const Dim kept("kept", sum(cast(word > 0, i32), word.dim("letters")));
                        return Part{expand(range(kept), {batch, kept}), kept};
                      },
                  .reverse = true});
    return ys;
  });
  const Part part = f(text);
  EXPECT_EQ(part.dim, part.values.dims().back());
  EXPECT_EQ(part.dim.length_dims(), (Dims{words, batch}));
  expect_values(mask_padding(part.dim.lengths()), {2, 2, 1, 0});
}

}  // namespace
}  // namespace reel
