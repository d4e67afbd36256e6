// The loops of element-wise ops. Compiled three times, with -DREEL_ISA=sse42, avx2 and avx512 and
// the flags for it; pointwise_kernels.cpp selects one of the tables at program start. GCC 12 warns
// about the deliberately undefined registers in its own AVX-512 header (PR 105593).
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
void vector_rows(const T* a, const T* b, T* out, const Rows& rows) {
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
void vector_binary(const void* const* in, void* out, const Rows& rows) {
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
// For integers, booleans, and ops that only move or compare. `ivdep` because out may be an operand:
// each element is then read before it is written.

template <class F, class T>
void plain_unary(const void* x, void* out, std::int64_t count) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = F::of(from[i]);
}

template <class F, class T, bool kRepeatA, bool kRepeatB, class R>
void plain_rows(const T* a, const T* b, R* out, const Rows& rows) {
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const T whole_a = *a, whole_b = *b;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < rows.columns; ++i)
      out[i] = F::of(kRepeatA ? whole_a : a[i], kRepeatB ? whole_b : b[i]);
    a += rows.step[0];
    b += rows.step[1];
    out += rows.next_row();
  }
}

template <class F, class T>
void plain_binary(const void* const* in, void* out, const Rows& rows) {
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
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = F::of(from_a[i], from_b[i]);
}

// Booleans are read as bytes, 0 or 1: GCC does not vectorise loops over bool.
template <class T, bool kRepeatC, bool kRepeatA, bool kRepeatB>
void where_rows(const std::uint8_t* c, const T* a, const T* b, T* out, const Rows& rows) {
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const std::uint8_t whole_c = *c;
    const T whole_a = *a, whole_b = *b;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < rows.columns; ++i) {
      const T on_true = kRepeatA ? whole_a : a[i],
              on_false = kRepeatB ? whole_b : b[i];  // both read: no branch
      out[i] = (kRepeatC ? whole_c : c[i]) ? on_true : on_false;
    }
    c += rows.step[0];
    a += rows.step[1];
    b += rows.step[2];
    out += rows.next_row();
  }
}

// T: an integer as wide as the elements, which are only moved.
template <class T>
void where_loop(const void* const* in, void* out, const Rows& rows) {
  const auto* c = static_cast<const std::uint8_t*>(in[0]);
  const T *a = static_cast<const T*>(in[1]), *b = static_cast<const T*>(in[2]);
  T* to = static_cast<T*>(out);
  if (rows.columns == 0) return;
  switch (rows.repeats[0] * 4 + rows.repeats[1] * 2 + rows.repeats[2]) {
    case 0:
      return where_rows<T, false, false, false>(c, a, b, to, rows);
    case 1:
      return where_rows<T, false, false, true>(c, a, b, to, rows);
    case 2:
      return where_rows<T, false, true, false>(c, a, b, to, rows);
    case 3:
      return where_rows<T, false, true, true>(c, a, b, to, rows);
    case 4:
      return where_rows<T, true, false, false>(c, a, b, to, rows);
    case 5:
      return where_rows<T, true, false, true>(c, a, b, to, rows);
    default:
      return where_rows<T, true, true, false>(c, a, b, to, rows);
  }
}

template <class From, class To>
void cast_loop(const void* x, void* out, std::int64_t count) {
  using Element = std::conditional_t<std::same_as<From, bool>, std::uint8_t, From>;
  const auto* from = static_cast<const Element*>(x);
  To* to = static_cast<To*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
}

// ---- The table ----------------------------------------------------------------------------------

template <class F, class T>
constexpr UnaryLoop unary_loop() {
  if constexpr (std::floating_point<T> && requires(Vector<T> x) { F::of(x); })
    return vector_unary<F, T>;
  else if constexpr (requires(T x) { F::of(x); })
    return plain_unary<F, T>;
  else
    return nullptr;
}
template <class F, class T>
constexpr RowsLoop binary_loop() {
  if constexpr (std::floating_point<T> && requires(Vector<T> x) { F::of(x, x); })
    return vector_binary<F, T>;
  else if constexpr (requires(T x) { F::of(x, x); })
    return plain_binary<F, T>;
  else
    return nullptr;
}

template <class F, class T>
constexpr FlatLoop flat_loop() {
  if constexpr (std::floating_point<T> && requires(Vector<T> x) { F::of(x, x); })
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
  b.add<Sin>(Unary::sin), b.add<Cos>(Unary::cos), b.add<Tanh>(Unary::tanh);
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
