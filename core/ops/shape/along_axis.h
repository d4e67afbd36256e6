// core/ops/shape/along_axis.h — AlongAxis, functions along an axis, applied to the lengths that run
// over it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/dims/slice_key.h"
#include "reel/core/types/tensor.h"

namespace reel {

// If the lengths of `letters` run over `words`, a function that moves, takes, adds or joins words
// is applied to the lengths as well. Its result has a slice of `letters` with these lengths.

/// Returns true if x has a ragged dim with lengths that run over the axis, and all dims of these
/// lengths.
bool has_lengths_along(const TensorType& x, int axis);
/// Returns true if the lengths of a ragged dim of x run over any of the axes. Dims at the axes do
/// not count.
bool has_lengths_along(const TensorType& x, const std::vector<int>& axes);
/// Returns true if the lengths of the dim at a position run over any of the axes, directly or
/// through the lengths of other dims.
bool runs_along(const TensorType& x, int position, const Dims& axes);

/// Returns a key that begins with the name of a function and its axes.
SliceKey key_along(std::string_view name, const Dims& axes);
/// Returns the key of slices at one index.
SliceKey key_of_element(const Dim& axis, std::int64_t index);

/// Applies a function that moves or takes elements along an axis, together with the lengths that
/// run over the axis.
class AlongAxis {
 public:
  /// Returns elements of x along `axis`, the position of the first dim. Must accept any dtype.
  using Take = std::function<Tensor(const Tensor& x, int axis)>;
  /// Returns the key of slice_of_dim. Called when lengths were taken.
  using KeyOf = std::function<SliceKey()>;

  struct Options {
    /// True if results may have a dim of the axes.
    bool keeps_axis = false;
    /// Returns the key under which equal slices are found again; null: each call makes new slices.
    KeyOf key = nullptr;
    /// Returns the key of the function that `take` undoes. Its slices become the original dims.
    KeyOf undoes = nullptr;
    /// Dims to which lengths are expanded before they are taken, if x has them. Needed if `take`
    /// moves the elements of entries to different places.
    Dims entries = {};
    /// True if `take` may make new places, where lengths must be 0. Lengths of letters + 1 are then
    /// taken directly; otherwise they are the lengths of the slice, plus 1.
    bool makes_places = false;
  };

  AlongAxis(Dims axes, Take take, Options options)
      : axes_(std::move(axes)), take_(std::move(take)), options_(std::move(options)) {}

  /// Returns take(x, axis). Slices replace the dims with lengths that run over the axes, also those
  /// of earlier tensors: x may lack dims of their lengths.
  Tensor operator()(const Tensor& x, int axis);
  /// Returns (*this)(x, axis of the first dim). Requires that x has the dim.
  Tensor operator()(const Tensor& x) { return (*this)(x, find(x.dims(), axes_[0])); }

  /// Returns the substitution from dims of x with lengths over the axes to dims of the result.
  const DimChanges& slices_of(const TensorType& x);

  /// Forgets slices. Must be called before take() returns other elements.
  void begin() { changes_ = {}; }
  /// Makes `to` the slice of `from`.
  void add(const Dim& from, const Dim& to) { changes_.add(from, to); }
  /// Returns the whole dims and their slices.
  const DimChanges& changes() const { return changes_; }

 private:
  Tensor lengths_of(const Dim& dim);
  Tensor with_entries(const Tensor& lengths, const TensorType& x) const;
  void find_slice(const Dim& dim, const TensorType& x);
  Tensor taken(const Tensor& x, int axis);

  Dims axes_;
  Take take_;
  Options options_;
  DimChanges changes_;
  std::vector<std::pair<Dim, Tensor>> lengths_;  ///< of dims that have slices
};

/// Replaces slices that the undone function made by the dims that it sliced, if x lacks a dim of
/// the slice's lengths. Example: letters[batch, words] in max(x, {words}). AlongAxis itself
/// replaces a slice only if x has all dims of its lengths.
///
/// undoes: as AlongAxis::Options::undoes; null changes nothing.
Tensor with_original_dims(const Tensor& x, const AlongAxis::KeyOf& undoes);

/// Returns the dims of axes, and the dims that their lengths run over.
Dims with_entries_of(const Dims& axes);
/// Returns a dim with one size, the longest entry of all these dims.
Dim extent_dim(const Dims& dims);

}  // namespace reel
