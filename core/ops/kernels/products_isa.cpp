// Our loops for matrix products: small ones, products with a vector, and all dtypes except f32.
// Compiled once for each instruction set, with -DREEL_ISA=avx2 and the like; gemm.cpp selects one
// of the tables at program start.
#include "reel/core/ops/kernels/product_table.h"
#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {
namespace {

// A tile of the result stays in registers: rows times vectors of accumulators, with room for one
// row of b and one element of a.
constexpr bool kHas32 = kRegisters == 32;
constexpr int kMaxTileRows = 6, kMaxVectors = kHas32 ? 4 : 2, kMaxRunRows = kHas32 ? 4 : 3;
/// With 16 registers, one or two rows take more vectors: eight chains at a time, or each step waits
/// for the multiply-add before it.
constexpr int most_vectors(std::int64_t rows) {
  if (kHas32) return kMaxVectors;
  return rows == 1 ? 8 : rows == 2 ? 4 : kMaxVectors;
}
constexpr int kRunColumns = 4;

/// Returns a·b + c, rounded once. For AVX-512 xsimd 8 leaves the fusion to the compiler, which may
/// omit it.
template <class T>
Vector<T> multiply_add(const Vector<T>& a, const Vector<T>& b, const Vector<T>& c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == sizeof(float))
    return _mm512_fmadd_ps(a, b, c);
  else
    return _mm512_fmadd_pd(a, b, c);
#else
  return xsimd::fma(a, b, c);
#endif
}

/// Load the last `part` columns of a tile, and multiply_add them. The remaining lanes are masked,
/// or repeat the first column: zeros times an infinite element would raise an exception.
#if defined(__AVX512F__)
template <class T>
Vector<T> load_columns(const T* from, std::int64_t part) {
  return load_part(from, part);
}
template <class T>
Vector<T> multiply_add_columns(const Vector<T>& a, const Vector<T>& b, const Vector<T>& c,
                               std::int64_t part) {
  const unsigned lanes = (1u << part) - 1;
  if constexpr (sizeof(T) == sizeof(float))
    return _mm512_mask3_fmadd_ps(a, b, c, static_cast<__mmask16>(lanes));
  else
    return _mm512_mask3_fmadd_pd(a, b, c, static_cast<__mmask8>(lanes));
}
#else
template <class T>
Vector<T> load_columns(const T* from, std::int64_t part) {
  return load_repeated(from, part);
}
template <class T>
Vector<T> multiply_add_columns(const Vector<T>& a, const Vector<T>& b, const Vector<T>& c,
                               std::int64_t) {
  return multiply_add(a, b, c);
}
#endif

/// Columns of a panel of b. Tiles start at multiples of it.
template <class T>
inline constexpr int kPanelColumns = kMaxVectors* kLanes<T>;

/// The role of c's stored value: ignored, the start of the sum, or added to the sum at the end.
enum class Chain { from_zero, goes_on, is_added };
struct ChainSizes : MatrixSizes {
  Chain chain;
  std::int64_t panel;  ///< elements of b from the columns of one panel to the next, packed or not

  /// Returns the columns of b from j on, the first of a panel.
  template <class T>
  const T* columns_from(std::int64_t j, const T* b) const {
    return b + j / kPanelColumns<T> * panel;
  }
};

template <class T>
using Tile = void (*)(const ChainSizes&, const T*, const T*, T*, std::int64_t);

