// core/ops/gemm.h — multiply, the product of two matrices that lie in memory anyhow.
#pragma once

#include "reel/core/dtype.h"
#include "reel/core/ops/product_table.h"

namespace reel {

/// c = a·b, or c += a·b where sizes.add, for elements of a dtype other than boolean; any size may
/// be 0.
///
/// Which kernel runs depends on the sizes, steps and dtype only: the same product has the same bits
/// every time. Large ones are done in parts, on several threads (parallel.h), whose borders depend
/// on sizes only. No state; may be called from several threads at once.
/// docs/decisions/0002-small-products.md has the numbers behind the choice.
void multiply(DType dtype, const MatrixSizes& sizes, const void* a, const void* b, void* c);

/// Whether `rows` rows of the product by themselves have the bits that they have among all of them.
bool rows_are_alike(DType dtype, const MatrixSizes& sizes, std::int64_t rows);

/// Whether elements are added up in the order for few rows, which is another one for many.
bool is_of_few_rows(DType dtype, const MatrixSizes& sizes);

}  // namespace reel
