// tests/compilers/expect.h — checks of the programs in this folder: one that fails ends the
// program.
#pragma once

#include <reel/reel.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// Ends the program with code 1, and prints the line, unless the condition holds.
inline void expect(bool holds, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: does not hold\n", file, line);
  std::exit(1);
}
/// Expects the elements of x, up to 1e-5.
inline void expect_values(const reel::Tensor& x, const std::vector<double>& expected,
                          const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const std::vector<double> values = cast(x, reel::f64).to_vector<double>();
  bool are_close = values.size() == expected.size();
  for (std::size_t i = 0; are_close && i < values.size(); ++i)
    are_close = std::abs(values[i] - expected[i]) <= 1e-5 * std::max(1.0, std::abs(expected[i]));
  expect(are_close, file, line);
}