/// Computes R rows and C vectors of c; the last vector has `part` columns if kPart.
template <class T, int R, int C, bool kPart>
void rows_tile(const ChainSizes& s, const T* a, const T* b, T* c, std::int64_t part) {
  constexpr int kStep = kLanes<T>;
  Vector<T> sum[R][C];
  const auto held = [&](int r, int v) __attribute__((always_inline)) {
    const T* from = c + r * s.c_row + v * kStep;
    return kPart && v == C - 1 ? load_columns(from, part) : load(from);
  };
  const auto columns = [&](const T* row, int v) __attribute__((always_inline)) {
    return row + v / kMaxVectors * s.panel + v % kMaxVectors * kStep;
  };
  const bool goes_on = s.chain == Chain::goes_on;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < C; ++v) sum[r][v] = goes_on ? held(r, v) : Vector<T>(T(0));
  for (std::int64_t k = s.k; k-- > 0; a += s.a_step, b += s.b_row) {
    Vector<T> row[C];
#pragma GCC unroll 8
    for (int v = 0; v < C; ++v)
      row[v] = kPart && v == C - 1 ? load_columns(columns(b, v), part) : load(columns(b, v));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector<T> factor(a[r * s.a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < C; ++v)
        sum[r][v] = kPart && v == C - 1 ? multiply_add_columns(factor, row[v], sum[r][v], part)
                                        : multiply_add(factor, row[v], sum[r][v]);
    }
  }
  if (s.chain == Chain::is_added) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < C; ++v) sum[r][v] += held(r, v);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < C; ++v) {
      T* to = c + r * s.c_row + v * kStep;
      if (kPart && v == C - 1)
        store_part(to, sum[r][v], part);
      else
        sum[r][v].store_unaligned(to);
    }
}

template <class T, int C, bool kPart>
Tile<T> rows_tile_of(std::int64_t rows) {
  constexpr Tile<T> tiles[kMaxTileRows] = {rows_tile<T, 1, C, kPart>, rows_tile<T, 2, C, kPart>,
                                           rows_tile<T, 3, C, kPart>, rows_tile<T, 4, C, kPart>,
                                           rows_tile<T, 5, C, kPart>, rows_tile<T, 6, C, kPart>};
  return tiles[rows - 1];
}
template <class T, bool kPart>
Tile<T> rows_tile_of(std::int64_t rows, int vectors) {
  if constexpr (kMaxVectors > 2) {
    if (vectors == 4) return rows_tile_of<T, 4, kPart>(rows);
    if (vectors == 3) return rows_tile_of<T, 3, kPart>(rows);
  } else if (vectors > 2) {  // one or two rows
    constexpr Tile<T> of_one[] = {rows_tile<T, 1, 3, kPart>, rows_tile<T, 1, 4, kPart>,
                                  rows_tile<T, 1, 5, kPart>, rows_tile<T, 1, 6, kPart>,
                                  rows_tile<T, 1, 7, kPart>, rows_tile<T, 1, 8, kPart>},
                      of_two[] = {rows_tile<T, 2, 3, kPart>, rows_tile<T, 2, 4, kPart>};
    return rows == 1 ? of_one[vectors - 3] : of_two[vectors - 3];
  }
  return vectors == 2 ? rows_tile_of<T, 2, kPart>(rows) : rows_tile_of<T, 1, kPart>(rows);
}

template <class T>
void rows_block(const ChainSizes& s, const T* a, const T* b, T* c) {
  const std::int64_t blocks = (s.m + kMaxTileRows - 1) / kMaxTileRows;
  std::int64_t columns;
  for (std::int64_t j = 0; j < s.n; j += columns) {
    columns = most_vectors(s.m) * kLanes<T>;
    if (s.n - j < columns) columns = s.n - j;
    const int vectors = static_cast<int>((columns + kLanes<T> - 1) / kLanes<T>);
    const std::int64_t part = columns - (vectors - 1) * kLanes<T>;
    std::int64_t rows;
    for (std::int64_t i = 0, block = 0; i < s.m; i += rows, ++block) {
      rows = (s.m - i) / (blocks - block);  // tiles of nearly equal height
      const Tile<T> tile = part == kLanes<T> ? rows_tile_of<T, false>(rows, vectors)
                                             : rows_tile_of<T, true>(rows, vectors);
      tile(s, a + i * s.a_row, s.columns_from(j, b), c + i * s.c_row + j, part);
    }
  }
}

/// Blocks only change the order of reads: every element of c has the same chain of multiply-adds.
/// An `is_added` chain has at most kSlice terms.
template <class T>
void chain_product(const ChainSizes& s, const T* a, const T* b, T* c) {
  // With many rows, a column of tiles reads the same part of b, and the same block of a,
  // repeatedly: both stay in the cache.
  constexpr std::int64_t kCached = 2048 / sizeof(T), kRows = 240;
  static_assert(kCached >= kSlice || sizeof(T) > 4);
  ChainSizes block = s;
  for (std::int64_t k = 0; k < s.k; k += block.k) {
    block.k = s.k - k < kCached ? s.k - k : kCached;
    for (std::int64_t i = 0; i < s.m; i += kRows) {
      block.m = s.m - i < kRows ? s.m - i : kRows;
      rows_block(block, a + i * s.a_row + k * s.a_step, b + k * s.b_row, c + i * s.c_row);
    }
    block.chain = Chain::goes_on;
  }
}

