#include "reel/onnx/stored.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"

namespace reel::imported {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A floating-point type of fewer bits than f32. Source: IEEE 754 (float16), OCP 8-bit floating
/// point specification 1.0 (float8), arXiv 2206.02915 (the types with "fnuz").
struct FloatFormat {
  int exponent_bits, fraction_bits, bias;
  double largest;
  bool has_infinity;
  bool has_negative_zero = true;  ///< otherwise its bits are NaN, the only one
  bool is_finite = false;         ///< all bits are numbers
};

FloatFormat format_of(ElementType type) {
  switch (type) {
    case ElementType::float16:
      return {5, 10, 15, 65504, true};
    case ElementType::bfloat16:
      return {8, 7, 127, 0x1.fep127, true};
    case ElementType::float8e4m3fn:
      return {4, 3, 7, 448, false};
    case ElementType::float8e4m3fnuz:
      return {4, 3, 8, 240, false, false};
    case ElementType::float8e5m2:
      return {5, 2, 15, 57344, true};
    case ElementType::float8e5m2fnuz:
      return {5, 2, 16, 57344, false, false};
    case ElementType::float4e2m1:
      return {2, 1, 1, 6, false, true, true};
    default:
      throw InternalError(str("onnx: ", type, " is no floating-point type of few bits"));
  }
}

int digits_of(const Tensor& x) { return x.dtype() == f64 ? 53 : 24; }

/// Returns integers modulo 2^bits, as numbers without a sign or in two's complement.
Tensor wrapped(const Tensor& x, int bits, bool has_sign) {
  const std::int64_t size = std::int64_t{1} << bits;
  if (!has_sign) return mod(x, size);
  return mod(x + size / 2, size) - size / 2;
}

/// Returns numbers rounded to a significand of `bits` bits, halves to even. Veltkamp's splitting:
/// the sum with a multiple cancels the lower bits. Large numbers are scaled, so that the multiple
/// is finite.
Tensor with_significand(const Tensor& x, int bits) {
  constexpr double kLarge = 0x1p60, kScale = 0x1p-60;
  const Tensor is_large = abs(x) > kLarge;
  const Tensor scaled = where(is_large, x * kScale, x);
  const Tensor multiple = scaled * (std::exp2(digits_of(x) - bits) + 1);
  const Tensor rounded = multiple - (multiple - scaled);
  return where(isfinite(x), where(is_large, rounded / kScale, rounded), x);
}

/// Returns numbers rounded to multiples of `step`, halves to even: their sum with a large number
/// has no lower bits. Requires: x is below 2^21 steps. The scale keeps the inverse of the step
/// finite.
Tensor with_step(const Tensor& x, double step) {
  constexpr double kScale = 0x1p60;
  const double large = 1.5 * std::exp2(digits_of(x) - 1);
  const Tensor steps = x * kScale * (1 / (step * kScale)) + large - large;
  return steps * (step * kScale) * (1 / kScale);
}

/// Returns x cut to the values of bfloat16. If rounding made a number larger, its predecessor is
/// the number times 1 - 2^-8, rounded.
Tensor truncated_to_bfloat16(const Tensor& x) {
  constexpr int kBits = 8;
  const Tensor rounded = with_significand(x, kBits);
  return where(abs(rounded) > abs(x), with_significand(rounded * (1 - 0x1p-8F), kBits), rounded);
}

Tensor as_float(const Tensor& given, const FloatFormat& format, bool saturates) {
  const int lowest = 1 - format.bias;  // the exponent of the smallest normal number
  const Tensor is_negative = given < 0 || (equal(given, 0) && 1 / given < 0);
  const Tensor x = abs(given);
  Tensor size = where(x < std::exp2(lowest), with_step(x, std::exp2(lowest - format.fraction_bits)),
                      with_significand(x, format.fraction_bits + 1));
  const Tensor is_beyond = size > format.largest;
  if (saturates)
    size = where(is_beyond, format.largest, size);
  else
    size = where(is_beyond, format.has_infinity ? kInfinity : kNan, size);
  const Tensor result = size * where(is_negative, full({}, -1, x.dtype()), full({}, 1, x.dtype()));
  return format.has_negative_zero ? result : where(equal(result, 0), 0., result);
}

/// Returns powers of two from 2^-127 to 2^127, or NaN. Negative numbers are undefined.
Tensor as_float8e8m0(const Tensor& given, const StoreOptions& options) {
  constexpr double kSmallest = 0x1p-127, kLargest = 0x1p127;
  const Tensor x = abs(given);
  // The largest power that is not above x, by bisection of the exponent.
  Tensor power = full({}, 0x1p-126, x.dtype());
  for (int step = 128; step > 0; step /= 2) {
    const Tensor next = power * std::exp2(step / 2) * std::exp2(step - step / 2);
    power = where(x >= next, next, power);
  }
  power = where(x < 0x1p-126, kSmallest, power);
  Tensor goes_up;
  if (options.round_mode == "up")
    goes_up = x > power;
  else if (options.round_mode == "nearest")
    goes_up = x >= power * 1.5;
  else if (options.round_mode == "down")
    goes_up = x < 0;
  else
    throw ArgumentError(str("Cast: the round_mode ", options.round_mode, " is not supported"));
  const Tensor is_beyond = goes_up && power >= kLargest;
  const Tensor rounded = where(goes_up, power * 2, power);
  return where(isfinite(x), where(is_beyond, options.saturates ? kLargest : kNan, rounded), kNan);
}

}  // namespace

