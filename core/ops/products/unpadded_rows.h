// core/ops/products/unpadded_rows.h — UnpaddedRows, the rows of a sum over padded axes that are no
// padding.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reel/core/ops/products/gemm.h"
#include "reel/core/types/tensor_type.h"

namespace reel {

/// Places of a walk over some axes, as ascending ranges.
struct UnpaddedRows {
  struct Range {
    std::int64_t first, count;
  };
  std::vector<Range> ranges;
  std::int64_t count = 0;
};

/// Returns the places of a walk over `axes` of a type that are no padding; the last axis is
/// fastest. Returns nullopt unless some axis has lengths that differ and run over other axes of the
/// walk.
std::optional<UnpaddedRows> unpadded_rows(const TensorType& type, const std::vector<int>& axes);

/// Multiplies two matrices, as a sum over some of their inner rows. Requires contiguous inner rows:
/// a_row and b_step are 1, a_step is m, b_row is n. The bits of the result depend on the ranges.
void multiply_rows(DType dtype, const MatrixSizes& sizes, const UnpaddedRows& rows, const void* a,
                   const void* b, void* c);

/// Returns the rows of a product's left operand that are no padding, if it pays to compute these
/// alone: many others are padding, and few ranges have the rest.
///
/// a: type of the operand; its last axis is summed over.
std::optional<UnpaddedRows> rows_worth_computing(const TensorType& a, const MatrixSizes& sizes);

/// Multiplies some rows of a by b, with the bits that they have among all rows; other rows of c are
/// zero. Requires rows_worth_computing().
void multiply_some_rows(DType dtype, MatrixSizes sizes, const UnpaddedRows& rows, const void* a,
                        const void* b, void* c);

}  // namespace reel