template <class T>
using Sweep = void (*)(const ChainSizes&, const T* a, const T* b, T* c);

/// Adds the products of R rows of a with the first K rows of b. Rows of b are read from end to end:
/// each load has a run of addresses, which processors prefetch.
template <class T, int R, int K>
void sweep_rows(const ChainSizes& s, const T* a, const T* b, T* c) {
  constexpr int kStep = kLanes<T>, kUnrolled = 4 / R;
  Vector<T> factor[R][K];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) factor[r][k] = Vector<T>(a[r * s.a_row + k * s.a_step]);
  const bool goes_on = s.chain == Chain::goes_on;
  std::int64_t j = 0;
  for (; j + kUnrolled * kStep <= s.n; j += kUnrolled * kStep) {
    Vector<T> sum[R][kUnrolled];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kUnrolled; ++v)
        sum[r][v] = goes_on ? load(c + r * s.c_row + j + v * kStep) : Vector<T>(T(0));
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
#pragma GCC unroll 8
      for (int v = 0; v < kUnrolled; ++v) {
        const Vector<T> row = load(b + k * s.b_row + j + v * kStep);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sum[r][v] = multiply_add(factor[r][k], row, sum[r][v]);
      }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kUnrolled; ++v)
        sum[r][v].store_unaligned(c + r * s.c_row + j + v * kStep);
  }
  for (std::int64_t part; j < s.n; j += part) {
    part = s.n - j < kStep ? s.n - j : kStep;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      T* const to = c + r * s.c_row + j;
      Vector<T> sum = goes_on ? load_columns(to, part) : Vector<T>(T(0));
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k)
        sum =
            multiply_add_columns(factor[r][k], load_columns(b + k * s.b_row + j, part), sum, part);
      store_part(to, sum, part);
    }
  }
}

/// Rows of a up to which reading b dominates the cost.
constexpr int kMaxThinRows = kHas32 ? 3 : 2;

template <int N>
struct Count {
  static constexpr int value = N;
};

/// Computes a product with at most kMaxThinRows rows, some rows of b at a time.
template <class T>
void thin_product(const ChainSizes& s, const T* a, const T* b, T* c) {
  constexpr int kMaxTerms = kHas32 ? 8 : 4;
  ChainSizes rest = s;
  const auto sweep = [&](auto terms) __attribute__((always_inline)) {
    constexpr int kTerms = decltype(terms)::value;
    constexpr Sweep<T> sweeps[] = {sweep_rows<T, 1, kTerms>, sweep_rows<T, 2, kTerms>,
                                   sweep_rows<T, kMaxThinRows, kTerms>};
    sweeps[s.m - 1](rest, a, b, c);
    rest.chain = Chain::goes_on;
    rest.k -= kTerms;
    a += kTerms * s.a_step;
    b += kTerms * s.b_row;
  };
  while (rest.k >= kMaxTerms) sweep(Count<kMaxTerms>{});
  if (rest.k >= 4) sweep(Count<4>{});
  if (rest.k >= 2) sweep(Count<2>{});
  if (rest.k) sweep(Count<1>{});
}
/// Adds a product with at most kMaxThinRows rows to c.
template <class T>
void add_thin_product(const ChainSizes& s, const T* a, const T* b, T* c) {
  constexpr std::int64_t kColumns = 1024;
  T made[kMaxThinRows * kColumns];
  for (std::int64_t j = 0; j < s.n; j += kColumns) {
    ChainSizes part = s;
    part.n = part.c_row = s.n - j < kColumns ? s.n - j : kColumns;
    part.chain = Chain::from_zero;
    thin_product(part, a, s.columns_from(j, b), made);
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t k = 0; k < part.n; ++k) c[i * s.c_row + j + k] += made[i * part.n + k];
  }
}

