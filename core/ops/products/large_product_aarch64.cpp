// Large products by our own kernel. oneDNN is not linked: the kernel has the order of our chains,
// so no second library has to be compared with it.
#include "reel/core/ops/products/large_product.h"

namespace reel {

void large_product(const MatrixSizes& s, const float* a, const float* b, float* c) {
  run_packed(neon::packed_f32, s, a, b, c);
}

bool large_products_are_chains() { return true; }
bool large_products_are_packed() { return true; }

}  // namespace reel
