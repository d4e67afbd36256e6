// The loops of element-wise ops. Compiled once for each instruction set, with -DREEL_ISA=avx2 and
// the like, and the flags for it; pointwise_kernels.cpp selects one of the tables at program start.
// GCC 12 warns about the deliberately undefined registers in its own AVX-512 header (PR 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include "reel/core/ops/kernels/gauss_isa.h"
#include "reel/core/ops/kernels/pointwise_functors.h"
#include "reel/core/ops/kernels/pointwise_table.h"
#include "reel/core/ops/kernels/power_isa.h"
#include "reel/core/ops/kernels/sigmoid_isa.h"
#include "reel/core/ops/kernels/trig_isa.h"
#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {
namespace {

// ---- Loops of floats ----------------------------------------------------------------------------
// The last elements of a row, fewer than a vector, use the vector code too.

template <class F, class T>
void vector_unary(const void* x, void* out, std::int64_t count) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) F::of(load(from + i)).store_unaligned(to + i);
  if (i < count) store_part(to + i, F::of(load_repeated(from + i, count - i)), count - i);
}

template <class F, class T, bool kRepeatA, bool kRepeatB>
void vector_rows(const T* a, const T* b, T* out, const PointwiseRows& rows) {
  const std::int64_t count = rows.columns;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const Vector<T> whole_a(*a), whole_b(*b);  // used if the operand repeats
    std::int64_t i = 0;
    for (; i + kLanes<T> <= count; i += kLanes<T>)
      F::of(kRepeatA ? whole_a : load(a + i), kRepeatB ? whole_b : load(b + i))
          .store_unaligned(out + i);
    if (const std::int64_t rest = count - i)
      store_part(out + i,
                 F::of(kRepeatA ? whole_a : load_repeated(a + i, rest),
                       kRepeatB ? whole_b : load_repeated(b + i, rest)),
                 rest);
    a += rows.step[0];
    b += rows.step[1];
    out += rows.next_row();
  }
}

template <class F, class T>
void vector_binary(const void* const* in, void* out, const PointwiseRows& rows) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* to = static_cast<T*>(out);
  if (rows.columns == 0) return;
  if (rows.repeats[0]) return vector_rows<F, T, true, false>(a, b, to, rows);
  if (rows.repeats[1]) return vector_rows<F, T, false, true>(a, b, to, rows);
  vector_rows<F, T, false, false>(a, b, to, rows);
}

template <class F, class T>
void vector_flat(const void* a, const void* b, void* out, std::int64_t count) {
  const T *from_a = static_cast<const T*>(a), *from_b = static_cast<const T*>(b);
  T* to = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>)
    F::of(load(from_a + i), load(from_b + i)).store_unaligned(to + i);
  if (const std::int64_t rest = count - i)
    store_part(to + i, F::of(load_repeated(from_a + i, rest), load_repeated(from_b + i, rest)),
               rest);
}

// ---- Plain loops --------------------------------------------------------------------------------
// For integers, booleans, and ops that only move or compare. The compiler vectorises them
// (cmake/ReelInstructionSets.cmake). `ivdep` because out may be an operand: each element is then
// read before it is written. Bounds are local variables: a store of 64-bit integers or of bytes
// could change those in PointwiseRows, and the loop would be scalar code.

/// The type by which loops read elements: bytes for booleans, because GCC does not vectorise loops
/// over bool.
template <class T>
using Read = std::conditional_t<std::same_as<T, bool>, std::uint8_t, T>;

template <class F, class T>
void plain_unary(const void* x, void* out, std::int64_t count) {
  const auto* from = static_cast<const Read<T>*>(x);
  T* to = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = F::of(static_cast<T>(from[i]));
}

template <class F, class T, bool kRepeatA, bool kRepeatB, class R>
void plain_rows(const T* a, const T* b, R* out, const PointwiseRows& rows) {
  const std::int64_t count = rows.columns;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const T whole_a = *a, whole_b = *b;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = F::of(kRepeatA ? whole_a : a[i], kRepeatB ? whole_b : b[i]);
    a += rows.step[0];
    b += rows.step[1];
    out += rows.next_row();
  }
}