/// True if c is larger than the first-level cache, and its rows share few sets of it: columns of
/// tiles, which are narrow with 16 registers, evict each other's lines. With few terms, writing c
/// dominates the cost.
template <class T>
bool writes_dominate(const MatrixSizes& s) {
  constexpr std::int64_t kFewTerms = 4, kShared = 2048 / sizeof(T), kCached = 64 * 1024 / sizeof(T);
  return !kHas32 && s.k <= kFewTerms && s.c_row % kShared == 0 && s.m * s.n >= kCached &&
         !s.b_panel;
}
/// Computes c row by row.
template <class T>
void product_by_rows(const ChainSizes& s, const T* a, const T* b, T* c) {
  ChainSizes row = s;
  row.m = 1;
  for (std::int64_t i = 0; i < s.m; ++i) rows_block(row, a + i * s.a_row, b, c + i * s.c_row);
}

template <class T>
void rows_product(const MatrixSizes& s, const T* a, const T* b, T* c) {
  const bool is_thin = s.m <= kMaxThinRows && s.n >= 256 && !s.b_panel;
  ChainSizes slice{s, s.add ? Chain::goes_on : Chain::from_zero,
                   s.b_panel ? s.b_panel : kPanelColumns<T>};
  for (std::int64_t k = 0; k < s.k; k += slice.k) {
    slice.k = s.order == SumOrder::slices && s.k - k > kSlice ? kSlice : s.k - k;
    const T *from_a = a + k * s.a_step, *from_b = b + k * s.b_row;
    if (writes_dominate<T>(s))
      product_by_rows(slice, from_a, from_b, c);
    else if (!is_thin)
      chain_product(slice, from_a, from_b, c);
    else if (slice.chain != Chain::is_added)
      thin_product(slice, from_a, from_b, c);
    else
      add_thin_product(slice, from_a, from_b, c);
    slice.chain = Chain::is_added;
  }
}

/// Computes R rows and C columns of c, each as the product of two runs: vectors of partial sums
/// along k, added at the end.
template <class T, int R, int C>
void runs_tile(const MatrixSizes& s, const T* a, const T* b, T* c) {
  constexpr int kStep = kLanes<T>;
  Vector<T> sum[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) sum[r][j] = Vector<T>(T(0));
  const auto step = [&](auto loaded, std::int64_t k) __attribute__((always_inline)) {
    Vector<T> left[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) left[r] = loaded(a + r * s.a_row + k);
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) {
      const Vector<T> right = loaded(b + j * s.b_step + k);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[r][j] = multiply_add(left[r], right, sum[r][j]);
    }
  };
  std::int64_t k = 0;
  for (; k + kStep <= s.k; k += kStep) step([](const T* from) { return load(from); }, k);
  if (k < s.k) step([part = s.k - k](const T* from) { return load_part(from, part); }, k);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    T total[C];
    if constexpr (C == kRunColumns)
      sum_lanes(sum[r], total);
    else
      total[0] = sum_lanes(sum[r][0]);
    T* to = c + r * s.c_row;
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) to[j] = s.add ? to[j] + total[j] : total[j];
  }
}

template <class T, int R>
void runs_rows(const MatrixSizes& s, const T* a, const T* b, T* c) {
  std::int64_t j = 0;
  for (; j + kRunColumns <= s.n; j += kRunColumns)
    runs_tile<T, R, kRunColumns>(s, a, b + j * s.b_step, c + j);
  for (; j < s.n; ++j) runs_tile<T, R, 1>(s, a, b + j * s.b_step, c + j);
}

template <class T>
void runs_product(const MatrixSizes& s, const T* a, const T* b, T* c) {
  constexpr ProductLoop<T> of_rows[] = {runs_rows<T, 1>, runs_rows<T, 2>, runs_rows<T, 3>,
                                        runs_rows<T, kMaxRunRows>};
  std::int64_t rows;
  for (std::int64_t i = 0; i < s.m; i += rows) {
    const std::int64_t blocks = (s.m - i + kMaxRunRows - 1) / kMaxRunRows;
    rows = (s.m - i) / blocks;
    of_rows[rows - 1](s, a + i * s.a_row, b, c + i * s.c_row);
  }
}

// ---- Small products -----------------------------------------------------------------------------

