// tests/cases/returnn/returnn.h — shared inputs of the cases after RETURNN: three entries of
// lengths 3, 2, 1.
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

  /// Rows of x1 (padding: -): 1 2 3, 10 20 -, 100 - -.
  Tensor x1(double padding, DType dtype = f32) const {
    return tensor(std::vector<double>{1, 2, 3, 10, 20, padding, 100, padding, padding},
                  {batch, time}, dtype);
  }
  /// Rows of x2 (padding: -): 1 2 3, 4 5 -, 7 - -.
  Tensor x2(double padding, DType dtype = f32) const {
    return tensor(std::vector<double>{1, 2, 3, 4, 5, padding, 7, padding, padding}, {batch, time},
                  dtype);
  }

  /// Returns the gradient of f at x in this mode, and expects that it agrees with central
  /// differences. x: f64, with any padding. Padding of the gradient has no meaning and is returned
  /// as 0.
  template <class F, class Tree>
  Tree checked_gradient(const F& f, const Tree& x, double tolerance = 1e-6,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    const Tree gradient =
        tree_map([](const Tensor& g) { return mask_padding(g); }, run(grad(f))(x));
    expect_gradient_of(f, x, gradient, tolerance, file, line);
    return gradient;
  }
};

/// Values of padding that each test runs with: a number that would show in a result, and NaN.
constexpr double kPaddings[] = {99, kNan};

/// Expects these values for the tensor transposed to `dims`, with padding as 0.
inline void expect_in_order(const Tensor& x, const Dims& dims, const std::vector<double>& expected,
                            double tolerance = 1e-5, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  expect_values(mask_padding(transpose(x, dims)), expected, tolerance, file, line);
}

}  // namespace reel
