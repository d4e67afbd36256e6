// core/ops/products/unpadded_products.h — UnpaddedProducts, the products of a batch without
// padding.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/tensor_type.h"

namespace reel {

/// Number of elements of a group of axes that are no padding, by entry of a batch. The lengths of
/// the first axis count if they run over axes of the batch; all other axes count as full.
class LengthsOfEntries {
 public:
  /// group: axes that form a run of memory, outermost first; batch: the axes of the batch, in order
  /// of its entries.
  LengthsOfEntries(const TensorType& type, const std::vector<int>& group,
                   const std::vector<int>& batch);
  /// lengths: i32, of the first axis of the group, by element of the first axis of the batch. Must
  /// outlive this object.
  LengthsOfEntries(const Tensor& lengths, const TensorType& type, const std::vector<int>& group,
                   const std::vector<int>& batch);
  /// True if entries have lengths of their own.
  explicit operator bool() const { return lengths_; }
  /// Returns the elements of an entry. Requires lengths.
  std::int64_t of(std::int64_t entry) const;

 private:
  struct Axis {
    std::int64_t size, step;
  };
  void find_batch(const TensorType& type, const std::vector<int>& batch);
  void find_unit(const TensorType& type, const std::vector<int>& group);

  const std::int32_t* lengths_ = nullptr;
  std::int64_t most_ = 0, unit_ = 1;
  boost::container::small_vector<Axis, 4> batch_;
};

/// Products of matrices, one for each entry of a batch, without padding: padded terms, rows and
/// columns are left out. Other elements have the bits of products that have zeros in the padding of
/// both operands.
class UnpaddedProducts {
 public:
  /// Lengths of the groups of axes.
  struct Groups {
    LengthsOfEntries rows, columns, terms;
  };
  /// sizes: of the product of an entry, with padding.
  UnpaddedProducts(DType dtype, const MatrixSizes& sizes, const Groups& groups);
  /// True if some entries may have padding that can be left out. The order of sums of other
  /// products depends on their sizes.
  explicit operator bool() const { return has_padding_; }
  /// Computes the product of an entry. Sets rows and columns of padding to zero unless sizes.add.
  void multiply(std::int64_t entry, const void* a, const void* b, void* c) const;

 private:
  DType dtype_;
  MatrixSizes sizes_;
  Groups groups_;
  bool has_padding_;
};

}  // namespace reel
