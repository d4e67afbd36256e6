// The kernels of convolutions: windows are the rows of a matrix, which is multiplied by the filter,
// or by the rows of the result.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "reel/core/ops/convolutions/convolutions.h"
#include "reel/core/ops/convolutions/depthwise.h"
#include "reel/core/ops/convolutions/filter_matrix.h"
#include "reel/core/ops/convolutions/window_rows.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/products/scratch.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

/// Elements of windows that are copied before they are multiplied: they stay in the second-level
/// cache.
constexpr std::int64_t kCopiedElements = 128 * 1024, kMaxCopiedRows = 480, kMinCopiedRows = 12;
/// Rows of the first axis that a thread takes at least.
constexpr std::int64_t kUnitRows = 480;
/// Multiplications that take as long as a unit of work of parallel_ranges().
constexpr std::int64_t kProducts = 16;
/// The largest number of products that are summed in f32, as in products.
constexpr std::int64_t kLongestSum = 16384;

std::int64_t copied_rows(std::int64_t width) {
  return std::clamp(kCopiedElements / std::max<std::int64_t>(width, 1), kMinCopiedRows,
                    kMaxCopiedRows);
}

/// Runs a product of windows and a filter, entry by entry.
template <class T>
class WindowProduct {
 public:
  WindowProduct(const WindowRows<T>& windows, const FilterMatrix<T>& filter,
                const WindowPlaces& places)
      : windows_(windows), filter_(filter), places_(places) {}

  /// Computes rows first .. end - 1 of the first axis, all of the others. positions: of the result
  /// that are no padding, by axis; others become zero.
  void run(const T* source, T* target, std::int64_t first, std::int64_t end,
           const std::int64_t* positions) {
    const WindowAxes& axes = windows_.axes();
    for_each_line(axes, first, end, [&](const std::int64_t* rows) {
      const WindowAxis& last = axes.back();
      const bool is_line = axes.size() == 1;
      const std::int64_t begin = is_line ? first : 0, stop = is_line ? end : last.rows;
      std::int64_t unpadded = std::clamp(last.rows_below(positions[axes.size() - 1]), begin, stop);
      for (std::size_t i = 0; i + 1 < axes.size(); ++i)
        if (axes[i].first + rows[i] * axes[i].stride >= positions[i]) unpadded = begin;
      T* const line = target + places_.line(rows);
      run_line(source, rows, line, begin, unpadded);
      for (std::int64_t row = unpadded; row < stop; ++row)
        std::fill_n(line + row * places_.step(), filter_.columns(), T(0));
    });
  }
  /// Computes the rows that were copied since.
  void finish() { flush(); }

 private:
  void run_line(const T* source, const std::int64_t* rows, T* line, std::int64_t begin,
                std::int64_t end) {
    constexpr std::int64_t kLeastInPlace = 12;
    std::int64_t inside = end, inside_end = end;
    if (windows_.are_runs()) {
      inside = std::clamp(windows_.axes()[0].first_inside(), begin, end);
      inside_end = std::clamp(windows_.axes()[0].end_inside(), inside, end);
      if (inside_end - inside < kLeastInPlace) inside = inside_end = end;
    }
    copy_rows(source, rows, line, begin, inside);
    if (inside_end > inside)
      filter_.multiply(inside_end - inside, windows_.run_of(source, inside), windows_.run_step(),
                       line + inside * places_.step(), places_.step());
    copy_rows(source, rows, line, inside_end, end);
  }
  void copy_rows(const T* source, const std::int64_t* rows, T* line, std::int64_t begin,
                 std::int64_t end) {
    if (begin == end) return;
    if (!copied_) copied_.emplace(copied_rows(windows_.width()) * windows_.width());
    std::array<std::int64_t, 3> at{};
    std::copy_n(rows, windows_.axes().size(), at.begin());
    std::int64_t& last = at[windows_.axes().size() - 1];
    for (last = begin; last < end; ++last) {
      if (std::ssize(places_of_copied_) == copied_rows(windows_.width())) flush();
      windows_.copy(source, at.data(),
                    copied_->get() + std::ssize(places_of_copied_) * windows_.width());
      places_of_copied_.push_back(line + last * places_.step());
    }
  }
  /// Multiplies the copied rows; by way of a copy of the results unless their places are equally
  /// far apart.
  void flush() {
    const std::int64_t count = std::ssize(places_of_copied_);
    if (!count) return;
    const std::int64_t columns = filter_.columns(),
                       step = count > 1 ? places_of_copied_[1] - places_of_copied_[0] : columns;
    bool is_even = step >= columns;
    for (std::size_t i = 1; is_even && i < places_of_copied_.size(); ++i)
      is_even = places_of_copied_[i] - places_of_copied_[i - 1] == step;
    if (is_even) {
      filter_.multiply(count, copied_->get(), windows_.width(), places_of_copied_[0], step);
    } else {
      if (!made_) made_.emplace(copied_rows(windows_.width()) * columns);
      filter_.multiply(count, copied_->get(), windows_.width(), made_->get(), columns);
      for (std::int64_t i = 0; i < count; ++i)
        std::copy_n(made_->get() + i * columns, columns,
                    places_of_copied_[static_cast<std::size_t>(i)]);
    }
    places_of_copied_.clear();
  }

