// core/ops/loop/printed_entries.h — PrintedEntries, the entries of a scan that print shows.
#pragma once

#include <cstdint>

#include "reel/core/types/tensor.h"

namespace reel {

/// Gives print the iteration and the running entries while the body of a scan is called. Finished
/// entries compute on the values of a running one, which print must not show.
class PrintedEntries {
 public:
  /// running: booleans over the scan's entries. iteration: i64, a scalar. Both are undefined while
  /// a recording finds out if the body prints.
  PrintedEntries(Tensor running, Tensor iteration);
  ~PrintedEntries();
  PrintedEntries(const PrintedEntries&) = delete;
  PrintedEntries& operator=(const PrintedEntries&) = delete;

  /// True if print was called since construction.
  bool is_asked() const { return is_asked_; }

  /// Returns the inputs of print behind x: the iteration of the innermost scan, and a mask of x for
  /// each scan around. Returns nothing outside of scans with entries, or if `running` is undefined.
  static Tensors inputs_for(const TensorType& x);

 private:
  static std::uint64_t trace_here();

  Tensor running_, iteration_;
  std::uint64_t trace_;  ///< its outermost graph: a graph that runs again must not capture running_
  PrintedEntries* outer_;
  bool is_asked_ = false;
};

}  // namespace reel
