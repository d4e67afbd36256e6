// core/ops/printed_entries.h — PrintedEntries, which entries of a scan print shows.
#pragma once

#include <cstdint>

#include "reel/core/tensor.h"

namespace reel {

/// While the body of a scan is called, tells print of the iteration and of the entries that run:
/// others compute on the values of one of these.
class PrintedEntries {
 public:
  /// live: booleans over the scan's entries; iteration: i64, a scalar. Both undefined where they
  /// are not known yet, to find out whether the body prints.
  PrintedEntries(Tensor live, Tensor iteration);
  ~PrintedEntries();
  PrintedEntries(const PrintedEntries&) = delete;
  PrintedEntries& operator=(const PrintedEntries&) = delete;

  bool is_asked() const { return is_asked_; }

  /// Inputs of print behind x: the iteration of the innermost scan, and a mask of x for each scan
  /// in whose body this is. Nothing outside of scans with entries, or if one does not know yet.
  static Tensors inputs_for(const TensorType& x);

 private:
  static std::uint64_t trace_here();

  Tensor live_, iteration_;
  std::uint64_t trace_;  ///< graphs made in a body are run in others too: they do not see it
  PrintedEntries* outer_;
  bool is_asked_ = false;
};

}  // namespace reel