  const WindowRows<T>& windows_;
  const FilterMatrix<T>& filter_;
  const WindowPlaces& places_;
  std::optional<Scratch<T>> copied_, made_;
  std::vector<T*> places_of_copied_;
};

/// A range of rows of one entry.
struct Unit {
  std::int64_t entry, first, end;
};
std::vector<Unit> units_of(std::int64_t entries, const WindowAxes& axes) {
  std::int64_t inner = 1;
  for (std::size_t i = 1; i < axes.size(); ++i) inner *= std::max<std::int64_t>(axes[i].rows, 1);
  const std::int64_t rows = std::max<std::int64_t>(kUnitRows / inner, 1);
  std::vector<Unit> units;
  for (std::int64_t entry = 0; entry < entries; ++entry)
    for (std::int64_t first = 0; first < axes[0].rows; first += rows)
      units.push_back({entry, first, std::min(first + rows, axes[0].rows)});
  return units;
}

std::int64_t rows_of(const WindowAxes& axes) {
  std::int64_t result = 1;
  for (const WindowAxis& axis : axes) result *= axis.rows;
  return result;
}

/// Returns true if each row is the product of one position of the source, in their order: a filter
/// of one tap without a stride.
bool are_positions(const WindowAxes& axes) {
  return std::ranges::all_of(axes, [](const WindowAxis& axis) {
    return axis.tap_count() == 1 && axis.offsets[0] == 0 && axis.step == 1 && axis.first == 0 &&
           axis.stride == 1 && axis.rows == axis.source;
  });
}

/// Multiplies positions by the filter of one tap: all entries of a batch are one matrix.
template <class T>
void multiply_positions(const ConvSizes& sizes, const WindowAxes& axes, const FilterRole& role,
                        const T* source, const T* f, T* target) {
  const std::int64_t rows = sizes.rows * rows_of(axes), from_row = role.source_pitch(sizes),
                     to_row = role.target_pitch(sizes);
  // A filter that is the matrix itself is not packed: the product chooses as for other matrices.
  const std::int64_t packed_rows = !role.is_turned && sizes.groups == 1 ? 0 : rows;
  for (std::int64_t batch = 0; batch < sizes.batch; ++batch)
    for (std::int64_t group = 0; group < sizes.groups; ++group) {
      const FilterMatrix<T> filter(sizes, axes, role, f + batch * sizes.filter_elements(), group,
                                   packed_rows);
      const T* const from = source + batch * rows * from_row + group * role.run(sizes);
      T* const to = target + batch * rows * to_row + group * role.columns(sizes);
      const std::int64_t units = (rows + kUnitRows - 1) / kUnitRows;
      parallel_ranges(units, rows * role.run(sizes) * role.columns(sizes) / kProducts,
                      [&](std::int64_t first, std::int64_t count) {
                        const std::int64_t begin = first * kUnitRows,
                                           end = std::min((first + count) * kUnitRows, rows);
                        filter.multiply(end - begin, from + begin * from_row, from_row,
                                        to + begin * to_row, to_row);
                      });
    }
}

