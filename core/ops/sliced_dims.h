// core/ops/sliced_dims.h — ragged dims of slices: a word has letters of its own number.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/dim_changes.h"
#include "reel/core/dim_slices.h"
#include "reel/core/tensor.h"

namespace reel {

/// Returns a Dim with these lengths that is a slice of `whole`.
///
/// key: if it is not empty, the same whole dim and key give the same Dim while that Dim lives. In a
/// trace this holds inside of the graph that the Dim was made for.
Dim slice_of_dim(const Dim& whole, const Tensor& lengths, const std::string& key = {});
/// Returns a text for keys. In eager mode indices of equal numbers have the same text.
std::string text_of_index(const Tensor& index);

/// Cuts operands to slices of their dims: if an operand has a dim without all dims of its lengths,
/// and another operand has a slice of that dim, the first one gets the slice.
///
/// Returns false if no operand was cut.
bool meet_slices(std::span<Tensor* const> operands);

/// True if slices of x along the axis have lengths of their own: x has a ragged dim, all dims of
/// its lengths, and one of these is the axis.
bool has_lengths_along(const TensorType& x, int axis);

/// Applies a function that moves or takes elements along an axis, together with the lengths that
/// run over the axis.
class AlongAxis {
 public:
  /// Returns elements of x along the axis. Takes tensors of any dtype.
  using Take = std::function<Tensor(const Tensor& x, int axis)>;

  /// Returns the key of slice_of_dim. Called when lengths were taken.
  using KeyOf = std::function<std::string()>;

  /// keeps_axis: true if results may have `dim`. key: null if each call makes new slices.
  AlongAxis(Dim dim, Take take, bool keeps_axis, KeyOf key = nullptr)
      : dim_(std::move(dim)),
        take_(std::move(take)),
        keeps_axis_(keeps_axis),
        key_(std::move(key)) {}

  /// Returns take(x, axis), with slices in place of the dims whose lengths run over the axis.
  Tensor operator()(const Tensor& x, int axis);
  /// Returns (*this)(x, axis of the dim). Requires that x has the dim.
  Tensor operator()(const Tensor& x) { return (*this)(x, find(x.dims(), dim_)); }

  /// Forgets slices: later calls of take() give other elements.
  void begin() { changes_ = {}; }
  /// Makes `to` the slice of `from`.
  void add(const Dim& from, const Dim& to) { changes_.add(from, to); }
  /// Returns the whole dims and their slices.
  const DimChanges& changes() const { return changes_; }

 private:
  Tensor lengths_of(const Dim& dim);
  void find_slice(const Dim& dim);
  Tensor taken(const Tensor& x, int axis);

  Dim dim_;
  Take take_;
  bool keeps_axis_;
  KeyOf key_;
  DimChanges changes_;
  std::vector<std::pair<Dim, Tensor>> lengths_;  ///< of dims that have slices
};

}  // namespace reel
