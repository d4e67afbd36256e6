#include "reel/core/ops/convolutions/depthwise.h"

#include <algorithm>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/ops/kernels/depthwise_table.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/kernels/parallel_ranges.h"

namespace reel {
namespace {

const DepthwiseTable& table() {
  static const DepthwiseTable& chosen = for_this_processor(REEL_TABLES(depthwise));
  return chosen;
}

template <class T>
constexpr int kColumn = std::is_same_v<T, double>;

/// The taps that the rows of a line read: places in the source for the line's row 0, and in the
/// filter, in elements.
struct Taps {
  std::vector<std::int64_t> offsets, places;
};

/// Walks over the rows of entries.
class DepthwiseWalk {
 public:
  DepthwiseWalk(const ConvSizes& sizes, const WindowAxes& axes,
                const std::vector<std::int64_t>& target)
      : sizes_(sizes), axes_(axes), places_(axes, target, sizes.groups) {}

  /// Calls fn(rows, first, taps, line) for runs of rows that read the same taps: their number, the
  /// first one, its taps, and the place of the line's row 0. Calls clear(place, rows) for rows in
  /// padding, with the place of the first.
  template <class Fn, class Clear>
  void run(std::int64_t first, std::int64_t end, const std::int64_t* positions, Fn&& fn,
           Clear&& clear) const {
    for_each_line(axes_, first, end, [&](const std::int64_t* rows) {
      const WindowAxis& last = axes_.back();
      const bool is_line = axes_.size() == 1;
      const std::int64_t begin = is_line ? first : 0, stop = is_line ? end : last.rows;
      std::int64_t unpadded = last.rows_below(positions[axes_.size() - 1]);
      unpadded = std::clamp(unpadded, begin, stop);
      for (std::size_t i = 0; i + 1 < axes_.size(); ++i)
        if (axes_[i].first + rows[i] * axes_[i].stride >= positions[i]) unpadded = begin;
      const std::int64_t line = places_.line(rows);
      if (stop > unpadded) clear(line + unpadded * places_.step(), stop - unpadded);
      const std::int64_t inside = std::clamp(last.first_inside(), begin, unpadded),
                         inside_end = std::clamp(last.end_inside(), inside, unpadded);
      const auto one = [&](std::int64_t row) {
        fn(std::int64_t{1}, row, taps_of(rows, row), line);
      };
      for (std::int64_t row = begin; row < inside; ++row) one(row);
      if (inside_end > inside) fn(inside_end - inside, inside, taps_of(rows, inside), line);
      for (std::int64_t row = inside_end; row < unpadded; ++row) one(row);
    });
  }
  std::int64_t step() const { return places_.step(); }
  std::int64_t source_step() const { return axes_.back().step * sizes_.groups; }

 private:
  /// Returns the taps of a row that are inside of the source.
  Taps taps_of(const std::int64_t* rows, std::int64_t row) const {
    Taps result{{0}, {0}};
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const WindowAxis& axis = axes_[i];
      const std::int64_t base = (i + 1 == axes_.size() ? row : rows[i]) * axis.step;
      Taps longer;
      for (std::size_t k = 0; k < result.offsets.size(); ++k)
        for (std::size_t tap = 0; tap < axis.offsets.size(); ++tap) {
          const std::int64_t position = base + axis.offsets[tap];
          if (position < 0 || position >= axis.source) continue;
          longer.offsets.push_back(result.offsets[k] * axis.source + position);
          longer.places.push_back(result.places[k] * sizes_.taps[i] + axis.taps[tap]);
        }
      result = std::move(longer);
    }
    for (std::int64_t& offset : result.offsets) offset *= sizes_.groups;
    for (std::int64_t& place : result.places) place *= sizes_.groups;
    return result;
  }

  const ConvSizes& sizes_;
  const WindowAxes& axes_;
  WindowPlaces places_;
};

/// An element of the result costs about as many additions as the filter has taps.
std::int64_t work_of(const ConvSizes& sizes, const std::vector<std::int64_t>& target) {
  return sizes.rows * positions_in(target) * sizes.groups * positions_in(sizes.taps);
}

/// Rows that are added up before they are added to sums in doubles.
constexpr std::int64_t kSummedRows = 512;

/// The sums of one share of the entries.
template <class T>
class DepthwiseSum {
 public:
  explicit DepthwiseSum(const ConvSizes& sizes)
      : elements_(sizes.filter_elements()), partial_(elements_), total_(elements_) {
    std::fill_n(partial_.get(), elements_, T(0));
    std::fill_n(total_.get(), elements_, 0.);
  }
  T* partial() const { return partial_.get(); }
  /// Counts the rows that were added to partial().
  void count(std::int64_t rows) {
    if ((rows_ += rows) >= kSummedRows) drain();
  }
  const double* finish() {
    drain();
    return total_.get();
  }

 private:
  void drain() {
    for (std::int64_t i = 0; i < elements_; ++i)
      total_.get()[i] += static_cast<double>(partial_.get()[i]);
    std::fill_n(partial_.get(), elements_, T(0));
    rows_ = 0;
  }
  std::int64_t elements_, rows_ = 0;
  Scratch<T> partial_;
  Scratch<double> total_;
};

}  // namespace

