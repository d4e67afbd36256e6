// core/ops/loop/capture_list.h — CaptureList, the tensors that several graphs capture, without
// repetition.
#pragma once

#include <vector>

#include "reel/core/types/tensor.h"

namespace reel {

/// Merges the captures of several graphs into one list without repetition. add() returns the
/// indices in the list of a graph's captures.
class CaptureList {
 public:
  std::vector<int> add(const Tensors& captured);
  const Tensors& tensors() const { return tensors_; }

 private:
  Tensors tensors_;
};

}  // namespace reel
