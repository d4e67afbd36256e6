// core/ops/products/operand.h — Operand, an operand of products of matrices: the strides of its
// groups of axes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reel/core/ops/kernels/product_table.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/tensor_type.h"

namespace reel {

/// Returns the axes that are in neither list, in order.
std::vector<int> others(int rank, const std::vector<int>& contract, const std::vector<int>& batch);
/// Sorts the pairs of contracted axes by their order in one operand.
void sort_pairs(std::vector<int>& by, std::vector<int>& along);

/// Some axes walked as one: `size` elements, `step` apart. is_whole is false if they have gaps or
/// another order.
struct AxisRun {
  std::int64_t size = 1, step = 1;
  bool is_whole = true;
};

/// One operand of a product of matrices for each entry of a batch.
struct Operand {
  const TensorType& type;
  const char* data;
  Steps steps;
  std::vector<int> batch, free, contract;
  std::unique_ptr<char[]> copy;

  /// elements: null if only sizes are needed.
  Operand(const TensorType& tensor_type, const char* elements, std::vector<int> batch_axes,
          std::vector<int> contract_axes);

  AxisRun rows() const;
  AxisRun inner() const;
  /// Copies the elements with the groups in the given order, so that each becomes a run.
  void rearrange(const std::vector<int>& middle, const std::vector<int>& last);
};

/// Rearranges operands that are not laid out as matrices. Returns the sizes of the product of one
/// batch entry.
MatrixSizes arrange(Operand& a, Operand& b, SumOrder order);

}  // namespace reel
