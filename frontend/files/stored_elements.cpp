#include "reel/frontend/files/stored_elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <ostream>
#include <type_traits>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel {
namespace {

static_assert(std::endian::native == std::endian::little, "elements of files are little-endian");

constexpr struct {
  const char* name;
  std::uint64_t size;
  std::optional<DType> counterpart;
} kStored[] = {{"boolean", 1, boolean}, {"u8", 1, i32},  {"i8", 1, i32},  {"u16", 2, i32},
               {"i16", 2, i32},         {"u32", 4, i64}, {"i32", 4, i32}, {"u64", 8, {}},
               {"i64", 8, i64},         {"f8", 1, {}},   {"f16", 2, f32}, {"bf16", 2, f32},
               {"f32", 4, f32},         {"f64", 8, f64}};

const auto& facts(StoredDType stored) { return kStored[static_cast<int>(stored)]; }

/// Converts IEEE 754's binary16: 1 bit sign, 5 exponent, 10 fraction.
float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16, exponent = half >> 10 & 31,
                      fraction = half & 1023;
  if (exponent == 0) {  // zero or subnormal
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float float_of_bfloat(std::uint16_t upper) {
  return std::bit_cast<float>(std::uint32_t{upper} << 16);
}

template <class From, class To>
void widen_each(const char* from, void* to, std::uint64_t count, To (*convert)(From)) {
  To* next = static_cast<To*>(to);
  for (std::uint64_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, from + i * sizeof element, sizeof element);
    next[i] = convert(element);
  }
}

template <class From, class To>
To converted(From value) {
  return static_cast<To>(value);
}

/// `from` may be the end of `to`: each element is read before it is overwritten.
void widen(StoredDType stored, const char* from, void* to, std::uint64_t count) {
  using S = StoredDType;
  switch (stored) {
    case S::u8:
      return widen_each(from, to, count, converted<std::uint8_t, std::int32_t>);
    case S::i8:
      return widen_each(from, to, count, converted<std::int8_t, std::int32_t>);
    case S::u16:
      return widen_each(from, to, count, converted<std::uint16_t, std::int32_t>);
    case S::i16:
      return widen_each(from, to, count, converted<std::int16_t, std::int32_t>);
    case S::u32:
      return widen_each(from, to, count, converted<std::uint32_t, std::int64_t>);
    case S::f16:
      return widen_each(from, to, count, float_of_half);
    case S::bf16:
      return widen_each(from, to, count, float_of_bfloat);
    default:
      throw InternalError(str("elements of type ", stored, " are not widened"));
  }
}

void reverse_bytes(char* data, std::uint64_t size, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) std::reverse(data + i * size, data + (i + 1) * size);
}

}  // namespace

std::uint64_t size_of(StoredDType stored) { return facts(stored).size; }

StoredDType stored_as(DType dtype) {
  constexpr StoredDType same[] = {StoredDType::f32, StoredDType::f64, StoredDType::i32,
                                  StoredDType::i64, StoredDType::boolean};
  return same[static_cast<int>(dtype)];
}

std::optional<DType> counterpart(StoredDType stored) { return facts(stored).counterpart; }

std::ostream& operator<<(std::ostream& out, StoredDType stored) {
  return out << facts(stored).name;
}

void ByteCount::multiply_by(std::uint64_t size) {
  if (size && __builtin_mul_overflow(widest_, size, &widest_)) fits_ = false;
  bytes_ *= size;
}

std::optional<std::uint64_t> ByteCount::result() const {
  if (!fits_ || widest_ >> 63) return {};
  return bytes_;
}

std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& sizes, StoredDType stored) {
  ByteCount bytes(stored);
  for (const std::uint64_t size : sizes) bytes.multiply_by(size);
  return bytes.result();
}

void read_elements(const StoredFile& file, std::uint64_t offset, std::uint64_t count,
                   StoredFormat format, void* to, const std::string& subject) {
  const std::uint64_t size = size_of(format.dtype), wide = size_of(*counterpart(format.dtype));
  // Narrow elements are read to the end of the buffer and widened from its front.
  char* from = static_cast<char*>(to) + count * (wide - size);
  file.read(from, offset, count * size);
  if (format.is_big_endian && size > 1) reverse_bytes(from, size, count);
  if (size < wide) widen(format.dtype, from, to, count);
  if (format.dtype == StoredDType::boolean &&
      std::any_of(from, from + count, [](char byte) { return byte != 0 && byte != 1; }))
    file.damaged(str(subject, " has booleans that are neither 0 nor 1"));
}

}  // namespace reel
