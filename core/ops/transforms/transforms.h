// core/ops/transforms/transforms.h — the ops of Fourier transforms, closed under vjp.
//
// The ops are linear. The transpose of rfft_op is irfft_op with the same attributes; fft_op has
// fft_op in the other direction. Factors that depend on the size are attributes, since a trace
// may not know the size.
#pragma once

#include <optional>

#include "reel/core/op/attrs.h"
#include "reel/core/op/op.h"

namespace reel {

/// Attributes of the three ops. With s = 1/n if `divides`, else 1, and m(k) = 2 if `doubles` and
/// 0 < k < n/2, else 1:
///
///   rfft    x[n] -> re, im [n/2 + 1]      X[k] = s m(k) Σ x[j] e^(-2πi jk/n)
///   irfft   re, im [n/2 + 1] -> x[n]      x[j] = s Σ m(k) Re(X[k] e^(2πi jk/n))
///   fft     re, im [n] -> re, im [n]      X[k] = s Σ x[j] e^(∓2πi jk/n), + if `is_inverse`
struct TransformAttrs {
  int axis = 0;
  bool doubles = false, divides = false, is_inverse = false;
  /// The axis in the result: a dim of frequencies for rfft, of n elements for irfft, none for fft.
  std::optional<Dim> to = {};
  template <class F>
  static void fields(F&& f) {
    f("axis", &TransformAttrs::axis);
    f("doubles", &TransformAttrs::doubles);
    f("divides", &TransformAttrs::divides);
    f("is_inverse", &TransformAttrs::is_inverse);
    f("to", &TransformAttrs::to);
  }
};

extern const Op rfft_op;
extern const Op irfft_op;
extern const Op fft_op;

}  // namespace reel
