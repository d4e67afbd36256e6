// core/types/tensor.h — Tensor, the only value type of the library.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/block.h"

REEL_API_BEGIN
namespace reel {

class Arg;  // core/functions/operands.h
class Tensor;

/// Throws TraceError: only a run knows the rank of a value of this type.
[[noreturn]] void refuse_unranked(const TensorType& type);

/// An index of Tensor::at: an integer, or a tensor of them.
template <class T>
concept ElementIndex = std::integral<T> || std::same_as<T, Tensor>;

/// An n-dimensional array, either computed (eager) or a promise (traced).
///
/// Copies share storage; ops never write to shared storage. Elements are contiguous and row-major.
/// Const members are thread-safe. A default-constructed Tensor is empty: ops throw ArgumentError
/// for it, and so do most members.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorBlock> block) : block_(std::move(block)) {}

  /// Returns false for an empty Tensor.
  bool is_defined() const { return static_cast<bool>(block_); }
  /// Returns true if the value is a promise in a trace; access to its data then throws.
  bool is_traced() const { return block_ && block_->kind == BlockKind::promise; }

  /// Return the type, and parts of it. rank() and dims() throw TraceError if a loop changes the
  /// rank, so that only a run knows it (PartialShape::unknown_rank).
  const TensorType& type() const { return checked().type; }
  DType dtype() const { return type().dtype(); }
  int rank() const { return ranked_type().rank(); }
  const Dims& dims() const { return ranked_type().dims(); }
  /// Returns the dim of this name. Throws ShapeError unless exactly one dim has the name.
  Dim dim(std::string_view name) const;
  /// Returns the dim of an axis; negative axes count from the end. Throws IndexError if out of
  /// range.
  Dim dim(int axis) const;
  /// Returns the sizes. Throws TraceError if one is known only when the graph runs, as numel()
  /// does.
  std::vector<std::int64_t> shape() const;
  /// Returns the number of elements, padding included.
  std::int64_t numel() const;

  /// Returns the element at an index of the first axis, without that axis: x[2], x[-1]. A tensor
  /// with dims as index gives several elements. Equivalent to gather(x, index, 0). The result is a
  /// constant copy, so that x[2] = y does not compile: set_at(x, 2, y) returns a changed tensor.
  const Tensor operator[](const Arg& index) const;
  /// Returns the element at one index of each of the first axes, without these axes: x.at(2, -1).
  /// An index is an integer or an integer scalar; for named dims, or if it is the only one, any
  /// index of gather.
  template <ElementIndex... Index>
  const Tensor at(const Index&... index) const;
  /// Returns the element at an index along a dim, without that dim: x.at(time, -1). Equivalent to
  /// gather(x, index, dim).
  const Tensor at(const Dim& dim, const Arg& index) const;

  /// Returns the value of a tensor with one element as a number of type T, rounded if T has fewer
  /// digits than the dtype. Throws TraceError inside a trace, ShapeError for another number of
  /// elements. Throws ArgumentError if T is integral and does not hold the value: a fraction, NaN,
  /// or a number out of range. True is 1, and bool holds 0 and 1.
  template <class T>
  T item() const {
    static_assert(std::is_arithmetic_v<T>, "item() returns a number");
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(item_number());
    else if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(std::int64_t))
      return static_cast<T>(item_integer(0, std::numeric_limits<std::int64_t>::max()));
    else
      return static_cast<T>(item_integer(Limits::min(), Limits::max()));
  }
  /// Returns all elements in row-major order, padding included. Throws TraceError inside a trace,
  /// DTypeError if T is not the dtype.
  template <class T>
  std::vector<T> to_vector() const;

  // Below: for the library itself.
  TensorBlock* block() const { return block_.get(); }
  const Ref<TensorBlock>& ref() const { return block_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(block_->data);
  }
  /// Returns the data. Throws DTypeError for another dtype, TraceError for a promise, ArgumentError
  /// for a TensorArray. `what` names the caller in messages.
  const void* checked_data(DType expected, const char* what) const;

 private:
  const TensorBlock& checked() const {
    if (!block_) refuse_empty();
    return *block_;
  }
  const TensorType& ranked_type() const {
    const TensorBlock& block = checked();
    if (block.type.is_unranked() && block.kind == BlockKind::promise) refuse_unranked(block.type);
    return block.type;
  }
  [[noreturn]] static void refuse_empty();
  const void* checked_item() const;
  double item_number() const;
  std::int64_t item_integer(std::int64_t lowest, std::int64_t largest) const;
  Tensor at_all(std::span<const Arg> indices) const;

  Ref<TensorBlock> block_;
};

/// A list of tensors.
using Tensors = std::vector<Tensor>;

extern template std::vector<float> Tensor::to_vector<float>() const;
extern template std::vector<double> Tensor::to_vector<double>() const;
extern template std::vector<std::int32_t> Tensor::to_vector<std::int32_t>() const;
extern template std::vector<std::int64_t> Tensor::to_vector<std::int64_t>() const;
extern template std::vector<bool> Tensor::to_vector<bool>() const;

/// Prints the type, and the values as NumPy does, with `-` for padding; a promise as its type only.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Throws ArgumentError in the name of the function if x is empty.
void check_defined(std::string_view function, const Tensor& x);

/// Returns true if only a run knows the rank of x (core/functions/unranked.h).
inline bool is_unranked(const Tensor& x) { return x.is_defined() && x.type().is_unranked(); }
/// Throws TraceError if only a run knows the rank of x.
inline void check_ranked(const Tensor& x) {
  if (is_unranked(x)) refuse_unranked(x.type());
}

/// Returns the type, to print in messages.
inline const TensorType& type_of(const Tensor& tensor) { return tensor.type(); }

}  // namespace reel
REEL_API_END
