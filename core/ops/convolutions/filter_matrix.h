// core/ops/convolutions/filter_matrix.h — FilterMatrix, a filter as the right matrix of a product
// with windows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reel/core/ops/convolutions/window_axes.h"
#include "reel/core/ops/products/scratch.h"

namespace reel {

/// The sizes of a convolution: axes of a kind together, spatial ones each.
struct ConvSizes {
  std::int64_t batch = 1, rows = 1, groups = 1, ins = 1, outs = 1;
  std::vector<std::int64_t> x, taps, y;
  ConvSizes(const ConvAttrs& attrs, const ConvTypes& types);
  /// Returns the number of elements of a filter of one entry of the batch.
  std::int64_t filter_elements() const;
};

/// Which tensor the windows are of, and which the result is.
struct FilterRole {
  const std::vector<std::int64_t>& source;  ///< spatial sizes
  const std::vector<std::int64_t>& target;
  bool is_turned;  ///< windows over y, which have the outs of the filter
  static FilterRole over_x(const ConvSizes& sizes) { return {sizes.x, sizes.y, false}; }
  static FilterRole over_y(const ConvSizes& sizes) { return {sizes.y, sizes.x, true}; }
  /// Return the elements of a position that belong to one group.
  std::int64_t run(const ConvSizes& sizes) const { return is_turned ? sizes.outs : sizes.ins; }
  std::int64_t columns(const ConvSizes& sizes) const { return is_turned ? sizes.ins : sizes.outs; }
  /// Return the elements of a position.
  std::int64_t source_pitch(const ConvSizes& sizes) const { return sizes.groups * run(sizes); }
  std::int64_t target_pitch(const ConvSizes& sizes) const { return sizes.groups * columns(sizes); }
};

/// Returns the place of each choice of taps in a filter, in the order of a window's elements.
std::vector<std::int64_t> places_of_taps(const ConvSizes& sizes, const WindowAxes& axes);

/// The matrix of one group, packed in panels if that is faster. Rows of a product have the same
/// bits among any others (SumOrder::chain or slices).
template <class T>
class FilterMatrix {
 public:
  /// f: the filter of one entry of the batch. rows: how many will be multiplied in all.
  FilterMatrix(const ConvSizes& sizes, const WindowAxes& axes, const FilterRole& role, const T* f,
               std::int64_t group, std::int64_t rows);
  std::int64_t columns() const { return columns_; }
  /// Computes `rows` rows of c. Rows of a have as many elements as the matrix has rows, and may
  /// overlap.
  void multiply(std::int64_t rows, const T* a, std::int64_t a_row, T* c, std::int64_t c_row) const;

 private:
  std::int64_t width_, columns_, in_panels_ = 0;  ///< columns that are packed
  std::optional<Scratch<T>> copy_;
  const T* matrix_;  ///< panels, then the other columns as a matrix of their own
};

}  // namespace reel
