// core/ops/products/large_product.h — products of large f32 matrices, faster than in place.
//
// large_product_x86_64.cpp and large_product_aarch64.cpp choose between oneDNN and the kernel that
// packs operands, PackedProduct.
#pragma once

#include "reel/core/ops/kernels/product_table.h"

namespace reel {

/// Computes a product in SumOrder::slices or SumOrder::library. Requires one of these orders, or at
/// most kSlice terms; and b_step 1 and no b_panel, if not large_products_are_packed(). Chains are
/// never longer than a slice. Uses one thread.
void large_product(const MatrixSizes& s, const float* a, const float* b, float* c);

/// True if the elements of a large_product have the bits of our chains.
bool large_products_are_chains();

/// True if a large_product reads any b_step, and a packed b.
bool large_products_are_packed();

/// Runs a kernel with the memory that it needs.
void run_packed(PackedProduct kernel, const MatrixSizes& s, const float* a, const float* b,
                float* c);

}  // namespace reel