Tensor stored_as(const Tensor& x, ElementType type, const StoreOptions& options) {
  switch (type) {
    case ElementType::uint2:
    case ElementType::uint4:
    case ElementType::uint8:
    case ElementType::uint16:
    case ElementType::uint32:
      return wrapped(x, bits_of(type), false);
    case ElementType::int2:
    case ElementType::int4:
    case ElementType::int8:
    case ElementType::int16:
      return wrapped(x, bits_of(type), true);
    case ElementType::float16:
      return as_float(x, format_of(type), false);
    case ElementType::bfloat16:
      return options.truncates_bfloat16 ? truncated_to_bfloat16(x)
                                        : as_float(x, format_of(type), false);
    case ElementType::float4e2m1:
      // The type has no NaN. ONNX's data has -0 for it.
      return where(isnan(x), -0., as_float(x, format_of(type), true));
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz:
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz:
      return as_float(x, format_of(type), options.saturates);
    case ElementType::float8e8m0:
      return as_float8e8m0(x, options);
    default:
      return x;
  }
}

Tensor saturated(const Tensor& x, ElementType type) {
  const std::int64_t numbers = std::int64_t{1} << std::min(bits_of(type), 62);
  switch (type) {
    case ElementType::uint2:
    case ElementType::uint4:
    case ElementType::uint8:
    case ElementType::uint16:
    case ElementType::uint32:
      return clip(x, 0, numbers - 1);
    default:
      return clip(x, -numbers / 2, numbers / 2 - 1);
  }
}

float number_of_bits(std::uint32_t bits, ElementType type) {
  if (type == ElementType::float8e8m0)
    return bits == 255 ? std::numeric_limits<float>::quiet_NaN()
                       : std::ldexp(1.0F, static_cast<int>(bits) - 127);
  const FloatFormat format = format_of(type);
  const int sign_at = format.exponent_bits + format.fraction_bits;
  const bool is_negative = bits >> sign_at & 1;
  const std::uint32_t size = bits & ((1U << sign_at) - 1);
  const std::uint32_t exponent = size >> format.fraction_bits;
  const std::uint32_t fraction = size & ((1U << format.fraction_bits) - 1);
  if (is_negative && size == 0 && !format.has_negative_zero)
    return std::numeric_limits<float>::quiet_NaN();
  const bool is_last = exponent == (1U << format.exponent_bits) - 1;
  if (is_last && format.has_infinity) {  // infinities, and NaN with its bits
    const std::uint32_t wide = fraction << (23 - format.fraction_bits);
    return std::bit_cast<float>(static_cast<std::uint32_t>(is_negative) << 31 | 0x7f800000U | wide);
  }
  const bool is_all_ones = size == (1U << sign_at) - 1;
  if (is_all_ones && format.has_negative_zero && !format.is_finite)
    return std::numeric_limits<float>::quiet_NaN();
  const float significand =
      static_cast<float>(exponent ? fraction | 1U << format.fraction_bits : fraction);
  const float number = std::ldexp(
      significand, static_cast<int>(std::max(exponent, 1U)) - format.bias - format.fraction_bits);
  return is_negative ? -number : number;
}

}  // namespace reel::imported
