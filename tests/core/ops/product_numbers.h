// tests/core/ops/product_numbers.h — operands with exact products, their products and sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/ops.h"
#include "reel/core/ops/kernels/product_table.h"
#include "reel/tests/check.h"

namespace reel {

/// Returns numbers between -1 and 1 that are multiples of 1/16: sums of a few hundred products are
/// exact in f32.
inline Tensor numbers(const Dims& dims, int seed, DType dtype = f32) {
  std::int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.size();
  std::vector<double> values(count);
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = ((i + seed) * 2654435761u >> 7) % 33 / 16. - 1;
  if (is_integer(dtype))
    for (double& value : values) value *= 16;
  return tensor(values, dims, dtype);
}

/// Returns the elements of a·b, computed in f64.
inline std::vector<double> product(const Tensor& a, const Tensor& b) {
  const auto x = values_of(a), y = values_of(b);
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  std::vector<double> result(m * n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < k; ++l) result[i * n + j] += x[i * k + l] * y[l * n + j];
  return result;
}

/// Returns the sizes of a·b for dense matrices. turns_a, turns_b: the matrix lies in memory with
/// its axes swapped.
inline MatrixSizes dense_sizes(std::int64_t m, std::int64_t k, std::int64_t n, bool turns_a,
                               bool turns_b = false) {
  return {.m = m,
          .n = n,
          .k = k,
          .a_row = turns_a ? 1 : k,
          .a_step = turns_a ? m : 1,
          .b_row = turns_b ? 1 : n,
          .b_step = turns_b ? k : 1,
          .c_row = n};
}

}  // namespace reel