template <class F, class T>
void plain_binary(const void* const* in, void* out, const PointwiseRows& rows) {
  using R = decltype(F::of(T{}, T{}));
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  R* to = static_cast<R*>(out);
  if (rows.columns == 0) return;
  if (rows.repeats[0]) return plain_rows<F, T, true, false>(a, b, to, rows);
  if (rows.repeats[1]) return plain_rows<F, T, false, true>(a, b, to, rows);
  plain_rows<F, T, false, false>(a, b, to, rows);
}

template <class F, class T>
void plain_flat(const void* a, const void* b, void* out, std::int64_t count) {
  using R = decltype(F::of(T{}, T{}));
  const T *from_a = static_cast<const T*>(a), *from_b = static_cast<const T*>(b);
  R* to = static_cast<R*>(out);
  if (count == 1) {  // a counter of a loop: the vectorised loop takes twice the instructions
    *to = F::of(*from_a, *from_b);
    return;
  }
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = F::of(from_a[i], from_b[i]);
}

/// Reads booleans as bytes, 0 or 1. g++ 12 vectorises a conditional for elements of four bytes, and
/// a choice by bits for all, which takes 1.3 times as long for four bytes on AVX2.
template <class T, bool kRepeatA, bool kRepeatB>
void where_row(const std::uint8_t* c, const T* a, const T* b, T* out, std::int64_t count) {
  const T whole_a = *a, whole_b = *b;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const T on_true = kRepeatA ? whole_a : a[i], on_false = kRepeatB ? whole_b : b[i];
    if constexpr (sizeof(T) == 4) {
      out[i] = c[i] ? on_true : on_false;
    } else {
      const T of_a = static_cast<T>(-static_cast<T>(c[i]));  // all bits or none
      out[i] = static_cast<T>(on_false ^ ((on_true ^ on_false) & of_a));
    }
  }
}

/// Sets a row to one operand: a copy, or a fill if the operand repeats.
template <class T>
void chosen_row(const T* from, bool repeats, T* out, std::int64_t count) {
  if (repeats) {
    const T whole = *from;
    for (std::int64_t i = 0; i < count; ++i) out[i] = whole;
  } else if (from != out) {
    __builtin_memcpy(out, from, static_cast<std::size_t>(count) * sizeof(T));
  }
}

/// True if all conditions of a row are the same. Masks of lengths and causal masks have many such
/// rows, and most of their other rows differ at the ends. Short rows are not worth a look.
inline bool is_uniform(const std::uint8_t* c, std::int64_t count) {
  constexpr std::int64_t kShort = 64;
  return count >= kShort && c[0] == c[count - 1] &&
         __builtin_memcmp(c, c + 1, static_cast<std::size_t>(count) - 1) == 0;
}

/// T: an integer as wide as the elements, which are only moved.
template <class T>
void where_loop(const void* const* in, void* out, const PointwiseRows& rows) {
  using Loop = void (*)(const std::uint8_t*, const T*, const T*, T*, std::int64_t);
  constexpr Loop kLoops[] = {where_row<T, false, false>, where_row<T, false, true>,
                             where_row<T, true, false>, where_row<T, true, true>};
  const auto* c = static_cast<const std::uint8_t*>(in[0]);
  const T *a = static_cast<const T*>(in[1]), *b = static_cast<const T*>(in[2]);
  T* to = static_cast<T*>(out);
  const std::int64_t count = rows.columns;
  if (count == 0) return;
  const auto loop = kLoops[rows.repeats[1] * 2 + rows.repeats[2]];
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    if (!rows.repeats[0] && !is_uniform(c, count))
      loop(c, a, b, to, count);
    else if (*c)
      chosen_row(a, rows.repeats[1], to, count);
    else
      chosen_row(b, rows.repeats[2], to, count);
    c += rows.step[0];
    a += rows.step[1];
    b += rows.step[2];
    to += rows.next_row();
  }
}

