// tests/cases/derivatives.h — a function of a case holds its derivatives wherever it stands, not in
// the place that the case shows alone.
#pragma once

#include <functional>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {

/// f of a case: (tensors) -> a floating scalar. It must take f32 and f64.
using CaseFunction = std::function<Tensor(const Tensors&)>;

/// A condition: while v < limit.
inline auto below(double limit) {
  return [=](const Tensor& v) { return v < limit; };
}
/// x after n calls of body.
template <class Body>
Tensor repeat(const IterationCount& n, const Body& body, const Tensor& x) {
  return while_loop([](const Tensor&) { return true; }, body, x, {.maximum_iterations = n});
}

struct CaseOptions {
  bool agrees_with_differences = true;  ///< false where the case cuts a gradient
  /// false where f takes a second gradient itself: only first ones are added up in the same order
  /// in all modes.
  bool has_same_bits = true;
  double tolerance = 1e-6;
};

class DerivativesInEveryMode : public InEveryMode {
 protected:
  /// f(x) and its gradient are the numbers of the case, the gradient once per tensor of x. So are
  /// they for jit(f) under an eager tape, with the same bits; in f64 both the gradient and the
  /// second one (that of weighted first ones) agree with central differences. All of it holds again
  /// where f stands in a body, on captures or on a state, in a branch in a body, in a scan over
  /// copies of x, and where the gradient itself is taken in a body.
  void expect_derivatives(const CaseFunction& f, const Tensors& x, double value,
                          const std::vector<std::vector<double>>& gradients,
                          CaseOptions options = {}, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) const;
};

}  // namespace reel
