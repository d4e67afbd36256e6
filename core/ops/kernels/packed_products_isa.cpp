// Large f32 products from packed copies of both operands. Compiled with -DREEL_ISA=avx2 and the
// flags for it, or neon.
//
// The loops follow Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (2008): a part of b in the last cache, a part of a in the second-level cache, a panel of b in the
// first one, and a tile of c in registers.
#include "reel/core/ops/kernels/product_table.h"
#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {
namespace {

// A tile of c stays in registers, with a row of b's panel and one element of a.
constexpr int kTileRows = 6, kTileVectors = kRegisters / 8,
              kTileColumns = kTileVectors * kLanes<float>;

/// Copies R rows of a, with the elements of a column side by side.
template <int R>
void pack_rows(const MatrixSizes& s, const float* a, float* to) {
  const auto pack = [&](std::int64_t row) __attribute__((always_inline)) {
    for (std::int64_t k = 0; k < s.k; ++k, a += s.a_step, to += R) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) to[r] = a[r * row];
    }
  };
  s.a_row == 1 ? pack(1) : pack(s.a_row);
}

/// Copies a panel's columns of b, with the elements of a row side by side. The last columns are
/// repeated, because zeros times an infinite element would raise an exception.
void pack_columns(const MatrixSizes& s, const float* b, float* to, std::int64_t columns) {
  constexpr int kStep = kLanes<float>;
  if (columns == kTileColumns && s.b_step == 1) {
    for (std::int64_t k = 0; k < s.k; ++k, b += s.b_row, to += kTileColumns) {
#pragma GCC unroll 8
      for (int v = 0; v < kTileVectors; ++v) load(b + v * kStep).store_unaligned(to + v * kStep);
    }
    return;
  }
  for (std::int64_t k = 0; k < s.k; ++k, b += s.b_row, to += kTileColumns)
    for (std::int64_t column = 0; column < kTileColumns; ++column)
      to[column] = b[(column < columns ? column : columns - 1) * s.b_step];
}

/// Computes R rows of a panel's columns. a: packed, or rows of a_row elements that are read in
/// place. adds: to the values in c.
template <int R, bool kInPlace>
void tile(std::int64_t k, const float* a, std::int64_t a_row, const float* b, float* c,
          std::int64_t c_row, bool adds) {
  constexpr int kStep = kLanes<float>;
  for (int r = 0; adds && r < R; ++r) {
    __builtin_prefetch(c + r * c_row, 1);
    __builtin_prefetch(c + r * c_row + kTileColumns - 1, 1);
  }
  Vector<float> sum[R][kTileVectors];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kTileVectors; ++v) sum[r][v] = Vector<float>(0.0f);
