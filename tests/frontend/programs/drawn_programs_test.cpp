// Programs that the fuzzer drew and made smaller, and that failed before.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class DrawnProgramsTest : public InEveryMode {
 protected:
  /// Expects that value, first and second gradients agree with eager mode and with differences, and
  /// so do the second gradients of f, run in the mode, that eager mode takes.
  template <class F>
  void expect_derivatives(const F& f, const Tensor& x) const {
    const auto slope_of = [](const auto& f) {
      return [f](const Tensor& x) -> Tensor { return sum(sin(mask_padding(grad(f)(x)))); };
    };
    const auto slope = slope_of(f);
    const Tensor value = f(x), first = grad(f)(x), second = grad(slope)(x);
    const auto agree = [](const Tensor& actual, const Tensor& expected) {
      expect_all_close(mask_padding(actual), mask_padding(expected), 1e-11);
    };
    agree(run(f)(x), value);
    agree(run(grad(f))(x), first);
    agree(run(grad(slope))(x), second);
    if (is_eager()) {
      expect_gradient_of(f, x, mask_padding(first), 1e-6);
      expect_gradient_of(slope, x, mask_padding(second), 1e-5);
    } else {
      agree(grad(slope_of(jit(f, options_of(GetParam()))))(x), second);
    }
  }
};
REEL_IN_EVERY_MODE(DrawnProgramsTest);

/// jacfwd makes two dims of one size in each iteration.
TEST_P(DrawnProgramsTest, AJacobianOfACapturedTensorInAScan) {
  const Dim in("in", 2), steps("steps", 2);
  for (const int rows : {2, 0}) {
    const Dim batch("batch", scalar(rows));
    const Tensor x = sin(cumsum(full({batch, in}, 0.4, f64), in) + cast(range(batch), f64));
    const auto f = [&](const Tensor& x) -> Tensor {
      const auto body = [&](const Tensor& u, const Tensor& s) {
        const auto squares = [&](const Tensor& t) -> Tensor { return cumsum(t * t, in); };
        return std::pair{None{}, Tensor(s * u * sum(sin(jacfwd(squares)(x))))};
      };
      return scan(Scan{.spatial_dim = steps,
                       .initial = sum(x),
                       .xs = full({steps}, 0.5, f64),
                       .body = body})
          .state;
    };
    expect_derivatives(f, x);
  }
}

/// The dims of recomputed iterations: letters, and the dims that letters run over.
TEST_P(DrawnProgramsTest, AJacobianOfARaggedTensorInAScanWithCheckpoints) {
  for (const auto& lengths : {std::vector<int>{1, 2}, std::vector<int>{2, 0}, std::vector<int>{}}) {
    const Dim batch("batch", scalar(static_cast<int>(lengths.size())));
    const Dim time("time", tensor(lengths, {batch}));
    const Tensor x = mask_padding(sin(cumsum(full({batch, time}, 0.4, f64), time) * 2.0));
    const auto f = [&](const Tensor& x) -> Tensor {
      const Dim batch = x.dim("batch"), time = x.dim("time");
      const auto body = [&](const Tensor&) {
        const auto squares = [&](const Tensor& t) -> Tensor { return cumsum(t * t, time); };
        return sum(sin(jacfwd(squares)(x)));
      };
      const Tensor ys =
          scan(
              Scan{.spatial_dim = batch, .xs = x, .body = body, .checkpoint = Checkpoint::every(1)})
              .ys;
      const Tensor rows = vmap([&](const Tensor&) { return ys; }, time)(x);
      return sum(0.5 * rows + sin(rows));
    };
    expect_derivatives(f, x);
  }
}

/// The second loop runs for its checks only. Its types are known when it runs.
TEST_P(DrawnProgramsTest, AnUnreadScanAlongADimThatAScanFinds) {
  for (const int rows : {9, 2, 0}) {
    const Dim batch("batch", scalar(rows));
    const Dim time("time", cast(range(batch), i32) % 4 + 1);
    const Tensor x = mask_padding(cumsum(full({batch, time}, 0.1, f64), time));
    const auto f = [&](const Tensor& x) -> Tensor {
      const Dim batch = x.dim("batch"), time = x.dim("time");
      const Tensor always = full({batch}, true, boolean);
      const auto found = scan(Scan{
          .spatial_dim = time,
          .cond_dims = {batch},
          .initial = zeros({}, f64),
          .xs = x,
          .cond = [&](const Tensor&) { return always; },
          .body =
              [](const Tensor& x, const Tensor& s) {
                return std::pair{x * 2.0, s};
              },
      });
      const auto checked = [](const Tensor& x, const Tensor& s) {
        const Tensor next = s + x;
        const Tensor is_small = assert_that(next < 100.0, "sums are small", next);
        return std::pair{None{}, Tensor(where(is_small, next, 0.0))};
      };
      scan(Scan{.spatial_dim = found.dim,
                .initial = zeros({batch}, f64),
                .xs = found.ys,
                .body = checked});
      return sum(x * x * x);
    };
    expect_derivatives(f, x);
  }
}

/// w lacks words, over which the lengths of letters run.
TEST_P(DrawnProgramsTest, AReverseScanOverSlicesAndATensorWithoutADimOfTheirLengths) {
  const Dim batch("batch", 3);
  const Dim words("words", tensor({1, 3, 2}, {batch}));
  const Dim letters("letters", tensor({2, 0, 0, 1, 4, 2, 3, 1, 0}, {batch, words}));
  const Tensor x = mask_padding(cumsum(full({batch, letters, words}, 0.1, f64), letters));
  for (const int most : {3, 2, 0}) {
    const auto f = [&](const Tensor& x) -> Tensor {
      const Tensor w = expand(cumsum(full({letters}, 0.2, f64), letters), {batch, letters});
      const auto body = [&](const std::pair<Tensor, Tensor>& xs, const Tensor& s) {
        const auto& [x, w] = xs;
        const Tensor next = 0.5 * s + mean(w, {x.dim("letters")}) * sum(sin(x));
        return std::pair{next, next};
      };
      const auto result = scan(Scan{.spatial_dim = batch,
                                    .initial = scalar(1.0, f64),
                                    .xs = std::pair{x, w},
                                    .body = body,
                                    .max_seq_len = most,
                                    .reverse = true});
      return sum(square(result.ys)) + result.state;
    };
    expect_derivatives(f, x);
  }
}

}  // namespace
}  // namespace reel
