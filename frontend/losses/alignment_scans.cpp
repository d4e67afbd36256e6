#include "reel/frontend/losses/alignment_scans.h"

#include "reel/core/ops.h"

namespace reel {

Tensor finite_log_add(const Tensor& a, const Tensor& b) {
  const Tensor m = stop_gradient(maximum(a, b));
  return m + log(exp(a - m) + exp(b - m));
}

Tensor finite_log_add(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor m = stop_gradient(maximum(maximum(a, b), c));
  return m + log(exp(a - m) + exp(b - m) + exp(c - m));
}

}  // namespace reel
