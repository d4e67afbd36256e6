#include "reel/core/ops/elementwise/pointwise_code.h"

namespace reel {

// Code is generated for AVX-512 only: plans run the vector loops of each step.
std::shared_ptr<const PointwiseCode> code_of(const Chain&) { return nullptr; }

}  // namespace reel