/// Computes rows of C vectors one after the other; the last vector is a part if kPart.
template <class T, int C, bool kPart>
void small_rows(const MatrixSizes& s, const T* a, const T* b, T* c) {
  constexpr int kStep = kLanes<T>;
  const std::int64_t part = s.n - (C - 1) * kStep;
  const auto columns = [part](const T* from, int v) __attribute__((always_inline)) {
    return kPart && v == C - 1 ? load_columns(from + v * kStep, part) : load(from + v * kStep);
  };
  for (std::int64_t i = s.m; i-- > 0; a += s.a_row, c += s.c_row) {
    Vector<T> sum[C];
#pragma GCC unroll 8
    for (int v = 0; v < C; ++v) sum[v] = s.add ? columns(c, v) : Vector<T>(T(0));
    const T *factors = a, *row = b;
    for (std::int64_t k = s.k; k-- > 0; factors += s.a_step, row += s.b_row) {
      const Vector<T> factor(*factors);
#pragma GCC unroll 8
      for (int v = 0; v < C; ++v)
        sum[v] = kPart && v == C - 1 ? multiply_add_columns(factor, columns(row, v), sum[v], part)
                                     : multiply_add(factor, columns(row, v), sum[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < C; ++v) {
      if (kPart && v == C - 1)
        store_part(c + v * kStep, sum[v], part);
      else
        sum[v].store_unaligned(c + v * kStep);
    }
  }
}

template <class T, bool kPart>
ProductLoop<T> small_rows_of(int vectors) {
  constexpr ProductLoop<T> loops[] = {small_rows<T, 1, kPart>, small_rows<T, 2, kPart>,
                                      small_rows<T, 3, kPart>, small_rows<T, 4, kPart>};
  if constexpr (kHas32) {
    constexpr ProductLoop<T> wide[] = {small_rows<T, 5, kPart>, small_rows<T, 6, kPart>,
                                       small_rows<T, 7, kPart>, small_rows<T, 8, kPart>};
    if (vectors > 4) return wide[vectors - 5];
  }
  return loops[vectors - 1];
}

template <class T>
ProductLoop<T> small_product(const MatrixSizes& s) {
  constexpr std::int64_t kMaxSmallVectors = kHas32 ? 8 : 4;
  constexpr std::int64_t kMaxRows = 3;  // more rows share the loads of b in a tile
  if (s.m > kMaxRows) return nullptr;
  if (s.order == SumOrder::runs) {
    constexpr ProductLoop<T> of_rows[] = {runs_rows<T, 1>, runs_rows<T, 2>, runs_rows<T, 3>};
    return of_rows[s.m - 1];
  }
  const std::int64_t vectors = (s.n + kLanes<T> - 1) / kLanes<T>;
  if (vectors > kMaxSmallVectors) return nullptr;
  return s.n % kLanes<T> ? small_rows_of<T, true>(static_cast<int>(vectors))
                         : small_rows_of<T, false>(static_cast<int>(vectors));
}

/// Integers wrap around, as in unsigned arithmetic.
template <class T, class U>
__attribute__((optimize("O3"))) void integer_product(const MatrixSizes& s, const T* a, const T* b,
                                                     T* c) {
  for (std::int64_t i = 0; i < s.m; ++i) {
    U* __restrict to = reinterpret_cast<U*>(c + i * s.c_row);
    for (std::int64_t j = 0; j < s.n && !s.add; ++j) to[j] = 0;
    for (std::int64_t k = 0; k < s.k; ++k) {
      const U factor = static_cast<U>(a[i * s.a_row + k * s.a_step]);
      const U* __restrict row = reinterpret_cast<const U*>(b + k * s.b_row);
      for (std::int64_t j = 0; j < s.n; ++j) to[j] += factor * row[j];
    }
  }
}

}  // namespace

constinit const ProductTable products{
    .panel_bytes = kPanelColumns<float> * std::int64_t{sizeof(float)},
    .rows_f32 = rows_product<float>,
    .rows_f64 = rows_product<double>,
    .rows_i32 = integer_product<std::int32_t, std::uint32_t>,
    .rows_i64 = integer_product<std::int64_t, std::uint64_t>,
    .runs_f32 = runs_product<float>,
    .runs_f64 = runs_product<double>,
    .small_f32 = small_product<float>,
    .small_f64 = small_product<double>,
};

}  // namespace reel::REEL_ISA
