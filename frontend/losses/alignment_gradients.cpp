// Gradients of the gradient ops of core/ops/alignments.
#include <limits>
#include <utility>

#include "reel/autodiff/tape.h"
#include "reel/core/ops.h"
#include "reel/core/ops/alignments/alignments.h"
#include "reel/core/runtime/random.h"
#include "reel/frontend/losses/alignment_scans.h"

namespace reel {
namespace {

/// Returns the gradient of a scalar function at tensors; zeros for one without a path.
template <class F>
Tensors gradient_of(const F& f, const Tensors& at) {
  RecordingTape tape;
  Tensors own;
  for (const Tensor& x : at) {
    own.push_back(identity(x));
    tape.watch(own.back());
  }
  const Tensor y = f(own);
  Tensors gradient = tape.gradient({y}, {Tensor()}, own);
  for (std::size_t i = 0; i < own.size(); ++i)
    if (!gradient[i].is_defined()) gradient[i] = zeros_like(own[i]);
  return gradient;
}

/// by_scan: ctc_by_scan or transducer_by_scan. rows: within the lengths.
template <class F>
std::pair<Tensor, Tensor> gradient_vjp(const AlignmentGradient& at, const F& by_scan,
                                       const Tensor& rows) {
  // The result is 0 behind the lengths, whatever the cotangent is there.
  const Tensor cotangent = where(expand(rows, at.logits.dims()), at.cotangent, 0);
  const auto along = [&](const Tensors& x) {
    const auto value = [&](const Tensors& logits) {
      const Tensor p = by_scan(logits[0], at.labels, at.frames, at.counts, at.blank);
      return sum(x[1] * where(p == -std::numeric_limits<double>::infinity(), 0, p));
    };
    return sum(cotangent * gradient_of(value, {x[0]})[0]);
  };
  // A traced gradient runs the loops; an eager gradient of it does not. No mode takes numbers of
  // the caller's stream.
  const SeededStream none(0);
  const Tensors made = gradient_of(along, {at.logits, at.g});
  return {made[0], made[1]};
}

}  // namespace

std::pair<Tensor, Tensor> ctc_gradient_vjp(const AlignmentGradient& at) {
  return gradient_vjp(at, ctc_by_scan, ctc_rows(at.logits, at.frames, at.counts));
}
std::pair<Tensor, Tensor> transducer_gradient_vjp(const AlignmentGradient& at) {
  return gradient_vjp(at, transducer_by_scan, transducer_rows(at.logits, at.frames, at.counts));
}

}  // namespace reel
