// trace/executors/plan/loop/dense_slices.h — DenseSlices: the slices of a tensor.
#pragma once

#include "reel/trace/executors/plan/loop/place_input.h"
#include "reel/trace/executors/plan/loop/planned_loop.h"

namespace reel {

/// Slices that are read in place.
class DenseSlices {
 public:
  /// type: of the slices as planned.
  DenseSlices(const PlannedLoop& loop, const Tensor& slices, const TensorType& type)
      : type_(&type), data_(slices.data<char>()) {
    const std::int64_t steps = slices.type().sizes()[0];
    if (steps) bytes_ = slices.type().bytes() / steps * loop.chunks.size;
  }

  void set(Plan& body, std::size_t input, std::int64_t position) const {
    place_input(body, input, at(position));
  }
  /// Returns where a series of iterations reads. direction: 1, or -1 in a reverse loop.
  TileProgram::Strided series_from(std::int64_t position, std::int64_t direction) const {
    return {at(position), direction * bytes_};
  }
  Tensor slice(std::int64_t position) const { return placed(slice_type(*type_), at(position)); }

 private:
  char* at(std::int64_t position) const { return data_ + position * bytes_; }

  const TensorType* type_;
  char* data_;
  std::int64_t bytes_ = 0;
};

}  // namespace reel
