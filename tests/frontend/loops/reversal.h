// tests/frontend/loops/reversal.h — ReversalTest, which compares the gradients of a function in all
// its forms.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ReversalTest : public ::testing::Test {
 protected:
  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({3, 2, 1}, {batch})};
  const Tensor x = tensor({.5, -.3, .8, 1.2, .4, kNan, -.7, kNan, kNan}, {batch, time}, f64);
  const Tensor s0 = tensor({.1, .2, .3}, {batch}, f64);
  const Tensor w = scalar(0.9, f64);

  using In = std::vector<Tensor>;
  using Fn = std::function<Tensor(const In&)>;

  static In valid(In gradients) {
    for (Tensor& g : gradients) g = mask_padding(g);
    return gradients;
  }
  /// Expects that first and second gradients agree in eager mode, traced, and for a jitted function
  /// under a tape.
  static void expect_all_forms_agree(const Fn& f, const In& in) {
    const auto twice = [](const auto& first) {
      return [first](const In& x) {
        Tensor total = scalar(0.0, f64);
        for (const Tensor& g : first(x)) total = total + sum(square(mask_padding(g)));
        return total;
      };
    };
    const In first = valid(grad(f)(in)), second = valid(grad(twice(grad(f)))(in));
    const auto compare = [&](const In& got, const In& expected) {
      for (std::size_t i = 0; i < expected.size(); ++i)
        expect_all_close(mask_padding(got[i]), expected[i], 1e-12);
    };
    compare(jit(grad(f))(in), first);
    compare(grad(jit(f))(in), first);
    compare(jit(grad(twice(grad(f))))(in), second);
    compare(grad(twice(grad(jit(f))))(in), second);
    compare(grad(jit(twice(grad(f))))(in), second);
    // Central differences of the value, at valid entries.
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::vector<double> at = values_of(in[i]),
                                is_valid = values_of(mask_padding(ones_like(in[i])));
      for (std::size_t k = 0; k < at.size(); ++k) {
        if (!is_valid[k]) continue;
        const auto moved = [&](double by) {
          In y = in;
          std::vector<double> values = at;
          values[k] += by;
          y[i] = in[i].rank() ? tensor(values, in[i].dims()) : scalar(values[0], f64);
          return f(y).item<double>();
        };
        EXPECT_NEAR(values_of(first[i])[k], (moved(1e-6) - moved(-1e-6)) / 2e-6, 1e-6)
            << "input " << i << ", entry " << k;
      }
    }
  }
};

}  // namespace reel
