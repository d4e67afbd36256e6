// core/ops/elementwise/chain_functions_x86_64.h — code of exp, tanh and sigmoid on a vector of
// floats, for pointwise_code_x86_64.cpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

#include <xbyak/xbyak.h>

namespace reel {

/// The constants of these functions. Each fills a vector of AVX2; AVX-512 repeats the first
/// element.
enum class ChainConstant : std::uint8_t {
  one,
  two,
  exponent_bias,  ///< an integer
  per_ln2,        ///< 1 / ln 2
  // sigmoid_isa.h: ln 2 = high + low, and a polynomial
  shift,
  minus_high,
  minus_low,
  series_2,
  series_3,
  series_4,
  series_5,
  series_6,
  tanh_most,
  sigmoid_most,
  sigmoid_least,
  // exp of xsimd
  exp_most,
  exp_least,
  exp_high,
  exp_low,
  exp_2,
  exp_3,
  exp_4,
  exp_5,
  exp_6,
  exp_is_zero,
  exp_is_infinite,
  infinity,
  count,
};

inline constexpr auto kChainConstants = [] {
  constexpr auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  constexpr std::uint32_t kBits[] = {
      bits(1), bits(2), 127, bits(1.44269504f),
      // sigmoid_isa.h
      bits(12582912.0f + 127.0f), bits(-0.693359375f), bits(2.12194440e-4f), bits(0.5f),
      bits(0.166665465f), bits(0.0416662954f), bits(0.00836624019f), bits(0.00139458058f), bits(10),
      bits(89), bits(-40),
      // xsimd gives its constants by bits.
      bits(200), bits(-200), 0x3f318000, 0xb95e8083, 0x3f000000, 0x3e2aa9a5, 0x3d2aa957, 0x3c098d8b,
      0x3ab778cf, bits(-88.3762626647949f), bits(88.3762626647949f),
      bits(std::numeric_limits<float>::infinity())};
  // Clang: a local type may name no local array.
  constexpr std::size_t kCount = std::size(kBits);
  static_assert(kCount == static_cast<std::size_t>(ChainConstant::count));
  struct Table {
    alignas(32) std::uint32_t bits[kCount][8];
  } table{};
  for (std::size_t i = 0; i < kCount; ++i)
    for (std::uint32_t& lane : table.bits[i]) lane = kBits[i];
  return table;
}();

/// Writes the instructions of sigmoid_isa.h, and of xsimd's exp, which give the same bits.
///
/// Vector: Zmm for AVX-512, Ymm for AVX2.
template <class Vector>
class ChainFunctions {
 public:
  /// Most bytes that one function takes.
  static constexpr std::size_t kBytes = 512;

  /// Registers that a function may change. n, sum: of the chain; rest: no register of values.
  struct Registers {
    Vector n, sum, rest;
  };
  /// code: where to write. table: any register; changed. minus_zero: a register that holds it.
  ChainFunctions(Xbyak::CodeGenerator& code, const Xbyak::Reg64& table, const Vector& minus_zero,
                 const Registers& with)
      : code_(code),
        table_(table),
        minus_zero_(minus_zero),
        n_(with.n),
        sum_(with.sum),
        rest_(with.rest) {
    code_.mov(table_, reinterpret_cast<std::uintptr_t>(&kChainConstants));
  }

  // to: another register than x.

  void sigmoid(const Vector& to, const Vector& x) {
    code_.vxorps(to, x, minus_zero_);
    bound(to, to, ChainConstant::sigmoid_most, ChainConstant::sigmoid_least);
    power(to);
    code_.vaddps(sum_, sum_, at(ChainConstant::one));
    if constexpr (kHasMasks)
      code_.vscalefps(sum_ | code_.T_rn_sae, sum_, n_);
    else
      code_.vmulps(sum_, sum_, n_);
    code_.vaddps(sum_, sum_, at(ChainConstant::one));
    load(to, ChainConstant::one);
    code_.vdivps(to, to, sum_);
  }

  void tanh(const Vector& to, const Vector& x) {
    code_.vandnps(to, minus_zero_, x);
    load(n_, ChainConstant::tanh_most);
    code_.vminps(to, n_, to);
    code_.vaddps(to, to, to);
    power(to);
    if constexpr (kHasMasks) {
      load(to, ChainConstant::one);
      code_.vscalefps(n_ | code_.T_rn_sae, to, n_);
    }
    code_.vsubps(rest_, n_, at(ChainConstant::one));
    code_.vfmadd213ps(sum_, n_, rest_);
    code_.vaddps(rest_, sum_, at(ChainConstant::two));
    code_.vdivps(sum_, sum_, rest_);
    code_.vandps(to, x, minus_zero_);
    code_.vorps(to, to, sum_);
  }