#pragma GCC unroll 4
  for (; k > 0; --k, a += kInPlace ? 1 : R, b += kTileColumns) {
    Vector<float> row[kTileVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kTileVectors; ++v) row[v] = load(b + v * kStep);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector<float> factor(a[kInPlace ? r * a_row : r]);
#pragma GCC unroll 8
      for (int v = 0; v < kTileVectors; ++v) sum[r][v] = xsimd::fma(factor, row[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kTileVectors; ++v) {
      float* const to = c + r * c_row + v * kStep;
      (adds ? sum[r][v] + load(to) : sum[r][v]).store_unaligned(to);
    }
}

/// The functions for panels of R rows.
struct Panel {
  using Tile = void (*)(std::int64_t k, const float* a, std::int64_t a_row, const float* b,
                        float* c, std::int64_t c_row, bool adds);
  void (*pack)(const MatrixSizes&, const float* a, float* to);
  Tile of_packed, in_place;
};
template <int R>
constexpr Panel kPanel{pack_rows<R>, tile<R, false>, tile<R, true>};
constexpr Panel kPanels[kTileRows] = {kPanel<1>, kPanel<2>, kPanel<3>,
                                      kPanel<4>, kPanel<5>, kPanel<6>};

/// Calls fn(rows, first row) for panels of nearly equal height.
template <class Fn>
void for_each_panel(std::int64_t m, Fn&& fn) {
  std::int64_t rows, panels = (m + kTileRows - 1) / kTileRows;
  for (std::int64_t i = 0; i < m; i += rows, --panels) fn(rows = (m - i) / panels, i);
}

/// Computes a tile with fewer columns than a panel by way of a whole one.
void part_of_tile(Panel::Tile tile, std::int64_t rows, std::int64_t columns, std::int64_t k,
                  const float* a, std::int64_t a_row, const float* b, float* c, std::int64_t c_row,
                  bool adds) {
  constexpr int kStep = kLanes<float>;
  float whole[kTileRows * kTileColumns];
  tile(k, a, a_row, b, whole, kTileColumns, false);
  for (const float* row = whole; rows > 0; --rows, row += kTileColumns, c += c_row)
    for (std::int64_t j = 0; j < columns; j += kStep) {
      const std::int64_t part = columns - j < kStep ? columns - j : kStep;
      const Vector<float> made = load(row + j);
      store_part(c + j, adds ? made + load_part(c + j, part) : made, part);
    }
}

/// Multiplies rows of a and panels of b, which stay in the caches.
/// a: packed if a_step is not 1.
void packed_block(const MatrixSizes& s, const float* a, const float* b, float* c) {
  const bool is_in_place = s.a_step == 1;
  for (std::int64_t j = 0; j < s.n; j += kTileColumns, b += s.b_panel)
    for_each_panel(s.m, [&](std::int64_t rows, std::int64_t i) {
      const Panel& panel = kPanels[rows - 1];
      const Panel::Tile tile = is_in_place ? panel.in_place : panel.of_packed;
      const float* const from = a + i * (is_in_place ? s.a_row : s.k);
      float* const to = c + i * s.c_row + j;
      if (s.n - j >= kTileColumns)
        tile(s.k, from, s.a_row, b, to, s.c_row, s.add);
      else
        part_of_tile(tile, rows, s.n - j, s.k, from, s.a_row, b, to, s.c_row, s.add);
    });
}

/// Multiplies a slice of k: all rows of a, and columns of b that are packed.
void packed_slice(const MatrixSizes& s, const float* a, const float* b, float* c,
                  float* rows_of_a) {
  MatrixSizes block = s;
  for (std::int64_t i = 0; i < s.m; i += kPackedRows) {
    block.m = s.m - i < kPackedRows ? s.m - i : kPackedRows;
    const float* from = a + i * s.a_row;
    if (s.a_step != 1) {
      for_each_panel(block.m, [&](std::int64_t rows, std::int64_t row) {
        kPanels[rows - 1].pack(block, from + row * s.a_row, rows_of_a + row * s.k);
      });
      from = rows_of_a;
    }
    packed_block(block, from, b, c + i * s.c_row);
  }
}

void packed_product(const MatrixSizes& s, const float* a, const float* b, float* c, float* room) {
  static_assert(kPackedColumns % kTileColumns == 0);
  float *const rows_of_a = room, *const columns_of_b = room ? room + kPackedRows * kSlice : nullptr;
  MatrixSizes block = s;
  for (std::int64_t j = 0; j < s.n; j += kPackedColumns) {
    block.n = s.n - j < kPackedColumns ? s.n - j : kPackedColumns;
    block.add = s.add;
    for (std::int64_t k = 0; k < s.k; k += kSlice) {
      block.k = s.k - k < kSlice ? s.k - k : kSlice;
      const float* from = b + k * s.b_row;
      if (s.b_panel) {
        from += j / kTileColumns * s.b_panel;
      } else {
        block.b_panel = block.k * kTileColumns;
        for (std::int64_t column = 0; column < block.n; column += kTileColumns)
          pack_columns(block, from + (j + column) * s.b_step, columns_of_b + column * block.k,
                       block.n - column < kTileColumns ? block.n - column : kTileColumns);
        from = columns_of_b;
      }
      packed_slice(block, a + k * s.a_step, from, c + j, rows_of_a);
      block.add = true;
    }
  }
}

}  // namespace

constinit const PackedProduct packed_f32 = packed_product;

}  // namespace reel::REEL_ISA
