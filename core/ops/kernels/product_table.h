// core/ops/kernels/product_table.h — ProductTable, our loops for matrix products, per instruction
// set.
//
// Included by products_isa.cpp, which is compiled for several processors. Must not include headers
// with shared inline functions: the linker might keep one compiled for the newest processor.
#pragma once

#include <cstdint>

#include "reel/core/runtime/isa_list.h"

namespace reel {

/// The order in which the terms of an element of a product are added.
enum class SumOrder : std::uint8_t {
  by_sizes,  ///< the fastest one: bits depend on the number of rows
  chain,     ///< one chain of multiply-adds in the order of k
  slices,    ///< f32: a chain for each kSlice of k; slices are added one by one
  runs,      ///< vectors along k; their lanes are added at the end
  shards,    ///< kSums ranges of k, each in an order of its own (gemm.cpp)
  library,   ///< the order of oneDNN
};

/// c[i·c_row + j] = Σ_k a[i·a_row + k·a_step] · b[k·b_row + j·b_step]. Steps are in elements; m, n,
/// k > 0.
struct MatrixSizes {
  std::int64_t m, n, k;
  std::int64_t a_row, a_step;
  std::int64_t b_row, b_step;
  std::int64_t c_row;
  bool add = false;  ///< adds to the values in c
  SumOrder order = SumOrder::by_sizes;
  /// If b is packed in panels (packed.h): elements from one panel to the next. b_row is then the
  /// number of columns of a panel, and n a multiple of it.
  std::int64_t b_panel = 0;
};
/// Elements of k in a slice. oneDNN adds the same number in one chain, so rows have the same bits
/// with either library.
constexpr std::int64_t kSlice = 256;

template <class T>
using ProductLoop = void (*)(const MatrixSizes&, const T* a, const T* b, T* c);

struct ProductTable {
  std::int64_t panel_bytes;  ///< of a row of a panel: the columns that a tile of c has
  /// Requires b_step 1. Each element is one chain, or one for each slice if the order says so: its
  /// bits depend on no other size.
  ProductLoop<float> rows_f32;
  ProductLoop<double> rows_f64;
  ProductLoop<std::int32_t> rows_i32;
  ProductLoop<std::int64_t> rows_i64;
  /// Require a_step and b_row 1: every element is the product of two runs of memory.
  ProductLoop<float> runs_f32;
  ProductLoop<double> runs_f64;
  /// Return a loop for products of exactly these sizes and this order, either chain or runs, that
  /// makes no choices when it runs; null if there is none. Its bits are those of the loops above,
  /// which take longer than a product of a few elements to choose a tile. It reads `add`.
  ProductLoop<float> (*small_f32)(const MatrixSizes&);
  ProductLoop<double> (*small_f64)(const MatrixSizes&);
};

/// The part of each operand that PackedProduct copies at a time.
constexpr std::int64_t kPackedRows = 144, kPackedColumns = 1024;
/// Floats of memory that a PackedProduct needs.
constexpr std::int64_t kPackedRoom = (kPackedRows + kPackedColumns) * kSlice;
/// Computes a product from copies of both operands, for large ones. Each element is a chain for
/// each slice, as with SumOrder::slices; values in c are added last. b_step may be any. A packed b
/// is read in place, and so are rows of a if a_step is 1; room may be null if both are.
using PackedProduct = void (*)(const MatrixSizes&, const float* a, const float* b, float* c,
                               float* room);

REEL_DECLARE_TABLES(ProductTable, products)
/// Defined for avx2 and neon. On processors with another best set, oneDNN's product is as fast.
REEL_DECLARE_TABLES(PackedProduct, packed_f32)

}  // namespace reel