  void exp(const Vector& to, const Vector& x) {
    bound(to, x, ChainConstant::exp_most, ChainConstant::exp_least);
    nearest_power(to);
    code_.vfnmadd231ps(to, n_, at(ChainConstant::exp_high));
    code_.vfnmadd231ps(to, n_, at(ChainConstant::exp_low));
    series(to, ChainConstant::exp_2, ChainConstant::exp_6);
    code_.vmulps(rest_, to, to);
    code_.vfmadd213ps(sum_, rest_, to);
    code_.vaddps(sum_, sum_, at(ChainConstant::one));
    make_power_of_two();
    code_.vmulps(sum_, sum_, n_);
    load(n_, ChainConstant::infinity);
    if constexpr (kHasMasks) {
      code_.vcmpps(code_.k2, x, at(ChainConstant::exp_is_zero), kLessOrEqual);
      code_.vxorps(sum_ | code_.k2, sum_, sum_);
      code_.vcmpps(code_.k2, x, at(ChainConstant::exp_is_infinite), kGreaterOrEqual);
      code_.vblendmps(to | code_.k2, sum_, n_);
    } else {
      code_.vcmpps(rest_, x, at(ChainConstant::exp_is_zero), kLessOrEqual);
      code_.vandnps(sum_, rest_, sum_);
      code_.vcmpps(rest_, x, at(ChainConstant::exp_is_infinite), kGreaterOrEqual);
      code_.vblendvps(to, sum_, n_, rest_);
    }
  }

 private:
  static constexpr bool kHasMasks = std::is_same_v<Vector, Xbyak::Zmm>;  ///< AVX-512
  // Comparisons of VCMPPS, without signals. Source: Intel's manual, volume 2, table 3-1.
  static constexpr std::uint8_t kLessOrEqual = 0x12, kGreaterOrEqual = 0x1d;

  Xbyak::Address at(ChainConstant which) {
    const int offset = static_cast<int>(which) * 32;
    if constexpr (kHasMasks)
      return code_.ptr_b[table_ + offset];
    else
      return code_.ptr[table_ + offset];
  }
  void load(const Vector& to, ChainConstant which) {
    code_.vbroadcastss(to, code_.ptr[table_ + static_cast<int>(which) * 32]);
  }
  /// NaN stays, as these instructions return the second operand then.
  void bound(const Vector& to, const Vector& x, ChainConstant most, ChainConstant least) {
    load(n_, most);
    code_.vminps(to, n_, x);
    load(n_, least);
    code_.vmaxps(to, n_, to);
  }
  /// n = the whole number next to x / ln 2.
  void nearest_power(const Vector& x) {
    code_.vmulps(n_, x, at(ChainConstant::per_ln2));
    if constexpr (kHasMasks)
      code_.vrndscaleps(n_, n_, 0);
    else
      code_.vroundps(n_, n_, 0);
  }
  /// sum = the series in x; constants `first` to `last`, of increasing powers.
  void series(const Vector& x, ChainConstant first, ChainConstant last) {
    load(sum_, last);
    for (int c = static_cast<int>(last) - 1; c >= static_cast<int>(first); --c)
      code_.vfmadd213ps(sum_, x, at(static_cast<ChainConstant>(c)));
  }
  /// Power of sigmoid_isa.h: exp(x) = (1 + sum) 2^n. Changes x. n: for AVX2, 2^n.
  void power(const Vector& x) {
    if constexpr (kHasMasks) {
      nearest_power(x);
      code_.vfmadd231ps(x, n_, at(ChainConstant::minus_high));
      code_.vfmadd231ps(x, n_, at(ChainConstant::minus_low));
    } else {
      load(n_, ChainConstant::per_ln2);
      code_.vfmadd213ps(n_, x, at(ChainConstant::shift));
      code_.vsubps(rest_, n_, at(ChainConstant::shift));
      code_.vpslld(n_, n_, 23);
      code_.vfmadd231ps(x, rest_, at(ChainConstant::minus_high));
      code_.vfmadd231ps(x, rest_, at(ChainConstant::minus_low));
    }
    series(x, ChainConstant::series_2, ChainConstant::series_6);
    code_.vmulps(rest_, x, x);
    code_.vfmadd213ps(sum_, rest_, x);
  }
  /// Replaces n by 2^n, by its exponent's bits.
  void make_power_of_two() {
    code_.vcvttps2dq(n_, n_);
    code_.vpaddd(n_, n_, at(ChainConstant::exponent_bias));
    code_.vpslld(n_, n_, 23);
  }

  Xbyak::CodeGenerator& code_;
  const Xbyak::Reg64 table_;
  const Vector minus_zero_, n_, sum_, rest_;
};

}  // namespace reel