/// Computes windows of `source` times a filter, for the rows that `axes` name.
template <class T>
void multiply_windows(const ConvSizes& sizes, const WindowAxes& axes, const FilterRole& role,
                      const T* source, const T* f, T* target, const UnpaddedPositions& positions) {
  if (are_positions(axes) && !positions.has_padding())
    return multiply_positions(sizes, axes, role, source, f, target);
  const std::int64_t from_entry = positions_in(role.source) * role.source_pitch(sizes),
                     to_entry = positions_in(role.target) * role.target_pitch(sizes);
  const WindowRows<T> windows(axes, role.source_pitch(sizes), role.run(sizes));
  const WindowPlaces places(axes, role.target, role.target_pitch(sizes));
  const std::vector<Unit> units = units_of(sizes.rows, axes);
  const std::int64_t work =
      sizes.rows * rows_of(axes) * windows.width() * role.columns(sizes) / kProducts;
  for (std::int64_t batch = 0; batch < sizes.batch; ++batch)
    for (std::int64_t group = 0; group < sizes.groups; ++group) {
      const FilterMatrix<T> filter(sizes, axes, role, f + batch * sizes.filter_elements(), group,
                                   sizes.rows * rows_of(axes));
      parallel_ranges(std::ssize(units), work, [&](std::int64_t first, std::int64_t count) {
        WindowProduct<T> product(windows, filter, places);
        for (std::int64_t i = first; i < first + count; ++i) {
          const Unit& unit = units[static_cast<std::size_t>(i)];
          const std::int64_t entry = batch * sizes.rows + unit.entry;
          product.run(source + entry * from_entry + group * role.run(sizes),
                      target + entry * to_entry + group * role.columns(sizes), unit.first, unit.end,
                      positions.of(entry));
        }
        product.finish();
      });
    }
}

template <class T>
void run_windows(const ConvSizes& sizes, const std::vector<WindowAxes>& all, const FilterRole& role,
                 const T* source, const T* f, T* target, const UnpaddedPositions& positions) {
  for (const WindowAxes& axes : all) {
    if (is_depthwise<T>(sizes))
      multiply_depthwise(sizes, axes, role, source, f, target, positions);
    else
      multiply_windows(sizes, axes, role, source, f, target, positions);
  }
}

// ---- The gradient of the filter -----------------------------------------------------------------

/// Adds windows times rows of y, for one group. Long sums of f32 are added up in doubles.
template <class T>
class FilterSum {
 public:
  FilterSum(const ConvSizes& sizes, const WindowRows<T>& windows)
      : windows_(windows),
        columns_(sizes.outs),
        pitch_(sizes.groups * sizes.outs),
        sum_(windows.width() * sizes.outs) {
    std::fill_n(sum_.get(), windows.width() * columns_, T(0));
  }

  /// Adds the windows of an entry. positions: as in WindowProduct.
  void add(const T* source, const T* y, std::int64_t first, std::int64_t end,
           const std::int64_t* positions, const WindowPlaces& places) {
    const WindowAxes& axes = windows_.axes();
    for_each_line(axes, first, end, [&](const std::int64_t* rows) {
      const bool is_line = axes.size() == 1;
      const std::int64_t begin = is_line ? first : 0,
                         stop =
                             std::min(is_line ? end : axes.back().rows, positions[axes.size() - 1]);
      for (std::size_t i = 0; i + 1 < axes.size(); ++i)
        if (rows[i] >= positions[i]) return;
      if (stop > begin) add_line(source, rows, y + places.line(rows), begin, stop);
    });
  }
  /// Returns the sum.
  T* finish() {
    flush();
    if (total_) {
      drain();
      for (std::int64_t i = 0; i < windows_.width() * columns_; ++i)
        sum_.get()[i] = static_cast<T>(total_->get()[i]);
    }
    return sum_.get();
  }

 private:
  /// Taps of at least this number of elements are multiplied in place, each by itself.
  static constexpr std::int64_t kWideTap = 48, kLeastInPlace = 48;

