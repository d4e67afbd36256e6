// core/ops/product_table.h — ProductTable, our own loops for matrix products as one instruction set
// gives them.
//
// Read by products_isa.cpp, which is compiled for several processors: includes nothing that could
// leave a shared inline function compiled for the newest of them.
#pragma once

#include <cstdint>

namespace reel {

/// c[i·c_row + j] = Σ_k a[i·a_row + k·a_step] · b[k·b_row + j·b_step]. Steps in elements; m, n, k >
/// 0.
struct MatrixSizes {
  std::int64_t m, n, k;
  std::int64_t a_row, a_step;
  std::int64_t b_row, b_step;
  std::int64_t c_row;
  bool add = false;     ///< the sums go on from what c holds
  bool sliced = false;  ///< f32: they are taken slice by slice of k, and these added to each other
};
/// Elements of k in a slice: oneDNN takes so many in one chain, too, so that rows have the same
/// bits whoever multiplies them.
constexpr std::int64_t kSlice = 256;

template <class T>
using ProductLoop = void (*)(const MatrixSizes&, const T* a, const T* b, T* c);

struct ProductTable {
  /// b_step is 1. Each element is one chain of multiply-adds in the order of k, or one for each
  /// slice: its bits depend on no other size.
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
