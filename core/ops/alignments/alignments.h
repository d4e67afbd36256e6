// core/ops/alignments/alignments.h — sums over all alignments of labels to frames, and their
// gradients.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/op/attrs.h"
#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Attributes of the ops of this file.
struct AlignmentAttrs {
  std::int64_t blank = 0;        ///< a position along vocab; negative ones count from the end
  bool has_normalisers = false;  ///< see below
  template <class F>
  static void fields(F&& f) {
    f("blank", &AlignmentAttrs::blank);
    f("has_normalisers", &AlignmentAttrs::has_normalisers);
  }
};

// Operands: logits, floating, with named dims; labels, i32 [..., label_time]; frames and counts,
// i32 [...], the lengths of each entry. No dim's own lengths are read. Results: log p(labels) in
// nats, [...]; if has_normalisers, also logsumexp(logits, vocab) in f64, 0 behind the lengths.
// The gradient ops take the cotangent of log p, and the normalisers if has_normalisers, and return
// the cotangent of logits, which is 0 behind the lengths. An entry without a possible alignment, or
// with a symbol out of range, has the value -inf and the gradient 0. Sums are in f64, in log space
// or as exact.
//
// The gradient of a gradient op differentiates a scan (ctc_gradient_vjp, transducer_gradient_vjp).

/// CTC: logits [..., time, vocab]. Source: Graves et al. (2006), eq. 6 to 8.
extern const Op ctc_op;
extern const Op ctc_grad_op;
/// RNN-T: logits [..., time, prefix, vocab], and labels [..., prefix]; the last symbol is not
/// read. Source: Graves (2012), eq. 12 to 20.
extern const Op transducer_op;
extern const Op transducer_grad_op;

/// The operands of a gradient op, and the cotangent of its result.
struct AlignmentGradient {
  Tensor logits, labels, frames, counts, g;
  Tensor cotangent;
  std::int64_t blank = 0;
};
/// Return the cotangents of `logits` and `g`. Defined in frontend/losses, since they run scans.
std::pair<Tensor, Tensor> ctc_gradient_vjp(const AlignmentGradient& at);
std::pair<Tensor, Tensor> transducer_gradient_vjp(const AlignmentGradient& at);

/// While one exists on this thread, the losses are scans instead of these ops, for formats that
/// lack them.
class REEL_API AlignmentOpsOff {
 public:
  AlignmentOpsOff();
  ~AlignmentOpsOff();
  AlignmentOpsOff(const AlignmentOpsOff&) = delete;
  AlignmentOpsOff& operator=(const AlignmentOpsOff&) = delete;
  static bool holds();
};

// The kernels.
void ctc_kernel(KernelArgs& args);
void ctc_grad_kernel(KernelArgs& args);
void transducer_kernel(KernelArgs& args);
void transducer_grad_kernel(KernelArgs& args);

}  // namespace reel
