// core/ops/shown_dims.h — ShownDims, the ragged dims of a loop while some of its entries have
// ended.
#pragma once

#include <vector>

#include "reel/core/dim_changes.h"
#include "reel/core/tensor.h"

namespace reel {

/// Dims that have a length for each entry of a loop, as ended entries show them: as long as the
/// first live one, whose elements those entries show as well (fill_live).
///
/// For values of eager mode. A Dim stays the same object for as long as its lengths stay the same,
/// which depends on who is the first live entry.
class ShownDims {
 public:
  ShownDims() = default;
  /// Dims that stay as they are.
  explicit ShownDims(Dims kept) : kept_(std::move(kept)) {}

  /// Who is live from now on.
  void set_live(const Tensor& live);
  /// From now on the dim is shown, if it has lengths over entries.
  void add(const Dim& dim);
  void add(const TensorType& type);

  /// The dim in a body: one that was added, or computed from such (time + 1), by its shown form.
  Dim operator()(const Dim& dim) const { return to_(dim); }
  bool affects(const TensorType& type) const { return to_.affects(type); }
  bool affects(const Dim& dim) const { return to_.affects(dim); }

  /// The shown form of some dim.
  bool is_shown(const Dim& dim) const { return back_.affects(dim); }

  /// x as a body sees it: with the values of a live entry in those that have ended.
  Tensor filled(const Tensor& x) const;
  /// x with shown dims and its own values.
  Tensor renamed(const Tensor& x) const { return with(x, to_); }
  /// What a body made, with the dims that it has outside; a Dim likewise.
  Tensor restored(const Tensor& x) const { return with(x, back_); }
  Dim restored(const Dim& dim) const { return back_(dim); }
  /// What comes of a state that all entries share: the elements that no live entry shows stay as
  /// they were. made: restored.
  Tensor completed(const Tensor& made, const Tensor& before) const;

 private:
  static Tensor with(const Tensor& x, const DimChanges& changes);
  void find(const Dim& dim);

  Tensor live_;
  Dims kept_, known_;
  DimChanges to_, back_;
  std::vector<std::pair<Dim, Dim>> shown_;  ///< as they were shown last
};

}  // namespace reel
