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

TEST_P(DimsAmongYsTest, DimsOfMovedSlicesFollowTheirStack) {
  const auto f = run([&](const Tensor& text) {
    return map(
        [](const Tensor& sentence) {
          const Tensor moved = reverse(sentence, sentence.dim("words"));
          return Part{moved, moved.dim("letters")};
        },
        text, {.spatial_dim = batch});
  });
  const Part part = f(text);
  EXPECT_EQ(part.dim, part.values.dims().back());
  EXPECT_EQ(part.dim.length_dims(), (Dims{batch, words}));
  expect_values(mask_padding(part.dim.lengths()), {1, 3, 2, 0});
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
    const auto [ys, state, dim] = scan(Scan{.spatial_dim = words,
                                            .xs = text,
                                            .body =
                                                [](const Tensor& word) {
                                                  const Tensor kept = pack(word, word > 0);
                                                  return Part{kept, kept.dims().back()};
                                                },
                                            .reverse = true});
    return ys;
  });
  const Part part = f(text);
  EXPECT_EQ(part.dim, part.values.dims().back());
}

TEST_P(DimsAmongYsTest, ADimOfVmapIsTheDimOfItsTensor) {
  const auto f = run([&](const Tensor& text) {
    return vmap(
        [](const Tensor& sentence) {
          const Tensor moved = reverse(sentence, sentence.dim("words"));
          return Part{moved, moved.dim("letters")};
        },
        batch)(text);
  });
  const Part part = f(text);
  EXPECT_EQ(part.dim, part.values.dims().back());
}

}  // namespace
}  // namespace reel
