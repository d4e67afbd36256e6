#include "reel/core/ops/elementwise/pointwise_code.h"

namespace reel {

// Code is generated for x86-64 only: plans run the vector loops of each step.
int chain_registers() { return 0; }
std::shared_ptr<const PointwiseCode> code_of(const Chain&) { return nullptr; }

}  // namespace reel
