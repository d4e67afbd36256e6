#include "reel/core/ops/convolutions/filter_matrix.h"

#include <algorithm>

#include "reel/core/ops/convolutions/conv_axes.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/dtype.h"

namespace reel {
namespace {

/// A filter with fewer elements stays in the first-level cache in any order.
constexpr std::int64_t kSmallFilter = 12 * 1024;
/// Overlapping rows of a product with a filter that is not packed: fewer elements than oneDNN is
/// called for, which does not accept them.
constexpr std::int64_t kUnpackedRows = 480;
/// Fewer rows take less time than packing.
constexpr std::int64_t kMinPackedRows = 12;

std::vector<std::int64_t> sizes_at(const TensorType& type, int first, int count) {
  const auto begin = type.sizes().begin() + first;
  return {begin, begin + count};
}

}  // namespace

ConvSizes::ConvSizes(const ConvAttrs& attrs, const ConvTypes& types) {
  const int spatial = attrs.spatial(), of_x = first_spatial_of_x(attrs, types.x);
  batch = product_of(types.x, 0, attrs.batch);
  rows = product_of(types.x, attrs.batch, of_x - attrs.batch);
  groups = product_of(types.x, of_x + spatial, attrs.groups);
  ins = product_of(types.x, types.x.rank() - attrs.ins, attrs.ins);
  outs = product_of(types.y, types.y.rank() - attrs.outs, attrs.outs);
  x = sizes_at(types.x, of_x, spatial);
  taps = sizes_at(types.f, attrs.batch, spatial);
  y = sizes_at(types.y, first_spatial_of_y(attrs, types.y), spatial);
}

std::int64_t ConvSizes::filter_elements() const { return groups * ins * outs * positions_in(taps); }

std::vector<std::int64_t> places_of_taps(const ConvSizes& sizes, const WindowAxes& axes) {
  std::vector<std::int64_t> places{0};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::vector<std::int64_t> longer;
    for (const std::int64_t place : places)
      for (const std::int64_t tap : axes[i].taps) longer.push_back(place * sizes.taps[i] + tap);
    places = std::move(longer);
  }
  return places;
}

template <class T>
FilterMatrix<T>::FilterMatrix(const ConvSizes& sizes, const WindowAxes& axes,
                              const FilterRole& role, const T* f, std::int64_t group,
                              std::int64_t rows)
    : columns_(role.columns(sizes)), matrix_(f) {
  const std::vector<std::int64_t> taps = places_of_taps(sizes, axes);
  const std::int64_t run = role.run(sizes), count = std::ssize(taps);
  width_ = count * run;
  constexpr DType dtype = dtype_of<T>();
  const std::int64_t panel = panel_columns(dtype);
  if (is_float(dtype) && rows >= kMinPackedRows && width_ * columns_ > kSmallFilter)
    in_panels_ = columns_ - columns_ % panel;
  // The filter itself is the matrix, if all taps are read in their order.
  if (!role.is_turned && sizes.groups == 1 && !in_panels_) return;
  copy_.emplace(width_ * columns_);
  matrix_ = copy_->get();
  const std::int64_t row = role.is_turned ? 1 : sizes.outs,
                     column = role.is_turned ? sizes.outs : 1;
  const auto copy = [&](std::int64_t first, std::int64_t width) {
    for (std::int64_t tap = 0; tap < count; ++tap)
      copy_strided(sizeof(T), {{run, width, row}, {width, 1, column}},
                   copy_->get() + first * width_ + tap * run * width,
                   f +
                       (taps[static_cast<std::size_t>(tap)] * sizes.groups + group) * sizes.ins *
                           sizes.outs +
                       first * column);
  };
  for (std::int64_t first = 0; first < in_panels_; first += panel) copy(first, panel);
  if (columns_ > in_panels_) copy(in_panels_, columns_ - in_panels_);
}

template <class T>
void FilterMatrix<T>::multiply(std::int64_t rows, const T* a, std::int64_t a_row, T* c,
                               std::int64_t c_row) const {
  constexpr DType dtype = dtype_of<T>();
  const std::int64_t panel = panel_columns(dtype);
  MatrixSizes sizes{.m = rows,
                    .n = in_panels_,
                    .k = width_,
                    .a_row = a_row,
                    .a_step = 1,
                    .b_row = panel,
                    .b_step = 1,
                    .c_row = c_row,
                    .order = dtype == f32 && width_ > kSlice ? SumOrder::slices : SumOrder::chain,
                    .b_panel = width_ * panel};
  if (in_panels_) reel::multiply(dtype, sizes, a, matrix_, c);
  if (in_panels_ == columns_) return;
  sizes.n = sizes.b_row = columns_ - in_panels_;
  sizes.b_panel = 0;
  const std::int64_t most_rows = a_row < width_ ? kUnpackedRows : rows;
  for (std::int64_t row = 0; row < rows; row += sizes.m) {
    sizes.m = std::min(most_rows, rows - row);
    reel::multiply(dtype, sizes, a + row * a_row, matrix_ + in_panels_ * width_,
                   c + row * c_row + in_panels_);
  }
}

template class FilterMatrix<float>;
template class FilterMatrix<double>;
template class FilterMatrix<std::int32_t>;
template class FilterMatrix<std::int64_t>;

}  // namespace reel
