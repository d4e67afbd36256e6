// core/ops/product_table.h — ProductTable, our own loops for matrix products as one instruction set
// gives them.
//
// Read by products_isa.cpp, which is compiled for several processors: includes nothing that could
// leave a shared inline function compiled for the newest of them.
#pragma once

#include <cstdint>

namespace reel {

/// The order in which the terms of an element of a product are added up.
enum class SumOrder : std::uint8_t {
  by_sizes,  ///< whichever is fast: its bits depend on how many rows there are
  chain,     ///< one chain of multiply-adds in the order of k
  slices,    ///< f32: a chain for each kSlice of k, and these one by one
  runs,      ///< vectors along k, whose lanes are added up at the end
  parts,     ///< kSums stretches of k, each in an order of its own (gemm.cpp)
  library,   ///< whatever oneDNN does
};

/// c[i·c_row + j] = Σ_k a[i·a_row + k·a_step] · b[k·b_row + j·b_step]. Steps in elements; m, n, k >
/// 0.
struct MatrixSizes {
  std::int64_t m, n, k;
  std::int64_t a_row, a_step;
  std::int64_t b_row, b_step;
  std::int64_t c_row;
  bool add = false;  ///< the sums go on from what c holds
  SumOrder order = SumOrder::by_sizes;
};
/// Elements of k in a slice: oneDNN takes so many in one chain, too, so that rows have the same
/// bits whoever multiplies them.
constexpr std::int64_t kSlice = 256;

template <class T>
using ProductLoop = void (*)(const MatrixSizes&, const T* a, const T* b, T* c);

struct ProductTable {
  /// b_step is 1. Each element is a chain, or has one for each slice where the order says so: its
  /// bits depend on no other size.
  ProductLoop<float> rows_f32;
  ProductLoop<double> rows_f64;
  ProductLoop<std::int32_t> rows_i32;
  ProductLoop<std::int64_t> rows_i64;
  /// a_step and b_row are 1: every element is the product of two runs of memory.
  ProductLoop<float> runs_f32;
  ProductLoop<double> runs_f64;
};

namespace sse42 {
extern const ProductTable products;
}
namespace avx2 {
extern const ProductTable products;
}
namespace avx512 {
extern const ProductTable products;
}

}  // namespace reel
