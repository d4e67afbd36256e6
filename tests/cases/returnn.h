// tests/cases/returnn.h — what the cases after RETURNN have in common: three entries of lengths 3,
// 2, 1.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

class ReturnnCase : public InEveryMode {
 protected:
  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({3, 2, 1}, {batch})};

  /// 1 2 3, 10 20 -, 100 - -
  Tensor x1(double padding, DType dtype = f32) const {
    return tensor(std::vector<double>{1, 2, 3, 10, 20, padding, 100, padding, padding},
                  {batch, time}, dtype);
  }
  /// 1 2 3, 4 5 -, 7 - -
  Tensor x2(double padding, DType dtype = f32) const {
    return tensor(std::vector<double>{1, 2, 3, 4, 5, padding, 7, padding, padding}, {batch, time},
                  dtype);
  }

  /// The gradient of f at x (f64, whatever is in its padding) in this mode: it agrees with central
  /// differences. Padding is 0 in what is returned, for that means nothing.
  template <class F, class Tree>
  Tree checked_gradient(const F& f, const Tree& x, double tolerance = 1e-6,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    const Tree gradient =
        tree_map([](const Tensor& g) { return mask_padding(g); }, run(grad(f))(x));
    expect_gradient_of(f, x, gradient, tolerance, file, line);
    return gradient;
  }
};

/// What padding holds when a test runs: numbers that would be seen in a result, and NaN.
constexpr double kPaddings[] = {99, kNan};

/// The values of a tensor with its dims in this order, padding as 0.
inline void expect_in_order(const Tensor& x, const Dims& dims, const std::vector<double>& expected,
                            double tolerance = 1e-5, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  expect_values(mask_padding(transpose(x, dims)), expected, tolerance, file, line);
}

}  // namespace reel