/// Elements whose range is checked before they are converted.
constexpr std::int64_t kTruncated = 128;

/// Truncates a block of `count` floats to integers.
///
/// A vector converts all of its lanes, and numbers out of range would raise an exception: zeros
/// stand for them in a copy. Inlined, so that the loops of a whole block have a known length.
template <class From, class To>
[[gnu::always_inline]] inline void truncate_block(const From* from, To* to, std::int64_t count) {
  using Bits = std::conditional_t<sizeof(From) == 4, std::int32_t, std::int64_t>;
  constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());  // exact
  constexpr Bits kEnd = __builtin_bit_cast(Bits, -kLow), kValue = std::numeric_limits<Bits>::max();
  Bits largest = 0;  // of the bits of sizes, which have the order of the sizes
  for (std::int64_t i = 0; i < count; ++i) {
    const Bits size = __builtin_bit_cast(Bits, from[i]) & kValue;
    largest = size > largest ? size : largest;
  }
  if (largest < kEnd) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
    return;
  }
  From in_range[kTruncated];
  for (std::int64_t i = 0; i < count; ++i)
    in_range[i] = ((from[i] >= kLow) & (from[i] < -kLow)) ? from[i] : From{0};
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = from[i] >= -kLow ? std::numeric_limits<To>::max()
            : from[i] < kLow ? std::numeric_limits<To>::min()
                             : static_cast<To>(in_range[i]);
}

/// Truncates floats to integers: NaN becomes 0, and a number out of range the nearest one in range.
template <class From, class To>
void truncate(const From* from, To* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kTruncated <= count; i += kTruncated) truncate_block(from + i, to + i, kTruncated);
  truncate_block(from + i, to + i, count - i);
}

template <class From, class To>
void cast_loop(const void* x, void* out, std::int64_t count) {
  const auto* from = static_cast<const Read<From>*>(x);
  To* to = static_cast<To*>(out);
  if constexpr (std::floating_point<From> && Integer<To>) {
    truncate(from, to, count);
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (std::same_as<To, bool>)
        to[i] = from[i] != From{0};
      else
        to[i] = static_cast<To>(from[i]);
    }
  }
}

// ---- The table ----------------------------------------------------------------------------------

// Vector<T> exists for floats only: these concepts do not name it for another T.
template <class F, class T>
concept UnaryOnVectors = std::floating_point<T> && requires(Vector<T> x) {
  F::of(x);
};
template <class F, class T>
concept BinaryOnVectors = std::floating_point<T> && requires(Vector<T> x) {
  F::of(x, x);
};

template <class F, class T>
constexpr UnaryLoop unary_loop() {
  if constexpr (UnaryOnVectors<F, T>)
    return vector_unary<F, T>;
  else if constexpr (requires(T x) { F::of(x); })
    return plain_unary<F, T>;
  else
    return nullptr;
}
template <class F, class T>
constexpr RowsLoop binary_loop() {
  if constexpr (BinaryOnVectors<F, T>)
    return vector_binary<F, T>;
  else if constexpr (requires(T x) { F::of(x, x); })
    return plain_binary<F, T>;
  else
    return nullptr;
}

template <class F, class T>
constexpr FlatLoop flat_loop() {
  if constexpr (BinaryOnVectors<F, T>)
    return vector_flat<F, T>;
  else if constexpr (requires(T x) { F::of(x, x); })
    return plain_flat<F, T>;
  else
    return nullptr;
}

struct Builder {
  PointwiseTable table{};

