// tests/check.h — checks of error messages and of tensor values. Failures are reported at the
// caller's line.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns the message of the E that f throws. If f throws nothing or another type, fails and
/// returns a text that says so.
template <class E, class F>
std::string message_of(F f, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  std::string instead = "(nothing was thrown)";
  try {
    (void)f();
  } catch (const E& error) {
    if constexpr (requires { error.message(); })
      return error.message();  // without the prefix that names the test's line
    else
      return error.what();
  } catch (const std::exception& error) {
    instead = str("(an exception of another type: ", error.what(), ")");
  } catch (...) {
    instead = "(something that is no std::exception was thrown)";
  }
  ADD_FAILURE_AT(file, line) << instead;
  return instead;
}

/// Returns true if both are equal within the tolerance, which is relative if |expected| > 1. NaN
/// equals NaN, and an infinity equals itself.
inline bool is_close(double actual, double expected, double tolerance) {
  return actual == expected || (std::isnan(actual) && std::isnan(expected)) ||
         (std::isfinite(expected) &&
          std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected)));
}

/// Returns all elements, padding included, for any dtype.
inline std::vector<double> values_of(const Tensor& tensor) {
  return cast(tensor, f64).to_vector<double>();
}

namespace check_detail {

inline std::string list_of(const std::vector<double>& values) {
  constexpr std::size_t kMaxPrinted = 100;
  std::string text = "{";
  for (std::size_t i = 0; i < std::min(values.size(), kMaxPrinted); ++i)
    text += str(i ? ", " : "", values[i]);
  return text + (values.size() > kMaxPrinted ? str(", ... ", values.size(), " values}") : "}");
}

inline void compare(const std::string& what, const std::vector<double>& actual,
                    const std::vector<double>& expected, double tolerance, const char* file,
                    int line) {
  std::string difference;
  if (actual.size() != expected.size()) {
    difference = str(actual.size(), " values instead of ", expected.size());
  } else {
    std::size_t i = 0;
    while (i < actual.size() && is_close(actual[i], expected[i], tolerance)) ++i;
    if (i == actual.size()) return;
    std::ostringstream out;
    out.precision(9);
    out << "first differs at " << i << ": " << actual[i] << " instead of " << expected[i];
    difference = out.str();
  }
  ADD_FAILURE_AT(file, line) << what << ": " << difference << "\n  actual:   " << list_of(actual)
                             << "\n  expected: " << list_of(expected);
}

inline bool same_shape(const Tensor& a, const Tensor& b, const char* file, int line) {
  if (a.shape() == b.shape()) return true;
  ADD_FAILURE_AT(file, line) << "shapes differ: " << a.type() << " and " << b.type();
  return false;
}

}  // namespace check_detail

/// Expects these elements in row-major order, padding included. The tensor may have any dtype.
inline void expect_values(const Tensor& tensor, const std::vector<double>& expected,
                          double tolerance = 1e-5, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  check_detail::compare(str(tensor.type()), values_of(tensor), expected, tolerance, file, line);
}

/// Expects the same sizes and close elements. Dims and dtypes may differ.
inline void expect_all_close(const Tensor& a, const Tensor& b, double tolerance = 1e-5,
                             const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!check_detail::same_shape(a, b, file, line)) return;
  check_detail::compare(str(a.type()), values_of(a), values_of(b), tolerance, file, line);
}

/// Expects the same dtype, sizes and bits of all elements. Dims may differ.
inline void expect_same_bits(const Tensor& a, const Tensor& b, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  if (!check_detail::same_shape(a, b, file, line)) return;
  if (a.dtype() != b.dtype()) {
    ADD_FAILURE_AT(file, line) << "dtypes differ: " << a.type() << " and " << b.type();
    return;
  }
  const std::size_t size = size_of(a.dtype());
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (!std::memcmp(a.data<char>() + i * size, b.data<char>() + i * size, size)) continue;
    std::ostringstream out;
    out.precision(17);
    out << values_of(a)[i] << " and " << values_of(b)[i];
    ADD_FAILURE_AT(file, line) << a.type() << ": bits first differ at " << i << ": " << out.str();
    return;
  }
}

}  // namespace reel