  void add_line(const T* source, const std::int64_t* rows, const T* line, std::int64_t begin,
                std::int64_t end) {
    std::int64_t inside = end, inside_end = end;
    const std::int64_t run = windows_.width() / std::max<std::int64_t>(taps(), 1);
    if (windows_.are_runs() && run >= kWideTap) {
      inside = std::clamp(windows_.axes()[0].first_inside(), begin, end);
      inside_end = std::clamp(windows_.axes()[0].end_inside(), inside, end);
      if (inside_end - inside < kLeastInPlace) inside = inside_end = end;
    }
    copy_rows(source, rows, line, begin, inside);
    for (std::int64_t tap = 0; inside_end > inside && tap < taps(); ++tap)
      multiply_rows(inside_end - inside, windows_.run_of(source, inside) + tap * run, run,
                    windows_.run_step(), line + inside * pitch_, pitch_,
                    sum_.get() + tap * run * columns_);
    if (inside_end > inside) count(inside_end - inside);
    copy_rows(source, rows, line, inside_end, end);
  }
  std::int64_t taps() const {
    return windows_.axes().size() == 1 ? windows_.axes()[0].tap_count() : 1;
  }
  void copy_rows(const T* source, const std::int64_t* rows, const T* line, std::int64_t begin,
                 std::int64_t end) {
    const std::int64_t room = copied_rows(windows_.width());
    if (begin == end) return;
    if (!copied_) {
      copied_.emplace(room * windows_.width());
      copied_y_.emplace(room * columns_);
    }
    std::array<std::int64_t, 3> at{};
    std::copy_n(rows, windows_.axes().size(), at.begin());
    std::int64_t& last = at[windows_.axes().size() - 1];
    for (last = begin; last < end; ++last) {
      if (copied_count_ == room) flush();
      windows_.copy(source, at.data(), copied_->get() + copied_count_ * windows_.width());
      std::copy_n(line + last * pitch_, columns_, copied_y_->get() + copied_count_ * columns_);
      ++copied_count_;
    }
  }
  void flush() {
    if (!copied_count_) return;
    multiply_rows(copied_count_, copied_->get(), windows_.width(), windows_.width(),
                  copied_y_->get(), columns_, sum_.get());
    count(copied_count_);
    copied_count_ = 0;
  }
  /// Adds aᵀ·b for `rows` rows of a, `width` elements each, and of b.
  void multiply_rows(std::int64_t rows, const T* a, std::int64_t width, std::int64_t a_step,
                     const T* b, std::int64_t b_row, T* to) const {
    multiply(dtype_of<T>(),
             {.m = width,
              .n = columns_,
              .k = rows,
              .a_row = 1,
              .a_step = a_step,
              .b_row = b_row,
              .b_step = 1,
              .c_row = columns_,
              .add = true},
             a, b, to);
  }
  /// Counts terms of the sum; moves it into doubles before it is too long.
  void count(std::int64_t rows) {
    if constexpr (std::is_same_v<T, float>) {
      terms_ += rows;
      if (terms_ >= kLongestSum) drain();
    }
  }
  void drain() {
    const std::int64_t elements = windows_.width() * columns_;
    if (!total_) {
      total_.emplace(elements);
      std::fill_n(total_->get(), elements, 0.);
    }
    for (std::int64_t i = 0; i < elements; ++i)
      total_->get()[i] += static_cast<double>(sum_.get()[i]);
    std::fill_n(sum_.get(), elements, T(0));
    terms_ = 0;
  }

  const WindowRows<T>& windows_;
  std::int64_t columns_, pitch_, terms_ = 0, copied_count_ = 0;
  Scratch<T> sum_;
  std::optional<Scratch<double>> total_;
  std::optional<Scratch<T>> copied_, copied_y_;
};

/// Adds up the gradient of a filter for one entry of the batch and one group.
template <class T>
void sum_filter(const ConvSizes& sizes, const WindowRows<T>& windows, const WindowPlaces& places,
                const std::vector<Unit>& units, std::int64_t batch, std::int64_t group, const T* x,
                const T* y, const UnpaddedPositions& positions, T* f) {
  const std::int64_t x_entry = positions_in(sizes.x) * sizes.groups * sizes.ins,
                     y_entry = positions_in(sizes.y) * sizes.groups * sizes.outs;
  const std::int64_t work = sizes.rows * positions_in(sizes.y) * windows.width() * sizes.outs;
  // The sums of shards are added one by one: their number must not depend on threads.
  const int shards = shards_for(work / kProducts, std::ssize(units));
  std::vector<std::optional<FilterSum<T>>> sums(static_cast<std::size_t>(shards));
  std::vector<T*> made(static_cast<std::size_t>(shards));
  parallel_for(shards, [&](int shard) {
    FilterSum<T>& sum = sums[static_cast<std::size_t>(shard)].emplace(sizes, windows);
    const std::int64_t first = std::ssize(units) * shard / shards,
                       end = std::ssize(units) * (shard + 1) / shards;
    for (std::int64_t i = first; i < end; ++i) {
      const Unit& unit = units[static_cast<std::size_t>(i)];
      const std::int64_t entry = batch * sizes.rows + unit.entry;
      sum.add(x + entry * x_entry + group * sizes.ins, y + entry * y_entry + group * sizes.outs,
              unit.first, unit.end, positions.of(entry), places);
    }
    made[static_cast<std::size_t>(shard)] = sum.finish();
  });
  // [taps, ins, outs] of the group into [taps, groups, ins, outs].
  const std::int64_t tap = sizes.ins * sizes.outs;
  for (std::int64_t k = 0; k < positions_in(sizes.taps); ++k) {
    T* const to = f + (k * sizes.groups + group) * tap;
    for (std::int64_t i = 0; i < tap; ++i) {
      T sum = made[0][k * tap + i];
      for (std::size_t shard = 1; shard < made.size(); ++shard) sum += made[shard][k * tap + i];
      to[i] = sum;
    }
  }
}

