// core/ops/labels.h — what labels of ctc_loss may be.
#pragma once

#include <string>

#include "reel/core/dim.h"
#include "reel/core/tensor.h"

namespace reel {

/// The labels, integers, as `function` takes them. blank: a position along vocab; negative ones
/// count from the end. Throws IndexError, in a trace when it runs, for one that is the blank or no
/// position along vocab.
Tensor checked_labels(std::string function, const Tensor& labels, const Dim& vocab,
                      std::int64_t blank);

}  // namespace reel
