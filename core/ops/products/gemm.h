// core/ops/products/gemm.h — multiply(), the product of two matrices with any strides.
#pragma once

#include <optional>
#include <utility>

#include "reel/core/ops/kernels/product_table.h"
#include "reel/core/types/dtype.h"

namespace reel {

/// Computes c = a·b, or c += a·b if sizes.add. Requires a dtype other than boolean; any size may be
/// 0.
///
/// Sizes, steps, order and dtype alone select the kernel: the same product has the same bits every
/// time. Large products run in shares on several threads (parallel.h). The borders of shares depend
/// on sizes only. Thread-safe; keeps no state. Requires sizes.order to be by_sizes or one for which
/// has_alike_rows() is true. SumOrder::runs takes effect only if both operands are runs of memory.
/// If b is packed (MatrixSizes::b_panel), the order must be given, b_step 1, and the product runs
/// on one thread. docs/decisions/0002-small-products.md has the measurements behind the choice of
/// kernels.
void multiply(DType dtype, const MatrixSizes& sizes, const void* a, const void* b, void* c);

/// A product of small matrices with a loop that was chosen in advance, since it runs often.
/// multiply() chooses the same loop at each call.
struct SmallProduct {
  MatrixSizes sizes[2];    ///< without and with `add`
  bool is_turned = false;  ///< cᵀ = bᵀ·aᵀ is computed
  ProductLoop<float> f32 = nullptr;
  ProductLoop<double> f64 = nullptr;

  /// Computes c = a·b, or c += a·b if `adds`, with the bits of multiply().
  void run(const void* a, const void* b, void* c, bool adds) const {
    if (is_turned) std::swap(a, b);
    if (f32)
      f32(sizes[adds], static_cast<const float*>(a), static_cast<const float*>(b),
          static_cast<float*>(c));
    else
      f64(sizes[adds], static_cast<const double*>(a), static_cast<const double*>(b),
          static_cast<double*>(c));
  }
};
/// Returns the loop of a product of floats with at most three rows and 128 terms that is one chain
/// or of runs, if its columns fit one tile. Returns nothing for other products.
std::optional<SmallProduct> small_product(DType dtype, const MatrixSizes& sizes);

/// Returns true if multiply() copies an operand or keeps partial sums for these sizes, which takes
/// memory.
bool takes_memory(DType dtype, const MatrixSizes& sizes);

/// Columns of b that our kernel reads together, so that it pays to store them side by side.
std::int64_t panel_columns(DType dtype);

/// True if `rows` rows of the product alone have the same bits as among all rows.
bool rows_are_alike(DType dtype, const MatrixSizes& sizes, std::int64_t rows);

/// Returns the order in which multiply() adds the terms of an element.
SumOrder sum_order(DType dtype, const MatrixSizes& sizes);
/// Returns that order if b is read row by row, even with a single column.
SumOrder chain_order(DType dtype, const MatrixSizes& sizes);
/// True for orders in which the bits of a row do not depend on the other rows.
inline bool has_alike_rows(SumOrder order) {
  return order == SumOrder::chain || order == SumOrder::slices || order == SumOrder::runs;
}

}  // namespace reel