template <class T>
void run_filter(const ConvSizes& sizes, const WindowAxes& axes, const T* x, const T* y, T* f,
                const UnpaddedPositions& positions) {
  if (is_depthwise<T>(sizes)) return sum_depthwise(sizes, axes, x, y, f, positions);
  const WindowRows<T> windows(axes, sizes.groups * sizes.ins, sizes.ins);
  const WindowPlaces places(axes, sizes.y, sizes.groups * sizes.outs);
  const std::vector<Unit> units = units_of(sizes.rows, axes);
  for (std::int64_t batch = 0; batch < sizes.batch; ++batch)
    for (std::int64_t group = 0; group < sizes.groups; ++group)
      sum_filter(sizes, windows, places, units, batch, group, x, y, positions,
                 f + batch * sizes.filter_elements());
}

// ---- The ops ------------------------------------------------------------------------------------

WindowAxes axes_of_windows(const ConvAttrs& attrs, const ConvSizes& sizes) {
  WindowAxes axes;
  for (std::size_t i = 0; i < attrs.windows.size(); ++i)
    axes.push_back(axis_over_x(attrs.windows[i], sizes.x[i], sizes.y[i]));
  return axes;
}

OpCall call_of(const KernelArgs& args, std::span<const TensorType> in, const TensorType& out) {
  return {args.op, args.attrs, in, {&out, 1}};
}

}  // namespace

void conv_kernel(KernelArgs& args) {
  const auto& attrs = args.attr<ConvAttrs>();
  const Tensor& y = args.make();
  const TensorType in[] = {args.input(0).type(), args.input(1).type()};
  const ConvSizes sizes(attrs, ConvTypes(call_of(args, in, y.type())));
  const UnpaddedPositions positions(y.type(), first_spatial_of_y(attrs, y.type()), attrs.spatial());
  visit_numbers(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run_windows(sizes, {axes_of_windows(attrs, sizes)}, FilterRole::over_x(sizes),
                args.input(0).data<T>(), args.input(1).data<T>(), y.data<T>(), positions);
  });
}

void conv_input_kernel(KernelArgs& args) {
  const auto& attrs = args.attr<ConvAttrs>();
  const Tensor& x = args.make();
  const TensorType in[] = {args.input(0).type(), args.input(1).type()};
  const ConvSizes sizes(attrs, ConvTypes(call_of(args, in, x.type())));
  const UnpaddedPositions positions(x.type(), first_spatial_of_x(attrs, x.type()), attrs.spatial());
  std::vector<std::vector<WindowAxis>> by_axis;
  for (std::size_t i = 0; i < attrs.windows.size(); ++i)
    by_axis.push_back(axes_over_y(attrs.windows[i], sizes.x[i], sizes.y[i]));
  visit_numbers(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run_windows(sizes, all_choices(by_axis), FilterRole::over_y(sizes), args.input(0).data<T>(),
                args.input(1).data<T>(), x.data<T>(), positions);
  });
}

void conv_filter_kernel(KernelArgs& args) {
  const auto& attrs = args.attr<ConvAttrs>();
  const Tensor& f = args.make();
  const TensorType in[] = {args.input(0).type(), args.input(1).type()};
  const ConvSizes sizes(attrs, ConvTypes(call_of(args, in, f.type())));
  const TensorType& y = in[1];
  const UnpaddedPositions positions(y, first_spatial_of_y(attrs, y), attrs.spatial());
  visit_numbers(f.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run_filter(sizes, axes_of_windows(attrs, sizes), args.input(0).data<T>(),
               args.input(1).data<T>(), f.data<T>(), positions);
  });
}

}  // namespace reel
