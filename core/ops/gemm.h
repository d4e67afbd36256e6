// core/ops/gemm.h — multiply, the product of two matrices that lie in memory anyhow.
#pragma once

#include "reel/core/dtype.h"
#include "reel/core/ops/product_table.h"

namespace reel {

/// c = a·b, or c += a·b where sizes.add, for elements of a dtype other than boolean; any size may
/// be 0.
///
/// Which kernel runs depends on the sizes, steps, order and dtype only: the same product has the
/// same bits every time. Large ones are done in parts, on several threads (parallel.h), whose
/// borders depend on sizes only. No state; may be called from several threads at once. An order
/// that is asked for has to be one of has_alike_rows, and runs only where both operands have them.
/// docs/decisions/0002-small-products.md has the numbers behind the choice.
void multiply(DType dtype, const MatrixSizes& sizes, const void* a, const void* b, void* c);

/// Whether `rows` rows of the product by themselves have the bits that they have among all of them.
bool rows_are_alike(DType dtype, const MatrixSizes& sizes, std::int64_t rows);

/// The order in which multiply adds up such a product.
SumOrder sum_order(DType dtype, const MatrixSizes& sizes);
/// The same where b is read row by row, however few columns it has.
SumOrder chain_order(DType dtype, const MatrixSizes& sizes);
/// An order in which a row has the same bits whatever others there are.
inline bool has_alike_rows(SumOrder order) {
  return order == SumOrder::chain || order == SumOrder::slices || order == SumOrder::runs;
}

}  // namespace reel