  template <class F>
  constexpr void add(Unary op) {
    UnaryLoop* row = table.unary[static_cast<int>(op)];
    row[0] = unary_loop<F, float>(), row[1] = unary_loop<F, double>();
    row[2] = unary_loop<F, std::int32_t>(), row[3] = unary_loop<F, std::int64_t>();
    row[4] = unary_loop<F, bool>();
  }
  template <class F>
  constexpr void add(Binary op) {
    RowsLoop* row = table.binary[static_cast<int>(op)];
    row[0] = binary_loop<F, float>(), row[1] = binary_loop<F, double>();
    row[2] = binary_loop<F, std::int32_t>(), row[3] = binary_loop<F, std::int64_t>();
    row[4] = binary_loop<F, bool>();
    FlatLoop* flat = table.flat[static_cast<int>(op)];
    flat[0] = flat_loop<F, float>(), flat[1] = flat_loop<F, double>();
    flat[2] = flat_loop<F, std::int32_t>(), flat[3] = flat_loop<F, std::int64_t>();
    flat[4] = flat_loop<F, bool>();
  }
  template <class From>
  constexpr void add_casts(int from) {
    UnaryLoop* row = table.cast[from];
    row[0] = cast_loop<From, float>, row[1] = cast_loop<From, double>;
    row[2] = cast_loop<From, std::int32_t>, row[3] = cast_loop<From, std::int64_t>;
    row[4] = cast_loop<From, bool>;
  }
};

#define REEL_STRING_OF(name) #name
#define REEL_STRING(name) REEL_STRING_OF(name)

constexpr PointwiseTable build() {
  Builder b;
  b.table.name = REEL_STRING(REEL_ISA);
  b.add<Neg>(Unary::neg), b.add<Abs>(Unary::abs), b.add<Sign>(Unary::sign);
  b.add<Floor>(Unary::floor), b.add<Ceil>(Unary::ceil), b.add<Round>(Unary::round);
  b.add<Square>(Unary::square), b.add<Relu>(Unary::relu), b.add<Sqrt>(Unary::sqrt);
  b.add<Exp>(Unary::exp), b.add<Expm1>(Unary::expm1);
  b.add<Log>(Unary::log), b.add<Log1p>(Unary::log1p);
  b.add<Sin>(Unary::sin), b.add<Cos>(Unary::cos);
  b.add<Arctan>(Unary::arctan), b.add<Tanh>(Unary::tanh);
  b.add<Sigmoid>(Unary::sigmoid), b.add<Softplus>(Unary::softplus);
  b.add<Erf>(Unary::erf), b.add<Gelu>(Unary::gelu), b.add<LogicalNot>(Unary::logical_not);
  b.add<Add>(Binary::add), b.add<Sub>(Binary::sub), b.add<Mul>(Binary::mul),
      b.add<Div>(Binary::div);
  b.add<Remainder>(Binary::remainder), b.add<FloorDivide>(Binary::floor_divide),
      b.add<Mod>(Binary::mod);
  b.add<Pow>(Binary::pow), b.add<Maximum>(Binary::maximum), b.add<Minimum>(Binary::minimum);
  b.add<Equal>(Binary::equal), b.add<NotEqual>(Binary::not_equal), b.add<Less>(Binary::less);
  b.add<LessEqual>(Binary::less_equal), b.add<Greater>(Binary::greater);
  b.add<GreaterEqual>(Binary::greater_equal), b.add<LogicalAnd>(Binary::logical_and);
  b.add<LogicalOr>(Binary::logical_or), b.add<LogicalXor>(Binary::logical_xor);
  b.add<TanhGrad>(Binary::tanh_grad), b.add<SigmoidGrad>(Binary::sigmoid_grad);
  b.add<GeluGrad>(Binary::gelu_grad);
  b.table.where[0] = b.table.where[2] = where_loop<std::uint32_t>;
  b.table.where[1] = b.table.where[3] = where_loop<std::uint64_t>;
  b.table.where[4] = where_loop<std::uint8_t>;
  b.add_casts<float>(0), b.add_casts<double>(1), b.add_casts<std::int32_t>(2),
      b.add_casts<std::int64_t>(3);
  b.add_casts<bool>(4);
  return b.table;
}

}  // namespace

constinit const PointwiseTable table = build();

}  // namespace reel::REEL_ISA
