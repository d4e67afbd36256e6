// core/types/dtype.h — DType, the type of a tensor's elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <type_traits>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// The type of a tensor's elements.
enum class DType : std::uint8_t { f32, f64, i32, i64, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType boolean = DType::boolean;

// Not inside the functions, where GCC would initialise them at every call.
inline constexpr std::uint8_t kSizesOfDTypes[] = {4, 8, 4, 8, 1};
inline constexpr const char* kNamesOfDTypes[] = {"f32", "f64", "i32", "i64", "boolean"};

/// Return the bytes of an element, and the name of a dtype.
constexpr std::size_t size_of(DType dtype) { return kSizesOfDTypes[static_cast<int>(dtype)]; }
constexpr const char* name_of(DType dtype) { return kNamesOfDTypes[static_cast<int>(dtype)]; }
/// Return true for f32 and f64, or for i32 and i64.
constexpr bool is_float(DType dtype) { return dtype == f32 || dtype == f64; }
constexpr bool is_integer(DType dtype) { return dtype == i32 || dtype == i64; }
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

/// Returns the DType that stores its elements as T.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return f32;
  if constexpr (std::is_same_v<T, double>) return f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return i64;
  if constexpr (std::is_same_v<T, bool>) return boolean;
}

/// Returns fn(zero), where zero is an element of the dtype's C++ type:
///
///   visit(d, [](auto zero) { using T = decltype(zero); })
template <class Fn>
decltype(auto) visit(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::f32:
      return fn(float{});
    case DType::f64:
      return fn(double{});
    case DType::i32:
      return fn(std::int32_t{});
    case DType::i64:
      return fn(std::int64_t{});
    default:
      return fn(bool{});
  }
}

}  // namespace reel
REEL_API_END
