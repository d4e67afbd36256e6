// tests/cases/derivatives.h — checks that a function keeps its derivatives inside loops, branches
// and scans.
#pragma once

#include <functional>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {

/// The function of a case: (tensors) -> a floating scalar. Must take f32 and f64.
using CaseFunction = std::function<Tensor(const Tensors&)>;

/// Returns the condition v < limit.
inline auto below(double limit) {
  return [=](const Tensor& v) { return v < limit; };
}
/// Returns x after n calls of body.
template <class Body>
Tensor repeat(const IterationCount& n, const Body& body, const Tensor& x) {
  return while_loop([](const Tensor&) { return true; }, body, x, {.maximum_iterations = n});
}

struct CaseOptions {
  bool agrees_with_differences = true;  ///< false if the case cuts a gradient
  /// False if f itself takes a second gradient: only first gradients add in the same order in all
  /// modes.
  bool has_same_bits = true;
  double tolerance = 1e-6;
};

class DerivativesInEveryMode : public InEveryMode {
 protected:
  /// Expects this f(x) and these gradients, one per tensor of x.
  ///
  /// jit(f) under an eager tape must give the same bits. In f64 the gradient, and the gradient of a
  /// weighted sum of gradients, must agree with central differences. All of it is checked again for
  /// f in a loop's body, on captures and on a state; in a branch in a body; in a scan over copies
  /// of x; and with the gradient taken inside a body.
  void expect_derivatives(const CaseFunction& f, const Tensors& x, double value,
                          const std::vector<std::vector<double>>& gradients,
                          CaseOptions options = {}, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) const;
};

}  // namespace reel
