// Dims that iterations of a loop make, and make again in the loop of its gradient, where both are
// known by their sizes and lengths.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class DimsMadeTwiceTest : public InEveryMode {};
REEL_IN_EVERY_MODE(DimsMadeTwiceTest);

// In a row the words are as many as the steps of every column that the scan makes, and the letters
// of both have equal lengths: over the words, and over the steps.
TEST_P(DimsMadeTwiceTest, LettersOfStepsAreNotThoseOfWords) {
  const Dim rows("rows", 2), columns("columns", 2);
  const auto row = [&](const Tensor& x) {
    const auto copied =
        scan(Scan{.spatial_dim = x.dim("words"),
                  .cond_dims = {columns},
                  .initial = None{},
                  .xs = x * sum(x),
                  .cond = [&](const None&) { return full({columns}, true, boolean); },
                  .body =
                      [](const Tensor& letters, const None&) {
                        return std::pair{letters, None{}};
                      }});
    return sum(0.5 * copied.ys + sin(copied.ys));
  };
  const auto each = [&](const Tensor& x) { return map(row, x, {.spatial_dim = x.dim("rows")}); };
  const auto tangent =
      run([&](const Tensor& x, const Tensor& v) { return jvp(each, x, v).second; });
  const auto gradient = run(grad([&](const Tensor& x) { return sum(each(x)); }));
  for (const auto& counts : {std::vector{2, 1}, std::vector{0, 2}, std::vector{0, 0}}) {
    const Dim words("words", tensor(counts, {rows}));
    const Tensor one = ones({rows, words, columns}, i32);
    const Dim letters("letters", mask_padding(cumsum(one, words) + cumsum(one, columns) - 2));
    const Tensor x =
        mask_padding(cumsum(full({rows, words, letters, columns}, 0.125, f64), letters) - 0.25);
    const Tensor v = mask_padding(cos(x)), slopes = mask_padding(gradient(x));
    expect_gradient_of([&](const Tensor& x) { return sum(each(x)); }, x, slopes);
    expect_all_close(tangent(x, v), sum(slopes * v, {words, letters, columns}), 1e-12);
  }
}

}  // namespace
}  // namespace reel
