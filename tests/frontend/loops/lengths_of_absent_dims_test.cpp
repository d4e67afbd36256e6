// Tensors that lack a dim over which the lengths of another of their dims run: that axis counts as
// full. In a loop whose entries have ended it is as long as the longest running entry, so ops on it
// stay in the loop, and rows are not cut into blocks.
#include "reel/tests/modes.h"

namespace reel {
namespace {

class LengthsOfAbsentDimsTest : public InEveryMode {
 protected:
  /// letters has a length for each word of each entry; the tensors of a test have no words.
  Dim batch{"batch", 3}, words{"words", 2}, time{"time", tensor({1, 3, 2}, {batch})},
      letters{"letters", tensor({3, 0, 1, 1, 2, 1}, {batch, words})};
};
REEL_IN_EVERY_MODE(LengthsOfAbsentDimsTest);

TEST_P(LengthsOfAbsentDimsTest, InARaggedScan) {
  for (const bool reverse : {false, true})
    for (const Dims& dims : {Dims{time, letters}, Dims{time, batch, letters}}) {
      const auto f = [&](const Tensor& x, const Tensor& s) {
        const auto body = [&](const Tensor& x_t, const Tensor& s) {
          const Tensor next = 0.5 * s + sum(sin(x_t) + 1., letters);
          return std::pair{Tensors{cast(x_t > 0., i32), sin(x_t) + 1.}, next};
        };
        const auto made = scan(
            Scan{.spatial_dim = time, .initial = s, .xs = x, .body = body, .reverse = reverse});
        return Tensors{made.ys[0], made.ys[1], made.state};
      };
      const Tensor x = sin(cumsum(ones(dims, f64), time) * 3.), s = zeros({batch}, f64);
      const Tensors expected = f(x, s), actual = run(f)(x, s);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expect_all_close(mask_padding(actual[i]), mask_padding(expected[i]), 1e-12);
      const auto loss = [&](const Tensor& x) {
        const Tensors all = f(x, s);
        return sum(square(all[1])) + sum(all[2]);
      };
      expect_all_close(mask_padding(run(grad(loss))(x)), mask_padding(grad(loss)(x)), 1e-12);
    }
}

TEST(LengthsOfAbsentDimsOfRowsTest, RowsAreNotCut) {
  const Dim batch("batch", 3), words("words", 2),
      letters("letters", tensor({1, 0, 3, 2, 2, 1}, {batch, words}));
  const auto f = [&](const Tensor& x) {
    const auto body = [](const Tensor& x_t, const Tensor& s) {
      const Tensor next = tanh(s + x_t);
      return std::pair{next, next};
    };
    return scan(Scan{.spatial_dim = x.dim("steps"),
                     .initial = zeros({batch, letters}, f64),
                     .xs = x,
                     .body = body})
        .ys;
  };
  const Tensor x = sin(cumsum(ones({Dim("steps", 4), batch, letters}, f64), 0));
  JitOptions options;
  options.passes.block_rows = 1;
  expect_all_close(jit(f, options)(x), f(x), 1e-12);
}

}  // namespace
}  // namespace reel
