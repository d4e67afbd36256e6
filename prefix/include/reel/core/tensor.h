// core/tensor.h — Tensor, the one value type of the library.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "reel/core/block.h"

namespace reel {

/// An n-dimensional array, either computed already (eager) or promised (traced).
///
/// Copying a Tensor shares its storage; no op writes to storage that is shared. Contiguous,
/// row-major. Const members may be called from several threads at once. A default-made Tensor is
/// empty: ops refuse it.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorBlock> block) : block_(std::move(block)) {}

  bool is_defined() const { return static_cast<bool>(block_); }
  /// True while the value is a promise inside a trace; data access then throws.
  bool is_traced() const { return block_ && block_->kind == BlockKind::promise; }

  const TensorType& type() const { return checked().type; }
  DType dtype() const { return type().dtype(); }
  int rank() const { return type().rank(); }
  const Dims& dims() const { return type().dims(); }
  /// The one dim of that name. Throws ShapeError when there is none, or more than one.
  Dim dim(std::string_view name) const;
  /// The dim of an axis; negative axes count from the end. Throws IndexError.
  Dim dim(int axis) const;
  /// The sizes. Throws TraceError where only a run of the graph knows one.
  std::vector<std::int64_t> shape() const;
  std::int64_t numel() const;

  /// The value of a tensor with one element. Throws TraceError inside a trace, ShapeError,
  /// DTypeError.
  template <class T>
  T item() const;
  /// All elements in row-major order, padding included. Throws TraceError inside a trace,
  /// DTypeError.
  template <class T>
  std::vector<T> to_vector() const;

  // Below: for the library itself.
  TensorBlock* block() const { return block_.get(); }
  const Ref<TensorBlock>& ref() const { return block_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(block_->data);
  }
  /// The data as elements of T. Throws DTypeError, or TraceError inside a trace; `what` names the
  /// caller.
  const void* checked_data(DType expected, const char* what) const;

 private:
  const TensorBlock& checked() const {
    if (!block_) refuse_empty();
    return *block_;
  }
  [[noreturn]] static void refuse_empty();

  Ref<TensorBlock> block_;
};

using Tensors = std::vector<Tensor>;

extern template float Tensor::item<float>() const;
extern template double Tensor::item<double>() const;
extern template std::int32_t Tensor::item<std::int32_t>() const;
extern template std::int64_t Tensor::item<std::int64_t>() const;
extern template bool Tensor::item<bool>() const;
extern template std::vector<float> Tensor::to_vector<float>() const;
extern template std::vector<double> Tensor::to_vector<double>() const;
extern template std::vector<std::int32_t> Tensor::to_vector<std::int32_t>() const;
extern template std::vector<std::int64_t> Tensor::to_vector<std::int64_t>() const;
extern template std::vector<bool> Tensor::to_vector<bool>() const;

/// The type, and the values as NumPy prints them, padding as `-`; a promise prints its type only.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Prints as its type: for messages.
inline const TensorType& type_of(const Tensor& tensor) { return tensor.type(); }

}  // namespace reel
