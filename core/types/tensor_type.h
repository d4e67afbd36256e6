// core/types/tensor_type.h — TensorType, an interned pair of dtype and dims.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"

REEL_API_BEGIN
namespace reel {

/// The object behind a TensorType. There is one per (dtype, dims, list, unranked), so types compare
/// as pointers.
struct TypeNode : RefCounted {
  DType dtype;
  bool is_list = false;       ///< the type of a TensorArray with such elements
  bool is_unranked = false;   ///< of a value of a rank that only a run knows; no dims
  bool is_permanent = false;  ///< plain sizes only: never freed, and references are not counted
  bool is_named = false;
  bool is_known = true;      ///< all sizes are known; false inside traces
  bool is_ragged = false;    ///< some dim is ragged
  bool has_symbols = false;  ///< some dim belongs to a trace
  Dims dims;
  std::vector<std::int64_t> sizes;  ///< -1 if known only at run time
  std::int64_t numel = 1;
  std::size_t hash = 0;

  static void destroy(const TypeNode*);
};

/// The dtype and dims of a tensor, or of a TensorArray's elements; prints as f32[batch=3,hidden=8].
class TensorType {
 public:
  /// Throws ShapeError if dims mix named and plain ones, list a dim twice, or contain an empty or
  /// undefined dim. Throws ShapeError also if the bytes of all elements do not fit into 64 bits.
  TensorType(DType dtype, const Dims& dims);
  explicit TensorType(DType dtype) : TensorType(dtype, Dims{}) {}
  TensorType(const TensorType& other) : node_(other.node_) { retain(); }
  TensorType(TensorType&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  TensorType& operator=(TensorType other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~TensorType() { release(); }

  /// Return the dtype, the dims, their number, and their sizes.
  DType dtype() const { return node_->dtype; }
  const Dims& dims() const { return node_->dims; }
  int rank() const { return static_cast<int>(node_->dims.size()); }
  const std::vector<std::int64_t>& sizes() const { return node_->sizes; }
  /// Return the number of elements, padding included, and their bytes.
  std::int64_t numel() const { return node_->numel; }
  std::int64_t bytes() const {
    return node_->numel * static_cast<std::int64_t>(size_of(node_->dtype));
  }
  /// Returns true for the type of a list: a TensorArray, or a value of unknown rank.
  bool is_list() const { return node_->is_list; }
  /// Returns true for the type of an unranked value: only a run knows its rank. It is a list, too:
  /// its only element is the value (core/functions/unranked.h).
  bool is_unranked() const { return node_->is_unranked; }
  /// Returns true for the type of a TensorArray; false for a value of unknown rank.
  bool is_array() const { return is_list() && !is_unranked(); }
  /// Returns true if the dims are named.
  bool is_named() const { return node_->is_named; }
  /// Returns true if all sizes are known.
  bool is_known() const { return node_->is_known; }
  /// Returns true if a dim is ragged.
  bool is_ragged() const { return node_->is_ragged; }
  bool operator==(const TensorType& other) const { return node_ == other.node_; }

  /// Returns the type with another dtype, or with other dims.
  TensorType with(DType dtype) const;
  TensorType with(const Dims& dims) const;
  /// Return the type of a TensorArray with such elements, and the element type of a list.
  TensorType as_list() const;
  TensorType element() const;
  /// Returns the type of an unranked value: only a run knows its rank.
  static TensorType unranked(DType dtype);

  const TypeNode* node() const { return node_; }

 private:
  struct Interned {};
  TensorType(Interned, const TypeNode* node)
      : node_(node) {}  // a single argument would take the 0 of zeros({0})
  static const TypeNode* intern(DType dtype, const Dims& dims, bool is_list, bool is_unranked);
  void retain() const {
    if (!node_->is_permanent) node_->retain();
  }
  void release() {
    if (node_ && !node_->is_permanent && node_->release_to_zero()) TypeNode::destroy(node_);
  }

  const TypeNode* node_;
};

/// Returns the type of tensors without elements that carry a dim: boolean[none=0,dim].
TensorType token_type(const Dim& dim);

std::ostream& operator<<(std::ostream& out, const TensorType& type);

}  // namespace reel
REEL_API_END
