// core/ops/kernels/pointwise_functors.h — the computation of each element-wise op, on a vector or
// one element.
//
// Ops with has_code() are also in pointwise_code_x86_64.cpp or chain_functions_x86_64.h, which must
// compute the same bits.
//
// All declarations are in a namespace of the instruction set REEL_ISA that the including file is
// compiled for. The linker then never uses a function compiled for a newer processor on an older
// one.
#pragma once

#ifndef REEL_ISA
#error "define REEL_ISA as an instruction set of isa_list.h, to match the compiler's flags"
#endif

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {

template <class V>
concept Batch = xsimd::is_batch<V>::value;
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

// Integers wrap around, which signed arithmetic in C++ leaves undefined.
template <Integer T>
using Bits = std::make_unsigned_t<T>;
template <Integer T>
constexpr T negative(T x) {
  return static_cast<T>(Bits<T>{0} - static_cast<Bits<T>>(x));
}
template <Integer T>
constexpr T product(T a, T b) {
  return static_cast<T>(static_cast<Bits<T>>(a) * static_cast<Bits<T>>(b));
}

// An op raises a floating-point exception (FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW) only if its
// elements do, except for elements that are NaN. Operands of branches that are not selected are
// therefore replaced by harmless ones.

/// Clamps x to [-most, most]; NaN stays, because if operands are not ordered these instructions
/// return the second.
template <Batch V>
V within(const V& x, double most) {
  return xsimd::max(V(-most), xsimd::min(V(most), x));
}
/// Beyond these bounds exp and expm1 are 0, -1 or infinite. xsimd 8.1 converts larger numbers to
/// integers, which overflow.
template <Batch V>
V within_exp(const V& x) {
  return within(x, std::same_as<typename V::value_type, float> ? 200 : 1000);
}

// ---- One operand --------------------------------------------------------------------------------

struct Neg {
  template <Batch V>
  static V of(V x) {
    return V(-0.0) - x;  // xsimd's own negation is 0 - x for AVX-512, which loses the sign of zero
  }
  template <Integer T>
  static T of(T x) {
    return negative(x);
  }
};
struct Abs {
  template <Batch V>
  static V of(V x) {
    return xsimd::abs(x);
  }
  template <Integer T>
  static T of(T x) {
    return x < 0 ? negative(x) : x;
  }
};
/// NaN stays, -0 becomes 0, as in NumPy.
struct Sign {
  template <Batch V>
  static V of(V x) {
    const V zero(0.0);
    return xsimd::select(x > zero, V(1.0), xsimd::select(x < zero, V(-1.0), x + zero));
  }
  template <Integer T>
  static T of(T x) {
    return static_cast<T>((x > 0) - (x < 0));
  }
};
struct Floor {
  template <Batch V>
  static V of(V x) {
    return xsimd::floor(x);
  }
  template <Integer T>
  static T of(T x) {
    return x;
  }
};
struct Ceil {
  template <Batch V>
  static V of(V x) {
    return xsimd::ceil(x);
  }
  template <Integer T>
  static T of(T x) {
    return x;
  }
};
/// Halves are rounded to the even neighbour.
struct Round {
  template <Batch V>
  static V of(V x) {
    return xsimd::nearbyint(x);
  }
  template <Integer T>
  static T of(T x) {
    return x;
  }
};
struct Square {
  template <Batch V>
  static V of(V x) {
    return x * x;
  }
  template <Integer T>
  static T of(T x) {
    return product(x, x);
  }
};
struct Relu {
  template <Batch V>
  static V of(V x) {
    return xsimd::select(x <= V(0.0), V(0.0), x);  // NaN stays
  }
  template <Integer T>
  static T of(T x) {
    return x < 0 ? T{0} : x;
  }
};
struct Exp {
  template <Batch V>
  static V of(V x) {
    return xsimd::exp(within_exp(x));
  }
};
struct Log {
  template <Batch V>
  static V of(V x) {
    if constexpr (std::same_as<typename V::value_type, float>) {
      return xsimd::log(x);
    } else {  // xsimd 8.1 takes the exponent of subnormal doubles from before it scales them
      const auto tiny = (x < V(std::numeric_limits<double>::min())) & (x > V(0.0));
      const V scaled = xsimd::select(tiny, x, V(1.0)) * V(0x1p54);
      const V result = xsimd::log(xsimd::select(tiny, scaled, x));
      return xsimd::select(tiny, result - V(54 * 0.693147180559945309417), result);
    }
  }
};
struct Expm1 {
  template <Batch V>
  static V of(V x) {
    return xsimd::select(x == V(0.0), x, xsimd::expm1(within_exp(x)));  // xsimd 8.1 loses -0
  }
};
struct Log1p {
  template <Batch V>
  static V of(V x) {
    // xsimd 8.1 loses -0, and computes 0 / 0 and infinity - infinity at the ends.
    const V zero(0.0), one(1.0);
    const auto is_low = x == V(-1.0),
               is_high = x == V(std::numeric_limits<typename V::value_type>::infinity());
    if (!xsimd::any(is_low | is_high)) return xsimd::select(x == zero, x, xsimd::log1p(x));
    const V inside = xsimd::select(is_low | is_high, zero, x);
    const V result = xsimd::select(inside == zero, x, xsimd::log1p(inside));
    return xsimd::select(is_low, V(-1.0) / xsimd::select(is_low, zero, one), result);
  }
};
struct Sqrt {
  template <Batch V>
  static V of(V x) {
    return xsimd::sqrt(x);
  }
};
/// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which neither overflows nor loses small terms.
struct Softplus {
  template <Batch V>
  static V of(V x) {
    const V zero(0.0);
    return xsimd::select(x > zero, x, zero) +
           xsimd::log1p(xsimd::exp(within_exp(zero - xsimd::abs(x))));
  }
};
struct LogicalNot {
  template <std::same_as<bool> T>
  static bool of(T x) {
    return !x;
  }
};

// ---- Two operands -------------------------------------------------------------------------------

struct Add {
  template <Batch V>
  static V of(V a, V b) {
    return a + b;
  }
  template <Integer T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b));
  }
};
struct Sub {
  template <Batch V>
  static V of(V a, V b) {
    return a - b;
  }
  template <Integer T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Bits<T>>(a) - static_cast<Bits<T>>(b));
  }
};
struct Mul {
  template <Batch V>
  static V of(V a, V b) {
    return a * b;
  }
  template <Integer T>
  static T of(T a, T b) {
    return product(a, b);
  }
};
struct Div {
  template <Batch V>
  static V of(V a, V b) {
    return a / b;
  }
  template <Integer T>
  static T of(T a, T b) {
    if (b == 0) return 0;
    return b == -1 ? negative(a) : static_cast<T>(a / b);  // the smallest integer by -1 would trap
  }
};
struct Remainder {
  template <Integer T>
  static T of(T a, T b) {
    return b == 0 || b == -1 ? T{0} : static_cast<T>(a % b);
  }
};
template <std::floating_point T>
T float_remainder(T a, T b) {  // exact, with the sign of a
  if constexpr (std::same_as<T, float>)
    return __builtin_fmodf(a, b);
  else
    return __builtin_fmod(a, b);
}
/// Returns c - a b, rounded once if the processor has such an instruction. xsimd 8.1 lacks it for
/// AVX-512: it has three ops that a compiler may fuse.
template <Batch V>
V subtract_product(const V& a, const V& b, const V& c) {
#if defined(__AVX512F__)
  if constexpr (std::same_as<typename V::value_type, float>)
    return _mm512_fnmadd_ps(a, b, c);
  else
    return _mm512_fnmadd_pd(a, b, c);
#else
  return xsimd::fnma(a, b, c);
#endif
}
/// Applies F::of to each lane, if not all lanes may take the short path.
template <class F, Batch V>
V by_lane(V a, V b) {
  using T = typename V::value_type;
  alignas(V) T x[V::size], y[V::size];
  a.store_aligned(x);
  b.store_aligned(y);
  for (std::size_t i = 0; i < V::size; ++i) x[i] = F::of(x[i], y[i]);
  return V::load_aligned(x);
}
/// True if a / b is finite in all lanes, and so small that its whole part is exact, or one too
/// large by rounding.
template <Batch V>
bool has_short_remainder(V a, V b) {
  using T = typename V::value_type;
  const V size = xsimd::abs(b), most(std::numeric_limits<T>::max());
  const V scale(1 / static_cast<T>(std::int64_t{1} << (std::numeric_limits<T>::digits - 1)));
  return xsimd::all((size <= most) & (xsimd::abs(a) * scale < size));
}
/// float_remainder if has_short_remainder is true; a remainder of 0 may have either sign. Exact: a
/// - n b is fused, a multiple of the last place of b, and not larger than b.
template <Batch V>
V short_remainder(V a, V b) {
  const V zero(0.0), size = xsimd::abs(b), rest = subtract_product(xsimd::trunc(a / b), b, a);
  return xsimd::select(a < zero, xsimd::select(rest > zero, rest - size, rest),
                       xsimd::select(rest < zero, rest + size, rest));
}
/// True in lanes with a remainder that is not 0 and has another sign than b.
template <Batch V>
auto is_turned(V rest, V b) {
  const V zero(0.0);
  return ((rest < zero) & (b > zero)) | ((rest > zero) & (b < zero));
}
struct Mod {
  template <Batch V>
  requires kHasFma static V of(V a, V b) {
    if (!has_short_remainder(a, b)) return by_lane<Mod>(a, b);
    const V rest = short_remainder(a, b);
    return xsimd::select(rest == V(0.0), xsimd::bitofsign(b),
                         xsimd::select(is_turned(rest, b), rest + b, rest));
  }
  template <Integer T>
  static T of(T a, T b) {
    const T rest = Remainder::of(a, b);
    return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
  }
  // A remainder of 0 has the sign of b too.
  template <std::floating_point T>
  static T of(T a, T b) {
    const T rest = float_remainder(a, b);
    if (rest == 0) return static_cast<T>(__builtin_copysign(0., static_cast<double>(b)));
    return (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
struct FloorDivide {
  template <Batch V>
  requires kHasFma static V of(V a, V b) {
    if (!has_short_remainder(a, b)) return by_lane<FloorDivide>(a, b);
    const V rest = short_remainder(a, b), one(1.0), whole = (a - rest) / b;
    const V quotient = xsimd::select(is_turned(rest, b), whole - one, whole);
    const V below = xsimd::floor(quotient);
    return xsimd::select(quotient == V(0.0), xsimd::bitofsign(a / b),
                         xsimd::select(quotient - below > V(0.5), below + one, below));
  }
  template <Integer T>
  static T of(T a, T b) {
    const T rest = Remainder::of(a, b);
    return static_cast<T>(Div::of(a, b) - (rest != 0 && (rest < 0) != (b < 0)));
  }
  // (a - mod(a, b)) / b is whole except for its rounding; a / b could be rounded up to the next
  // whole number.
  template <std::floating_point T>
  static T of(T a, T b) {
    if (b == 0) return a / b;
    const T rest = float_remainder(a, b);
    T quotient = (a - rest) / b;
    if (__builtin_isinf(quotient)) return quotient;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return static_cast<T>(__builtin_copysign(0., static_cast<double>(a / b)));
    const T below = static_cast<T>(__builtin_floor(static_cast<double>(quotient)));
    return quotient - below > T(0.5) ? below + 1 : below;
  }
};
// NaN is the result, as in NumPy.
struct Maximum {
  template <Batch V>
  static V of(V a, V b) {
    return xsimd::select((a > b) | xsimd::isnan(a), a, b);
  }
  template <Integer T>
  static T of(T a, T b) {
    return a > b ? a : b;
  }
};
struct Minimum {
  template <Batch V>
  static V of(V a, V b) {
    return xsimd::select((a < b) | xsimd::isnan(a), a, b);
  }
  template <Integer T>
  static T of(T a, T b) {
    return a < b ? a : b;
  }
};
// The gradients of tanh and sigmoid at y, times g: (1 - y²) g and y (1 - y) g.
struct TanhGrad {
  template <Batch V>
  static V of(V y, V g) {
    return subtract_product(y, y, V(1.0)) * g;
  }
};
struct SigmoidGrad {
  template <Batch V>
  static V of(V y, V g) {
    return y * (V(1.0) - y) * g;
  }
};

// Comparisons are exact, so plain loops suffice: the compiler vectorises them.
struct Equal {
  template <class T>
  requires std::is_arithmetic_v<T>
  static bool of(T a, T b) { return a == b; }
};
struct NotEqual {
  template <class T>
  requires std::is_arithmetic_v<T>
  static bool of(T a, T b) { return a != b; }
};
struct Less {
  template <class T>
  requires std::is_arithmetic_v<T>
  static bool of(T a, T b) { return a < b; }
};
struct LessEqual {
  template <class T>
  requires std::is_arithmetic_v<T>
  static bool of(T a, T b) { return a <= b; }
};
struct Greater {
  template <class T>
  requires std::is_arithmetic_v<T>
  static bool of(T a, T b) { return a > b; }
};
struct GreaterEqual {
  template <class T>
  requires std::is_arithmetic_v<T>
  static bool of(T a, T b) { return a >= b; }
};
struct LogicalAnd {
  template <std::same_as<bool> T>
  static bool of(T a, T b) {
    return a & b;
  }
};
struct LogicalOr {
  template <std::same_as<bool> T>
  static bool of(T a, T b) {
    return a | b;
  }
};
struct LogicalXor {
  template <std::same_as<bool> T>
  static bool of(T a, T b) {
    return a != b;
  }
};

}  // namespace reel::REEL_ISA
