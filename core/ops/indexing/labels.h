// core/ops/indexing/labels.h — checks the labels of ctc_loss and transducer_loss.
#pragma once

#include <string>

#include "reel/core/types/dim.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns the labels unchanged. labels: integers. blank: a position along vocab; negative ones
/// count from the end. function: the name in messages. Throws IndexError, in a trace when it runs,
/// for a label that is the blank or no position along vocab.
Tensor checked_labels(std::string function, const Tensor& labels, const Dim& vocab,
                      std::int64_t blank);

}  // namespace reel
