// Tensors that lack a dim over which the lengths of another of their dims run: the other axis
// counts as full. Once entries of a loop have finished, it is as long as the longest running entry.
// Ops on it therefore stay in the loop, and rows are not cut into blocks.
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

/// w has letters and lacks time, over which their lengths run. A slice of it is cut to the letters
/// of the other slice, whether the scan is reversed or not, and whether it has a bound or not.
TEST_P(LengthsOfAbsentDimsTest, ReverseScansSliceATensorBesideOneThatHasAllLengths) {
  const Dim of_time("letters", tensor({2, 0, 0, 1, 4, 2, 3, 1, 0}, {batch, time}));
  const Tensor x = cumsum(full({batch, of_time, time}, 0.1, f64), of_time),
               w = cumsum(expand(full({of_time}, 0.2, f64), {batch, of_time}), of_time);
  const auto f = [&](std::optional<IterationCount> most, bool w_comes_first) {
    return [=, this](const Tensor& x, const Tensor& w) {
      const auto body = [=](const std::pair<Tensor, Tensor>& xs, const Tensor& s) {
        const auto& [x, w] = w_comes_first ? std::pair{xs.second, xs.first} : xs;
        const Tensor next = 0.5 * s + mean(w, {x.dim("letters")}) + sum(x);
        return std::pair{std::pair{w * s, x * s}, next};
      };
      const auto result = scan(Scan{.spatial_dim = batch,
                                    .initial = scalar(1.0, f64),
                                    .xs = w_comes_first ? std::pair{w, x} : std::pair{x, w},
                                    .body = body,
                                    .max_seq_len = most,
                                    .reverse = true});
      EXPECT_EQ(result.ys.first.dim("letters"), result.ys.second.dim("letters"));
      return Tensors{result.ys.first, result.ys.second, result.state};
    };
  };
  const Tensors expected = f(std::nullopt, false)(x, w);
  for (const bool w_comes_first : {false, true})
    for (const std::optional<IterationCount>& most :
         {std::optional<IterationCount>(), std::optional<IterationCount>(3)}) {
      const Tensors actual = run(f(most, w_comes_first))(x, w);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expect_all_close(mask_padding(actual[i]), mask_padding(expected[i]), 1e-12);
    }
}

TEST_P(LengthsOfAbsentDimsTest, TheFirstSlicesOfAScanHaveOneDim) {
  const Dim of_time("letters", tensor({2, 0, 0, 1, 4, 2, 3, 1, 0}, {batch, time}));
  const Tensor x = cumsum(full({batch, of_time, time}, 0.1, f64), of_time),
               w = cumsum(expand(full({of_time}, 0.2, f64), {batch, of_time}), of_time);
  using Pair = std::pair<Tensor, Tensor>;
  for (const bool is_reverse : {false, true}) {
    const auto first = [](const Pair& xs) { return mean(xs.second, {xs.first.dim("letters")}); };
    const auto f = [&](const Tensor& x, const Tensor& w) {
      const auto body = [](const Pair&, const Tensor& s) { return std::pair{None{}, s}; };
      return scan(Scan{.spatial_dim = batch,
                       .initial = first,
                       .xs = std::pair{x, w},
                       .body = body,
                       .reverse = is_reverse})
          .state;
    };
    expect_values(run(f)(x, w), {is_reverse ? 0.4 : 0.3}, 1e-12);
  }
}

/// The letters lack the batch: in the reversed entries each has another word at a position.
TEST_P(LengthsOfAbsentDimsTest, ReverseScansMoveLengthsThatLackTheEntries) {
  const Dim of_time("letters", tensor({2, 1, 3}, {time}));
  const Tensor x =
      cumsum(full({time, batch, of_time}, 0.1, f64), of_time) + cast(range(batch), f64);
  const auto f = [&](bool is_reverse, std::optional<IterationCount> most) {
    return [=, this](const Tensor& x) {
      const auto body = [](const Tensor& x, const Tensor& s) {
        return std::pair{x, Tensor(0.5 * s + mean(x, x.dim("letters")))};
      };
      const auto result = scan(Scan{.spatial_dim = time,
                                    .initial = zeros({batch}, f64),
                                    .xs = is_reverse ? x : reverse(x, time),
                                    .body = body,
                                    .max_seq_len = most,
                                    .reverse = is_reverse});
      return Tensors{result.state, mean(result.ys, result.ys.dim("letters"))};
    };
  };
  for (const std::optional<IterationCount>& most :
       {std::optional<IterationCount>(), std::optional<IterationCount>(2)}) {
    const Tensors expected = f(false, most)(x), actual = run(f(true, most))(x);
    expect_all_close(actual[0], expected[0], 1e-12);
    expect_all_close(mask_padding(reverse(actual[1], 0)), mask_padding(expected[1]), 1e-12);
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
