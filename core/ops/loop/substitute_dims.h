// core/ops/loop/substitute_dims.h — SubstituteDims, the ragged dims of a loop while some of its
// entries have finished.
#pragma once

#include <memory>
#include <vector>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Replaces dims that have a length for each entry of a loop. Finished entries get the length of
/// the first running entry, because they also read its elements (fill_running).
///
/// Requires eager values. A replaced Dim stays the same object while its lengths stay the same;
/// these depend on which entry is the first running one.
class SubstituteDims {
 public:
  SubstituteDims() = default;
  /// kept: dims that are not replaced.
  explicit SubstituteDims(Dims kept) : kept_(std::move(kept)) {}

  /// Replacements of these dims keep the size, which may be more than the longest length: finished
  /// entries that are longer than all running ones keep their elements. Call it before add().
  void keep_sizes(const TensorType& type);
  /// Sets the running entries from now on.
  void set_running(const Tensor& running);
  /// From now on replaces the dim, if it has lengths over entries.
  void add(const Dim& dim);
  void add(const TensorType& type);

  /// Returns the dim in a body: the replacement of a dim that was added or is computed from one
  /// (time + 1).
  Dim operator()(const Dim& dim) const { return to_(dim); }
  bool affects(const TensorType& type) const { return to_.affects(type); }
  bool affects(const Dim& dim) const { return to_.affects(dim); }

  /// True if the dim replaces another one.
  bool is_shown(const Dim& dim) const { return back_.affects(dim); }

  /// Returns x as a body reads it: finished entries have the values of a running entry.
  /// cache: null, or holds the values for the next call for x (fill_running_as).
  Tensor filled(const Tensor& x, std::shared_ptr<FilledEntries> cache = {}) const;
  /// Returns x with replaced dims and its own values.
  Tensor renamed(const Tensor& x) const { return with(x, to_); }
  /// Returns a value or Dim that a body made with its dims outside the body.
  Tensor restored(const Tensor& x) const { return with(x, back_); }
  Dim restored(const Dim& dim) const { return back_(dim); }
  /// Returns the next value of a state that all entries share. Elements that no running entry
  /// covers keep their values from `before`. made: restored.
  Tensor completed(const Tensor& made, const Tensor& before) const;

 private:
  static Tensor with(const Tensor& x, const DimChanges& changes);
  void find(const Dim& dim);
  Dim shown_as(const Dim& dim, const Tensor& lengths) const;

  Tensor running_;
  Dims kept_, sized_, known_;
  DimChanges to_, back_;
  std::vector<std::pair<Dim, Dim>> shown_;  ///< the latest replacements
};

}  // namespace reel
