// Logic of bits, and BitCast.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/onnx/ops/broadcast.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

constexpr std::int64_t kByte = 256;

/// Returns a byte of integers, in two's complement, as numbers from 0 to 255.
Tensor byte_of(const Tensor& x, int byte) {
  return mod(byte ? floor_divide(x, std::int64_t{1} << (8 * byte)) : x, kByte);
}

/// Returns a function of bits, byte by byte from a table of all pairs of bytes.
Tensor by_bytes(const Tensor& a, const Tensor& b, int bits, int (*fn)(int, int)) {
  std::vector<std::int64_t> table;
  for (int i = 0; i < kByte; ++i)
    for (int j = 0; j < kByte; ++j) table.push_back(fn(i, j));
  const Tensor pairs = tensor(table);
  const Tensor x = cast(a, i64), y = cast(b, i64);
  Tensor result;
  for (int byte = 0; byte < std::max(bits / 8, 1); ++byte) {
    Tensor part = gather(pairs, byte_of(x, byte) * kByte + byte_of(y, byte), 0);
    if (byte == 7) part = where(part >= kByte / 2, part - kByte, part);  // has the sign
    const Tensor shifted = part * (std::int64_t{1} << (8 * byte));
    result = byte ? result + shifted : shifted;
  }
  return result;
}

template <int (*fn)(int, int)>
Values run_bitwise(const Call& call) {
  const ElementType type = call.type(0);
  const Tensor result = by_bytes(call.tensor(0), call.tensor(1), bits_of(type), fn);
  return {Value::of(cast(stored_as(result, type), call.tensor(0).dtype()), type)};
}
int bits_and(int a, int b) { return a & b; }
int bits_or(int a, int b) { return a | b; }
int bits_xor(int a, int b) { return a ^ b; }

Values run_bitwise_not(const Call& call) {
  return unary(call, [](const Tensor& x) { return -x - 1; });
}

// ---- BitCast ----------------------------------------------------------------------------------

/// The fields of a floating-point number, by their bits.
struct FloatFields {
  int exponent, fraction, bias;
};
FloatFields fields_of(const Call& call, ElementType type) {
  switch (type) {
    case ElementType::float16:
      return {5, 10, 15};
    case ElementType::bfloat16:
      return {8, 7, 127};
    case ElementType::float32:
      return {8, 23, 127};
    case ElementType::float64:
      return {11, 52, 1023};
    default:
      call.refuse(str("the type ", type, " is not supported"));
  }
}

/// Returns x as 2^(first + i) for the i of each element of a vector of integers; exact.
Tensor power_of_two(const Tensor& exponents, int first, int count, DType dtype) {
  std::vector<double> powers;
  for (int i = 0; i < count; ++i) powers.push_back(std::ldexp(1.0, first + i));
  return gather(tensor(powers, {}, dtype), exponents, 0);
}

/// Returns the bits of floats as integers from 0 on. NaN has the bits of a quiet NaN.
Tensor bits_of_floats(const Tensor& x, const FloatFields& fields) {
  const std::int64_t last = (std::int64_t{1} << fields.exponent) - 1;
  const std::int64_t unit = std::int64_t{1} << fields.fraction;
  const Tensor size = where(isfinite(x), abs(x), 0.);
  // The exponent field, by bisection: the largest field with a power of at most `size`.
  Tensor exponent = zeros(x.dims(), i64);
  for (std::int64_t step = (last + 1) / 2; step > 0; step /= 2) {
    const Tensor next = minimum(exponent + step, last - 1);
    const Tensor power = power_of_two(next, -fields.bias, static_cast<int>(last), x.dtype());
    exponent = where(size >= power, next, exponent);
  }
  // A number below the normal ones has the exponent field 0 and the power of 1.
  const Tensor normal =
      power_of_two(maximum(exponent, 1), -fields.bias, static_cast<int>(last), x.dtype());
  const Tensor is_normal = size >= std::ldexp(1.0, 1 - fields.bias);
  exponent = where(is_normal, exponent, 0);
  const Tensor fraction =
      cast(size / normal * static_cast<double>(unit), i64) - cast(is_normal, i64) * unit;
  Tensor bits = exponent * unit + fraction;
  bits = where(isinf(x), last * unit, where(isnan(x), last * unit + unit / 2, bits));
  const Tensor is_negative = x < 0 || (equal(x, 0) && 1 / x < 0);
  const int sign_at = fields.exponent + fields.fraction;
  const std::int64_t sign =
      sign_at == 63 ? std::numeric_limits<std::int64_t>::min() : std::int64_t{1} << sign_at;
  return where(is_negative, bits + sign, bits);
}

/// Returns the floats that have these bits.
Tensor floats_of_bits(const Tensor& given, const FloatFields& fields, DType dtype) {
  const std::int64_t unit = std::int64_t{1} << fields.fraction;
  const std::int64_t last = (std::int64_t{1} << fields.exponent) - 1;
  const Tensor bits = cast(given, i64);
  const Tensor fraction = mod(bits, unit);
  const Tensor exponent = mod(floor_divide(bits, unit), last + 1);
  // Bits of f64 have the sign of an i64; the others may come with or without it.
  const Tensor is_negative = fields.exponent + fields.fraction == 63
                                 ? bits < 0
                                 : equal(mod(floor_divide(bits, unit * (last + 1)), 2), 1);
  const Tensor significand = cast(where(equal(exponent, 0), fraction, fraction + unit), dtype) *
                             (1. / static_cast<double>(unit));
  const Tensor power =
      power_of_two(clip(exponent, 1, last - 1), -fields.bias, static_cast<int>(last), dtype);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor special = where(equal(fraction, 0), full({}, kInfinity, dtype),
                               full({}, std::numeric_limits<double>::quiet_NaN(), dtype));
  const Tensor size = where(equal(exponent, last), special, significand * power);
  return where(is_negative, -size, size);
}

/// Keeps bits: integers of one size differ in their sign alone, floats are taken apart.
Values run_bit_cast(const Call& call) {
  const auto to = static_cast<ElementType>(call.integer("to", 0));
  const ElementType from = call.type(0);
  const Tensor& x = call.tensor(0);
  if (from == to) return {call.in(0)};
  if (!dtype_of(to) || bits_of(from) != bits_of(to)) call.refuse(str(from, " has no bits of ", to));
  const Tensor bits = is_float(from) ? bits_of_floats(x, fields_of(call, from)) : cast(x, i64);
  if (is_float(to))
    return {Value::of(floats_of_bits(bits, fields_of(call, to), *dtype_of(to)), to)};
  if (to == ElementType::boolean) return {Value::of(not_equal(bits, 0), to)};
  // int32 wraps around in the conversion.
  return {Value::of(cast(stored_as(bits, to), *dtype_of(to)), to)};
}

const Rule kRules[] = {
    {"BitCast", run_bit_cast, "", 26},
    {"BitwiseAnd", run_bitwise<bits_and>, "", 18},
    {"BitwiseNot", run_bitwise_not, "", 18},
    {"BitwiseOr", run_bitwise<bits_or>, "", 18},
    {"BitwiseXor", run_bitwise<bits_xor>, "", 18},
};

}  // namespace

std::span<const Rule> bit_rules() { return kRules; }

}  // namespace reel::imported
