// An iteration that runs twice makes its dims twice: residuals that one run saved meet residuals of
// another run in a second gradient. Each symbol of the body is one dim all the same, in plans too.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

/// A scan whose slices have letters of their own, so that each iteration makes a dim.
struct WordsOf {
  explicit WordsOf(std::int64_t count)
      : words("words", count),
        letters("letters", full({batch, words}, 2, i32)),
        x(cumsum(full({words, batch, letters}, 0.7, f64), letters)) {}

  /// policy: of the scan.
  auto loss(const Checkpoint& policy) const {
    return [this, policy](const Tensor& text) {
      const auto result = scan(Scan{.spatial_dim = words,
                                    .xs = text,
                                    .body =
                                        [this](const Tensor& word) {
                                          return logsumexp(cos(word), {word.dim("letters"), batch});
                                        },
                                    .checkpoint = policy});
      return sum(sin(text + result.ys));
    };
  }

  Dim batch{"batch", 2}, words, letters;
  Tensor x;
};

/// Handles each value whose op's name begins with one of these letters so.
Checkpoint saving_so(Saving saving, const std::string& letters) {
  return Checkpoint::every(3).where([saving, letters](const StepValue& value) {
    return letters.find(value.op[0]) == std::string::npos ? Saving::by_default : saving;
  });
}

TEST(DimsOfRecomputedStepsTest, SecondGradientsArePlanned) {
  for (const std::int64_t count : {1, 2, 3})
    for (const auto& [saving, letters] : std::vector<std::pair<Saving, std::string>>{
             {Saving::keep, "csw"}, {Saving::recompute, "cs"}, {Saving::spill, "csw"}}) {
      SCOPED_TRACE(str(count, " words, saving ", static_cast<int>(saving), " of ", letters));
      const WordsOf text(count);
      const auto slope = [&](const Checkpoint& policy) {
        return [&text, policy](const Tensor& x) { return sum(sin(grad(text.loss(policy))(x))); };
      };
      const auto planned = jit(grad(slope(saving_so(saving, letters))));
      const Tensor actual = planned(text.x);
      EXPECT_EQ(planned.explain().find("its plan failed"), std::string::npos)
          << planned.explain().substr(0, 600);
      expect_all_close(actual, grad(slope(Checkpoint()))(text.x), 1e-12);
      expect_gradient_of(slope(Checkpoint()), text.x, actual, 1e-6);
    }
}

}  // namespace
}  // namespace reel
