#include "reel/onnx/element_type.h"

#include <limits>

#include "reel/core/functions/elementwise.h"

namespace reel::imported {
namespace {

constexpr const char* kNames[] = {"undefined",  "float",   "uint8",  "int8",   "uint16",
                                  "int16",      "int32",   "int64",  "string", "bool",
                                  "float16",    "double",  "uint32", "uint64", "complex64",
                                  "complex128", "bfloat16"};

/// Returns integers modulo 2^bits, as numbers without a sign or in two's complement.
Tensor wrapped(const Tensor& x, int bits, bool has_sign) {
  const std::int64_t size = std::int64_t{1} << bits;
  if (!has_sign) return mod(x, size);
  return mod(x + size / 2, size) - size / 2;
}

/// Returns f32 numbers rounded to a significand of `bits` bits. Veltkamp's splitting: the sum with
/// a multiple cancels the lower bits. Large numbers are scaled, so that the multiple is finite.
Tensor with_significand(const Tensor& x, int bits) {
  constexpr float kLarge = 0x1p100F, kScale = 0x1p-30F;
  const Tensor is_large = abs(x) > kLarge;
  const Tensor scaled = where(is_large, x * kScale, x);
  const Tensor multiple = scaled * (static_cast<float>(1 << (24 - bits)) + 1);
  const Tensor rounded = multiple - (multiple - scaled);
  return where(isfinite(x), where(is_large, rounded / kScale, rounded), x);
}

/// Returns x rounded to the values of float16: 11 bits, a smallest step of 2^-24, infinity from
/// 65520 on.
Tensor as_float16(const Tensor& x) {
  constexpr double kSmallestNormal = 0x1p-14, kStep = 0x1p-24, kLargest = 65504;
  const Tensor rounded =
      where(abs(x) < kSmallestNormal, round(x / kStep) * kStep, with_significand(x, 11));
  return where(abs(rounded) > kLargest, x * std::numeric_limits<float>::infinity(), rounded);
}

/// Returns x cut to the values of bfloat16. If rounding made a number larger, its predecessor is
/// the number times 1 - 2^-8, rounded.
Tensor as_bfloat16(const Tensor& x) {
  constexpr int kBits = 8;
  const Tensor rounded = with_significand(x, kBits);
  return where(abs(rounded) > abs(x), with_significand(rounded * (1 - 0x1p-8F), kBits), rounded);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, ElementType type) {
  const auto number = static_cast<std::size_t>(type);
  return out << (number < std::size(kNames) ? kNames[number] : "unknown");
}

std::optional<DType> dtype_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::float16:
    case ElementType::bfloat16:
      return f32;
    case ElementType::float64:
      return f64;
    case ElementType::uint8:
    case ElementType::int8:
    case ElementType::uint16:
    case ElementType::int16:
    case ElementType::int32:
      return i32;
    case ElementType::int64:
    case ElementType::uint32:
    case ElementType::uint64:
      return i64;
    case ElementType::boolean:
      return boolean;
    default:
      return {};
  }
}

ElementType element_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ElementType::float32;
    case DType::f64:
      return ElementType::float64;
    case DType::i32:
      return ElementType::int32;
    case DType::i64:
      return ElementType::int64;
    default:
      return ElementType::boolean;
  }
}

bool is_float(ElementType type) {
  const auto dtype = dtype_of(type);
  return dtype && is_float(*dtype);
}
bool is_integer(ElementType type) {
  const auto dtype = dtype_of(type);
  return dtype && is_integer(*dtype);
}

Tensor stored_as(const Tensor& x, ElementType type) {
  switch (type) {
    case ElementType::uint8:
      return wrapped(x, 8, false);
    case ElementType::int8:
      return wrapped(x, 8, true);
    case ElementType::uint16:
      return wrapped(x, 16, false);
    case ElementType::int16:
      return wrapped(x, 16, true);
    case ElementType::uint32:
      return wrapped(x, 32, false);
    case ElementType::float16:
      return as_float16(x);
    case ElementType::bfloat16:
      return as_bfloat16(x);
    default:
      return x;
  }
}

}  // namespace reel::imported
