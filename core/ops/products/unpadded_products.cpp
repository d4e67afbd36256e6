#include "reel/core/ops/products/unpadded_products.h"

#include <algorithm>
#include <cstring>

#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/tensor.h"

namespace reel {

LengthsOfEntries::LengthsOfEntries(const TensorType& type, const std::vector<int>& group,
                                   const std::vector<int>& batch) {
  if (group.empty() || !is_masked(type, group[0])) return;
  const Dim& dim = type.dims()[static_cast<std::size_t>(group[0])];
  if (!dim.node()->lengths) return;
  find_batch(type, batch);
  std::int64_t step = 1;
  for (std::size_t over = dim.length_dims().size(); over-- > 0;) {
    const auto found = std::find_if(batch.begin(), batch.end(), [&](int axis) {
      return type.dims()[static_cast<std::size_t>(axis)] == dim.length_dims()[over];
    });
    if (found == batch.end()) return;
    batch_[static_cast<std::size_t>(found - batch.begin())].step = step;
    step *= dim.length_dims()[over].size();
  }
  lengths_ = Tensor(dim.node()->lengths).data<std::int32_t>();
  find_unit(type, group);
}

LengthsOfEntries::LengthsOfEntries(const Tensor& lengths, const TensorType& type,
                                   const std::vector<int>& group, const std::vector<int>& batch)
    : lengths_(lengths.data<std::int32_t>()) {
  find_batch(type, batch);
  batch_[0].step = 1;
  find_unit(type, group);
}

void LengthsOfEntries::find_batch(const TensorType& type, const std::vector<int>& batch) {
  for (const int axis : batch) batch_.push_back({type.sizes()[static_cast<std::size_t>(axis)], 0});
}

void LengthsOfEntries::find_unit(const TensorType& type, const std::vector<int>& group) {
  most_ = type.sizes()[static_cast<std::size_t>(group[0])];
  for (std::size_t i = 1; i < group.size(); ++i)
    unit_ *= type.sizes()[static_cast<std::size_t>(group[i])];
}

std::int64_t LengthsOfEntries::of(std::int64_t entry) const {
  std::int64_t place = 0;
  for (std::size_t i = batch_.size(); i-- > 1;) {
    place += entry % batch_[i].size * batch_[i].step;
    entry /= batch_[i].size;
  }
  place += entry * batch_[0].step;
  return std::clamp<std::int64_t>(lengths_[place], 0, most_) * unit_;
}

UnpaddedProducts::UnpaddedProducts(DType dtype, const MatrixSizes& sizes, const Groups& groups)
    : dtype_(dtype),
      sizes_(sizes),
      groups_(groups),
      has_padding_((groups.rows || groups.columns || groups.terms) && sizes.k) {
  if (!has_padding_) return;
  sizes_.order = sum_order(dtype_, sizes);
  has_padding_ = has_alike_rows(sizes_.order);
}

namespace {

/// Zeros among the terms of a sum make its result +0 if it was -0.
template <class T>
__attribute__((optimize("O3"))) void add_zero(T* c, std::int64_t rows, std::int64_t columns,
                                              std::int64_t step) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) c[i * step + j] += T(0);
}

}  // namespace

void UnpaddedProducts::multiply(std::int64_t entry, const void* a, const void* b, void* c) const {
  MatrixSizes s = sizes_;
  const auto& [rows, columns, terms] = groups_;
  if (rows) s.m = rows.of(entry);
  if (columns) s.n = columns.of(entry);
  if (terms) s.k = terms.of(entry);
  reel::multiply(dtype_, s, a, b, c);
  if (s.k > 0 && s.k < sizes_.k) {
    if (dtype_ == f32) add_zero(static_cast<float*>(c), s.m, s.n, s.c_row);
    if (dtype_ == f64) add_zero(static_cast<double*>(c), s.m, s.n, s.c_row);
  }
  if (s.add) return;
  const std::int64_t item = static_cast<std::int64_t>(size_of(dtype_)), row = s.c_row * item;
  char* const to = static_cast<char*>(c);
  const auto clear = [](char* from, std::int64_t bytes) {
    if (bytes) std::memset(from, 0, static_cast<std::size_t>(bytes));
  };
  for (std::int64_t i = 0; s.n < sizes_.n && i < s.m; ++i)
    clear(to + i * row + s.n * item, (sizes_.n - s.n) * item);
  clear(to + s.m * row, (sizes_.m - s.m) * row);
}

}  // namespace reel