template <class T>
void multiply_depthwise(const ConvSizes& sizes, const WindowAxes& axes, const FilterRole& role,
                        const T* source, const T* f, T* target,
                        const UnpaddedPositions& positions) {
  if constexpr (!std::is_floating_point_v<T>) {
    throw InternalError("a depthwise convolution of integers");
  } else {
    const DepthwiseWalk walk(sizes, axes, role.target);
    const std::int64_t from_entry = positions_in(role.source) * sizes.groups,
                       to_entry = positions_in(role.target) * sizes.groups;
    const auto run_entry = [&](std::int64_t entry, std::int64_t first, std::int64_t end) {
      T* const to = target + entry * to_entry;
      walk.run(
          first, end, positions.of(entry),
          [&](std::int64_t rows, std::int64_t row, const Taps& taps, std::int64_t line) {
            const DepthwiseRows block{rows,
                                      sizes.groups,
                                      std::ssize(taps.offsets),
                                      source + entry * from_entry,
                                      taps.offsets.data(),
                                      walk.source_step(),
                                      taps.places.data()};
            table().multiply[kColumn<T>](block, f + entry / sizes.rows * sizes.filter_elements(),
                                         to + line + row * walk.step(), walk.step());
          },
          [&](std::int64_t place, std::int64_t rows) {
            for (std::int64_t row = 0; row < rows; ++row)
              std::fill_n(to + place + row * walk.step(), sizes.groups, T(0));
          });
    };
    const std::int64_t entries = sizes.batch * sizes.rows, work = work_of(sizes, role.target);
    if (entries == 1)
      parallel_ranges(axes[0].rows, work, [&](std::int64_t first, std::int64_t count) {
        run_entry(0, first, first + count);
      });
    else
      parallel_ranges(entries, work, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t entry = first; entry < first + count; ++entry)
          run_entry(entry, 0, axes[0].rows);
      });
  }
}

template <class T>
void sum_depthwise(const ConvSizes& sizes, const WindowAxes& axes, const T* x, const T* y, T* f,
                   const UnpaddedPositions& positions) {
  if constexpr (!std::is_floating_point_v<T>) {
    throw InternalError("a depthwise convolution of integers");
  } else {
    const DepthwiseWalk walk(sizes, axes, sizes.y);
    const std::int64_t x_entry = positions_in(sizes.x) * sizes.groups,
                       y_entry = positions_in(sizes.y) * sizes.groups,
                       elements = sizes.filter_elements();
    // The sums of shards are added one by one: their number must not depend on threads.
    const int shards = shards_for(work_of(sizes, sizes.y), sizes.rows);
    for (std::int64_t batch = 0; batch < sizes.batch; ++batch) {
      std::vector<DepthwiseSum<T>> sums;
      for (int shard = 0; shard < shards; ++shard) sums.emplace_back(sizes);
      parallel_for(shards, [&](int shard) {
        DepthwiseSum<T>& sum = sums[static_cast<std::size_t>(shard)];
        for (std::int64_t row = sizes.rows * shard / shards;
             row < sizes.rows * (shard + 1) / shards; ++row) {
          const std::int64_t entry = batch * sizes.rows + row;
          walk.run(
              0, axes[0].rows, positions.of(entry),
              [&](std::int64_t rows, std::int64_t first, const Taps& taps, std::int64_t line) {
                std::vector<std::int64_t> offsets = taps.offsets;
                for (std::int64_t done = 0; done < rows; done += kSummedRows) {
                  const DepthwiseRows block{std::min(kSummedRows, rows - done),
                                            sizes.groups,
                                            std::ssize(offsets),
                                            x + entry * x_entry,
                                            offsets.data(),
                                            walk.source_step(),
                                            taps.places.data()};
                  table().sum[kColumn<T>](block,
                                          y + entry * y_entry + line + (first + done) * walk.step(),
                                          walk.step(), sum.partial());
                  sum.count(block.rows);
                  for (std::int64_t& offset : offsets) offset += kSummedRows * walk.source_step();
                }
              },
              [](std::int64_t, std::int64_t) {});
        }
      });
      for (int shard = 0; shard < shards; ++shard) {
        const double* const made = sums[static_cast<std::size_t>(shard)].finish();
        T* const to = f + batch * elements;
        for (std::int64_t i = 0; i < elements; ++i) {
          const T term = static_cast<T>(made[i]);
          to[i] = shard ? to[i] + term : term;
        }
      }
    }
  }
}

#define REEL_DEPTHWISE_OF(T)                                                               \
  template void multiply_depthwise(const ConvSizes&, const WindowAxes&, const FilterRole&, \
                                   const T*, const T*, T*, const UnpaddedPositions&);      \
  template void sum_depthwise(const ConvSizes&, const WindowAxes&, const T*, const T*, T*, \
                              const UnpaddedPositions&);
REEL_DEPTHWISE_OF(float)
REEL_DEPTHWISE_OF(double)
REEL_DEPTHWISE_OF(std::int32_t)
REEL_DEPTHWISE_OF(std::int64_t)
#undef REEL_DEPTHWISE_OF

}  // namespace reel
