// frontend/losses/alignment_scans.h — sums over alignments by scans, for gradients of any order.
//
// The ops of core/ops/alignments compute values and first gradients. Second derivatives
// differentiate these functions.
#pragma once

#include <cstdint>

#include "reel/core/types/tensor.h"

namespace reel {

/// Returns log(exp a + exp b) for finite numbers. The maximum is a constant to the gradient, in
/// which it cancels.
Tensor finite_log_add(const Tensor& a, const Tensor& b);
Tensor finite_log_add(const Tensor& a, const Tensor& b, const Tensor& c);

/// Return true for the rows of logits within the lengths of their entries, over the dims of logits
/// without vocab.
Tensor ctc_rows(const Tensor& logits, const Tensor& frames, const Tensor& counts);
Tensor transducer_rows(const Tensor& logits, const Tensor& frames, const Tensor& counts);

// Return the log-probabilities of entries; -inf without a gradient for an entry that has no
// possible alignment. Operands: as for ctc_op and transducer_op.

Tensor ctc_by_scan(const Tensor& logits, const Tensor& labels, const Tensor& frames,
                   const Tensor& counts, std::int64_t blank);
Tensor transducer_by_scan(const Tensor& logits, const Tensor& labels, const Tensor& frames,
                          const Tensor& counts, std::int64_t blank);

}  // namespace reel
