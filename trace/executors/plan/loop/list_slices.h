// trace/executors/plan/loop/list_slices.h — ListSlices: the elements of a list.
#pragma once

#include <utility>

#include "reel/trace/executors/plan/plan.h"

namespace reel {

/// Slices that are elements of a list.
class ListSlices {
 public:
  /// elements: the elements, by position.
  explicit ListSlices(Tensors elements) : elements_(std::move(elements)) {}

  void set(Plan& body, std::size_t input, std::int64_t position) const {
    body.set_input(input, slice(position));
  }
  const Tensor& slice(std::int64_t position) const {
    return elements_[static_cast<std::size_t>(position)];
  }

 private:
  Tensors elements_;
};

}  // namespace reel
