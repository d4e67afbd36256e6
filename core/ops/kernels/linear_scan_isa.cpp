// The loops of linear recurrences. Compiled once for each instruction set, with -DREEL_ISA=avx2 and
// the like, and the flags for it, and without contraction of products and sums: all sets give the
// same bits.
#include "reel/core/ops/kernels/each_vector.h"
#include "reel/core/ops/kernels/linear_scan_table.h"

namespace reel::REEL_ISA {
namespace {

/// The rows of an operand, from step to step.
template <class T>
struct Rows {
  explicit Rows(const ScanRows& rows) : at(static_cast<const T*>(rows.first)), step(rows.step) {}
  const T* at;
  std::int64_t step;
};

/// The vectors of a narrow row: its states fit registers, and its last vector may be a part.
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

/// One result of the gradient at a step: rows of its own, or sums over the steps.
template <class T>
struct Product {
  explicit Product(const ScanRowsOut& out)
      : row(static_cast<T*>(out.first)), step(out.step), is_sum(out.first && out.step == 0) {
    if (is_sum) row = partial;
  }
  T* row;
  std::int64_t step;
  bool is_sum;
  alignas(64) T partial[kScanColumns];  ///< sums of at most kScanTerms terms

  /// Stores or adds g y, or g if y is null, in vectors from column j.
  template <int kVectors, class Load, class Store>
  void put(std::int64_t j, const Vector<T> (&g)[kVectors], const T* y, const Load& load,
           const Store& store) {
    if (!row) return;
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const std::int64_t at = j + i * kLanes<T>;
      Vector<T> term = g[i];
      if (y) term = term * load(y + at);
      if (is_sum) term = load(row + at) + term;
      store(row + at, term);
    }
  }
  void clear(std::int64_t width) {
    if (is_sum)
      for (std::int64_t j = 0; j < width; ++j) partial[j] = 0;
  }
  /// Adds the partial sums to the sums in doubles.
  void flush(double* sums, std::int64_t width) {
    if (!is_sum) return;
    for (std::int64_t j = 0; j < width; ++j) sums[j] += static_cast<double>(partial[j]);
    clear(width);
  }
};

/// The operands of one step, and the state a g of the step behind it.
template <class T>
struct GradStep {
  Rows<T> a, cotangent, h, b, x;
  Product<T> a_out, b_out, x_out;
  alignas(64) T state[kScanColumns];

  explicit GradStep(const LinearScanGradBlock& s)
      : a(s.a),
        cotangent(s.cotangent),
        h(s.h),
        b(s.b),
        x(s.x),
        a_out(s.a_out),
        b_out(s.b_out),
        x_out(s.x_out) {}

  /// Computes vectors from column j. b's result is stored last: it may be the memory of an operand.
  template <int kVectors, class Load, class Store>
  void compute(std::int64_t j, const T* before, const Load& load, const Store& store) {
    Vector<T> g[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const std::int64_t at = j + i * kLanes<T>;
      g[i] = load(cotangent.at + at) + load(state + at);
      store(state + at, load(a.at + at) * g[i]);
    }
    a_out.put(j, g, before, load, store);
    x_out.put(j, g, b.at, load, store);
    b_out.put(j, g, x.at, load, store);
  }
  void advance() {
    a.at += a.step, cotangent.at += cotangent.step, h.at += h.step;
    b.at += b.step, x.at += x.step;
    a_out.row += a_out.step, b_out.row += b_out.step, x_out.row += x_out.step;
  }
};

template <class T>
void gradient(const LinearScanGradBlock& s) {
  constexpr std::int64_t kTile = 4 * kLanes<T>;
  GradStep<T> step(s);
  const T* const state = static_cast<const T*>(s.state);
  for (std::int64_t j = 0; j < s.width; ++j)
    step.state[j] = state ? state[j] : -T(0);  // x + -0 is x
  for (Product<T>* out : {&step.a_out, &step.b_out, &step.x_out}) out->clear(s.width);
  const auto flush = [&] {
    step.a_out.flush(static_cast<double*>(s.a_out.first), s.width);
    step.b_out.flush(static_cast<double*>(s.b_out.first), s.width);
    step.x_out.flush(static_cast<double*>(s.x_out.first), s.width);
  };
  const std::int64_t tiles = s.width / kTile * kTile;
  for (std::int64_t k = s.steps; k-- > 0;) {
    const T* const before = k ? step.h.at : static_cast<const T*>(s.initial);
    for (std::int64_t j = 0; j < tiles; j += kTile)
      step.template compute<4>(
          j, before, [](const T* from) { return load(from); },
          [](T* to, const Vector<T>& v) { v.store_unaligned(to); });
    each_vector<T>(s.width - tiles, [&](std::int64_t j, auto load, auto store) {
      step.template compute<1>(tiles + j, before, load, store);
    });
    if ((s.steps - k) % kScanTerms == 0) flush();
    if (k) step.advance();
  }
  flush();
  if (s.initial_out)
    for (std::int64_t j = 0; j < s.width; ++j) static_cast<T*>(s.initial_out)[j] = step.state[j];
}

}  // namespace

constinit const LinearScanTable linear_scans{
    .forward = {forward<float>, forward<double>},
    .gradient = {gradient<float>, gradient<double>},
};

}  // namespace reel::REEL_ISA
