// The loops of linear recurrences. Compiled three times, with -DREEL_ISA=sse42, avx2 and avx512 and
// the flags for it, and without contraction of products and sums: all sets give the same bits.
#include "reel/core/ops/kernels/linear_scan_table.h"
#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {
namespace {

/// Calls fn(j, load, store) for vectors of `width` columns, the last of which may be a part.
template <class T, class Fn>
inline void each_vector(std::int64_t width, const Fn& fn) {
  constexpr std::int64_t kStep = kLanes<T>;
  std::int64_t j = 0;
  for (; j + kStep <= width; j += kStep)
    fn(
        j, [](const T* from) { return load(from); },
        [](T* to, const Vector<T>& v) { v.store_unaligned(to); });
  if (j < width)
    fn(
        j, [&](const T* from) { return load_part(from, width - j); },
        [&](T* to, const Vector<T>& v) { store_part(to, v, width - j); });
}

/// The rows of an operand, from step to step.
template <class T>
struct Rows {
  explicit Rows(const ScanRows& rows) : at(static_cast<const T*>(rows.first)), step(rows.step) {}
  const T* at;
  std::int64_t step;
};

/// Vectors of a row whose states fit registers, with loads and stores of the last of them.
template <class T, int kVectors>
struct Narrow {
  static constexpr std::int64_t kLast = (kVectors - 1) * kLanes<T>;
  std::int64_t rest;  ///< columns in the last vector

  Vector<T> get(const T* row, int i) const {
    return i + 1 < kVectors ? load(row + i * kLanes<T>) : load_part(row + kLast, rest);
  }
  void put(T* row, int i, const Vector<T>& v) const {
    if (i + 1 < kVectors)
      v.store_unaligned(row + i * kLanes<T>);
    else
      store_part(row + kLast, v, rest);
  }
};

/// States stay in registers: a state that is stored and loaded again takes longer than its product
/// and sum.
template <class T, int kVectors, bool kHasInput>
void forward_narrow(const LinearScanBlock& s) {
  const Narrow<T, kVectors> row{s.width - (kVectors - 1) * kLanes<T>};
  Rows<T> a(s.a), b(s.b), x(s.x);
  T* h = static_cast<T*>(s.h.first);
  Vector<T> state[kVectors];
  for (int i = 0; i < kVectors; ++i) state[i] = row.get(static_cast<const T*>(s.initial), i);
  for (std::int64_t k = 0; k < s.steps; ++k) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      Vector<T> term = row.get(b.at, i);
      if constexpr (kHasInput) term = term * row.get(x.at, i);
      state[i] = row.get(a.at, i) * state[i] + term;
      row.put(h, i, state[i]);
    }
    a.at += a.step, b.at += b.step, h += s.h.step;
    if constexpr (kHasInput) x.at += x.step;
  }
}

template <class T, bool kHasInput>
void forward_wide(const LinearScanBlock& s) {
  Rows<T> a(s.a), b(s.b), x(s.x);
  const T* before = static_cast<const T*>(s.initial);
  T* h = static_cast<T*>(s.h.first);
  for (std::int64_t k = 0; k < s.steps; ++k) {
    each_vector<T>(s.width, [&](std::int64_t j, auto load, auto store) {
      Vector<T> term = load(b.at + j);
      if constexpr (kHasInput) term = term * load(x.at + j);
      store(h + j, load(a.at + j) * load(before + j) + term);
    });
    a.at += a.step, b.at += b.step;
    if constexpr (kHasInput) x.at += x.step;
    before = h;
    h += s.h.step;
  }
}

template <class T, bool kHasInput>
void forward_of(const LinearScanBlock& s) {
  const std::int64_t vectors = (s.width + kLanes<T> - 1) / kLanes<T>;
  if (vectors > 4) return forward_wide<T, kHasInput>(s);
  if (vectors == 4) return forward_narrow<T, 4, kHasInput>(s);
  if (vectors == 3) return forward_narrow<T, 3, kHasInput>(s);
  if (vectors == 2) return forward_narrow<T, 2, kHasInput>(s);
  return forward_narrow<T, 1, kHasInput>(s);
}

template <class T>
void forward(const LinearScanBlock& s) {
  return s.x.first ? forward_of<T, true>(s) : forward_of<T, false>(s);
}

/// Adds g y, or g if y is null, to a row of sums, in doubles.
template <class T>
void accumulate(double* sums, const T* g, const T* y, std::int64_t width) {
  constexpr std::int64_t kStep = kLanes<double>;
  std::int64_t j = 0;
  for (; j + kStep <= width; j += kStep) {
    Vector<double> term = widen(g + j);
    if (y) term = term * widen(y + j);
    (load(sums + j) + term).store_unaligned(sums + j);
  }
  for (; j < width; ++j)
    sums[j] +=
        y ? static_cast<double>(g[j]) * static_cast<double>(y[j]) : static_cast<double>(g[j]);
}

/// Stores g y, or g if y is null, to the row of a step, or adds it to the sums over steps.
template <class T>
void emit(const ScanRowsOut& out, T* row, const T* g, const T* y, std::int64_t width) {
  if (out.step == 0) return accumulate(static_cast<double*>(out.first), g, y, width);
  each_vector<T>(width, [&](std::int64_t j, auto load, auto store) {
    store(row + j, y ? load(g + j) * load(y + j) : load(g + j));
  });
}

template <class T>
void gradient(const LinearScanGradBlock& s) {
  alignas(64) T g[kScanColumns];
  alignas(64) T state[kScanColumns];                            // a_{k+1} g_{k+1}
  for (std::int64_t j = 0; j < s.width; ++j) state[j] = -T(0);  // x + -0 is x
  Rows<T> a(s.a), cotangent(s.cotangent), h(s.h), b(s.b), x(s.x);
  T *a_out = static_cast<T*>(s.a_out.first), *b_out = static_cast<T*>(s.b_out.first),
    *x_out = static_cast<T*>(s.x_out.first);
  for (std::int64_t k = s.steps; k-- > 0;) {
    each_vector<T>(s.width, [&](std::int64_t j, auto load, auto store) {
      const Vector<T> sum = load(cotangent.at + j) + load(state + j);
      store(g + j, sum);
      store(state + j, load(a.at + j) * sum);
    });
    if (a_out) emit(s.a_out, a_out, g, k ? h.at : static_cast<const T*>(s.initial), s.width);
    if (x_out) emit(s.x_out, x_out, g, b.at, s.width);
    if (b_out) emit(s.b_out, b_out, g, x.at, s.width);
    if (k == 0) break;
    a.at += a.step, cotangent.at += cotangent.step, h.at += h.step;
    b.at += b.step, x.at += x.step;
    a_out += s.a_out.step, b_out += s.b_out.step, x_out += s.x_out.step;
  }
  if (s.initial_out)
    for (std::int64_t j = 0; j < s.width; ++j) static_cast<T*>(s.initial_out)[j] = state[j];
}

}  // namespace

constinit const LinearScanTable linear_scans{
    .forward = {forward<float>, forward<double>},
    .gradient = {gradient<float>, gradient<double>},
};

}  // namespace reel::REEL_ISA
