// trace/executors/plan/loop/dense_stack.h — DenseStack: a stack of known length in memory.
#pragma once

#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/clear_bytes.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {

/// A stack of known final size: terms are written to their places in the result.
class DenseStack {
 public:
  /// term: type of a term.   data: the elements of the result.
  DenseStack(const Iterations& iterations, const TensorType& term, char* data)
      : iterations_(iterations), data_(data), bytes_(term.bytes()) {}

  char* place(std::int64_t position) const { return data_ + position * bytes_; }
  /// Returns where a series of iterations writes. direction: 1, or -1 in a reverse loop.
  TileProgram::Strided series_from(std::int64_t position, std::int64_t direction) const {
    return {place(position), direction * bytes_};
  }
  void put(const Tensor& term, std::int64_t position) const {
    copy_elements(place(position), term);
  }
  /// Writes zeros at the remaining positions if iterations end before the dim does.
  void finish(Tensor& out, const Dim&) const {
    clear_bytes(data_, iterations_.count() * bytes_, out.type().bytes());
  }

 private:
  const Iterations& iterations_;
  char* data_;
  std::int64_t bytes_;
};

}  // namespace reel
