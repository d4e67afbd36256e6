// core/ops/kernels/pointwise_table.h — PointwiseTable, the loops of element-wise ops, per
// instruction set.
//
// Included by pointwise_isa.cpp, which is compiled for several processors. Must not include headers
// with shared inline functions: the linker might keep one compiled for the newest processor.
#pragma once

#include <cstdint>

#include "reel/core/runtime/isa_list.h"

namespace reel {

/// Ops on one operand with a loop in the table; rows of PointwiseTable::unary.
enum class Unary : std::uint8_t {
  neg,
  abs,
  sign,
  floor,
  ceil,
  round,
  square,
  relu,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  sin,
  cos,
  arctan,
  tanh,
  sigmoid,
  softplus,
  erf,
  gelu,
  logical_not,
  count
};

/// Ops on two operands; rows of PointwiseTable::binary.
enum class Binary : std::uint8_t {
  add,
  sub,
  mul,
  div,
  remainder,
  floor_divide,
  mod,
  pow,
  maximum,
  minimum,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  tanh_grad,
  sigmoid_grad,
  gelu_grad,
  count
};

inline constexpr int kDTypes = 5;  ///< columns are DTypes in their order
inline constexpr int kMaxOperands = 3;

/// The iteration space of one call of a loop: rows of a result, and the strides of its operands.
struct PointwiseRows {
  std::int64_t columns;
  std::int64_t rows = 1;
  std::int64_t step[kMaxOperands] = {};  ///< elements of an operand from one row to the next
  bool repeats[kMaxOperands] =
      {};                     ///< one element per row for all columns; never set for all operands
  std::int64_t out_step = 0;  ///< elements of the result from one row to the next; 0: no gaps

  std::int64_t next_row() const { return out_step ? out_step : columns; }
};

/// out[i] = f(x[i]); x and out are contiguous, and may be the same.
using UnaryLoop = void (*)(const void* x, void* out, std::int64_t count);
/// As UnaryLoop for several operands; out may be an operand that neither repeats nor skips.
using RowsLoop = void (*)(const void* const* in, void* out, const PointwiseRows& rows);
/// out[i] = f(a[i], b[i]); all are contiguous, and out may be a or b.
using FlatLoop = void (*)(const void* a, const void* b, void* out, std::int64_t count);

/// Loops are null for dtypes that the op refuses. The result of an element depends neither on its
/// place nor on the number of elements: tails run through the same vector code.
struct PointwiseTable {
  const char* name;
  UnaryLoop unary[static_cast<int>(Unary::count)][kDTypes];
  RowsLoop binary[static_cast<int>(Binary::count)][kDTypes];  ///< in: a, b
  FlatLoop flat[static_cast<int>(Binary::count)]
               [kDTypes];            ///< the same ops, for operands of one type
  RowsLoop where[kDTypes];           ///< in: condition, a, b; by the dtype of a and b
  UnaryLoop cast[kDTypes][kDTypes];  ///< from, to
};

REEL_DECLARE_TABLES(PointwiseTable, table)

}  // namespace reel
