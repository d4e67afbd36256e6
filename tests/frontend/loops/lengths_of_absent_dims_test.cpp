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

/// Once the longest entry has ended, the body sees fewer columns and rows of the matrix.
TEST(LengthsOfAbsentDimsOfRowsTest, MatricesAreNotPacked) {
  const Dim batch("batch", 2), in("in", 128);
  for (const bool is_large : {false, true}) {
    const int n = is_large ? 200 : 2;
    const Dim steps("steps", tensor({1, 3}, {batch})), units("units", tensor({n, n / 2}, {batch}));
    const Tensor x = sin(cumsum(ones({steps, batch, in}, f32), 0));
    const Tensor columns = cos(reshape(range(128 * n, f32), {in, units}));
    const Tensor rows = transpose(columns, {units, in});
    const auto f = [&](const Tensor& columns, const Tensor& rows) {
      const auto body = [&](const Tensor& x, const Tensor& s) {
        const Tensor wide = tanh(matmul(x + s, columns, in) * 0.1);
        const Tensor next = matmul(wide, rows, units) * 0.1;
        return std::pair{next, next};
      };
      return scan(Scan{.spatial_dim = steps,
                       .initial = zeros({batch, in}, f32),
                       .xs = x,
                       .body = body})
          .ys;
    };
    const auto loss = [&](const Tensor& columns, const Tensor& rows) {
      return sum(square(f(columns, rows)));
    };
    JitOptions options;
    options.passes.pack_small = true;
    expect_all_close(jit(f, options)(columns, rows), f(columns, rows), 1e-4);
    const auto slope = [&](const Tensor& columns, const Tensor& rows) {
      return grad([&](const Tensor& columns) { return loss(columns, rows); })(columns);
    };
    expect_all_close(jit(slope, options)(columns, rows), slope(columns, rows), 1e-3);
  }
}

}  // namespace
}  // namespace reel
