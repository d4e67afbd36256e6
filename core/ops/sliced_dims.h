// core/ops/sliced_dims.h — the ragged dims of slices: letters of words, of which a slice has one
// word.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/dim_changes.h"
#include "reel/core/tensor.h"

namespace reel {

// If the lengths of `letters` run over {batch, words}, a tensor without words has no dim letters:
// it has a slice of letters, a Dim of that name whose lengths are those of its words. The dim
// letters finds the axis of the slice (find_axis).

/// True if `dim` was made by slice_of_dim from `whole`, or from a slice of it.
bool is_slice_of(const Dim& dim, const Dim& whole);
/// The position of a dim in a list, or of the only slice of it there; -1 otherwise.
int find_axis(const Dims& dims, const Dim& dim);

/// A new Dim with these lengths, as a slice of `whole`.
///
/// key: not empty says which slice it is. As long as it lives, the same whole dim and key give the
/// same Dim, in eager mode, and in a trace inside of the graph that it was made for.
Dim slice_of_dim(const Dim& whole, const Tensor& lengths, const std::string& key = {});
/// Makes a Dim that stands for another one a slice of what that is a slice of, if it is one.
void copy_slice(const Dim& from, const Dim& to);
/// For DimNode: the node is about to be freed.
void forget_slice(const DimNode* node);
/// For keys: which elements an index means. Equal numbers of eager mode have one text.
std::string text_of_index(const Tensor& index);

/// Operands of which one has a dim that it does not mask, and another has a slice of that dim: the
/// first one gets the slice instead, that is, of each entry the elements that the slice has.
/// Returns false if there are none.
bool meet_slices(std::span<Tensor* const> operands);
namespace detail {
inline constinit std::atomic<std::size_t> slice_count{0};  ///< Dims that are slices
}
/// True if some Dim is a slice: only then meet_slices has something to do.
inline bool has_slices() { return detail::slice_count.load(std::memory_order_relaxed) != 0; }

/// True if x masks a dim whose lengths run over that of the axis: elements that are taken along the
/// axis have lengths of their own.
bool has_lengths_along(const TensorType& x, int axis);

/// Applies a function that moves or takes elements along an axis, together with the lengths that
/// run over the axis.
class AlongAxis {
 public:
  /// Returns x with other elements along an axis of x, or without it; of tensors of any dtype.
  using Take = std::function<Tensor(const Tensor& x, int axis)>;

  /// Returns the key of slice_of_dim. Called when lengths were taken.
  using KeyOf = std::function<std::string()>;

  /// keeps_axis: results may have the dim itself. key: null if slices are not to be found again.
  AlongAxis(Dim dim, Take take, bool keeps_axis, KeyOf key = nullptr)
      : dim_(std::move(dim)),
        take_(std::move(take)),
        keeps_axis_(keeps_axis),
        key_(std::move(key)) {}

  /// Returns take(x, axis). Dims of x that it masks and whose lengths run over the dim are slices
  /// of them there. x: has the dim, if it has a name.
  Tensor operator()(const Tensor& x, int axis);
  /// The same of a tensor that has the dim.
  Tensor operator()(const Tensor& x) { return (*this)(x, find(x.dims(), dim_)); }

  /// From now on take() gives other elements, which have other slices.
  void begin() { changes_ = {}; }
  /// Dims whose slices are known: in results `to` stands for `from`.
  void add(const Dim& from, const Dim& to) { changes_.add(from, to); }
  /// Slices that were made.
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
