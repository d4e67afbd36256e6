// core/ops/convolutions/window_rows.h — WindowRows, windows of a tensor as the rows of a matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "reel/core/ops/convolutions/window_axes.h"

namespace reel {

/// Copies bytes that do not overlap. Short runs, as of three taps of one channel, need no call.
inline void copy_bytes(const void* source, std::size_t count, void* target) {
  const char* const from = static_cast<const char*>(source);
  char* const to = static_cast<char*>(target);
  const auto ends = [&](auto size) {  // which may overlap each other
    std::memcpy(to, from, size());
    std::memcpy(to + count - size(), from + count - size(), size());
  };
  if (count > 64 || count < 4)
    std::memcpy(to, from, count);
  else if (count >= 32)
    ends(std::integral_constant<std::size_t, 32>());
  else if (count >= 16)
    ends(std::integral_constant<std::size_t, 16>());
  else if (count >= 8)
    ends(std::integral_constant<std::size_t, 8>());
  else
    ends(std::integral_constant<std::size_t, 4>());
}

/// The windows of one entry and one group as rows of a matrix: a window's elements, tap by tap.
template <class T>
class WindowRows {
 public:
  /// pitch: elements from one position of the source to the next. run: elements of a position that
  /// belong to the group.
  WindowRows(const WindowAxes& axes, std::int64_t pitch, std::int64_t run)
      : axes_(axes), pitch_(pitch), run_(run), is_run_(pitch == run && axes.back().is_run()) {
    width_ = run;
    inner_.resize(axes.size());
    step_.resize(axes.size());
    std::int64_t positions = 1;
    for (std::size_t i = axes.size(); i-- > 0;) {
      inner_[i] = width_;
      width_ *= axes[i].tap_count();
      step_[i] = positions * pitch;
      positions *= axes[i].source;
    }
  }
  const WindowAxes& axes() const { return axes_; }
  /// Returns the number of elements of a window.
  std::int64_t width() const { return width_; }
  /// Returns true if windows are runs of the source, so that they need no copy.
  bool are_runs() const { return axes_.size() == 1 && is_run_; }
  /// Returns the elements from one row of runs to the next.
  std::int64_t run_step() const { return axes_[0].step * pitch_; }
  /// Returns the first element of a row. Requires that its first tap is inside of the source.
  const T* run_of(const T* source, std::int64_t row) const {
    return source + (row * axes_[0].step + axes_[0].offsets[0]) * pitch_;
  }

  /// Copies the window of a row; taps outside of the source are zeros. rows: a number for each
  /// axis.
  void copy(const T* source, const std::int64_t* rows, T* to) const { copy(0, source, rows, to); }

 private:
  void copy(std::size_t axis, const T* source, const std::int64_t* rows, T* to) const {
    const WindowAxis& at = axes_[axis];
    const std::int64_t base = rows[axis] * at.step, inner = inner_[axis];
    const bool is_last = axis + 1 == axes_.size();
    if (is_last && is_run_) {
      const std::int64_t begin = base + at.offsets[0], stop = begin + at.tap_count();
      if (begin >= 0 && stop <= at.source) {
        copy_bytes(source + begin * run_,
                   static_cast<std::size_t>(at.tap_count() * run_) * sizeof(T), to);
        return;
      }
      const std::int64_t from = std::clamp<std::int64_t>(0, begin, stop),
                         end = std::clamp(at.source, from, stop);
      std::fill_n(to, (from - begin) * run_, T(0));
      if (end > from)
        std::copy_n(source + from * run_, (end - from) * run_, to + (from - begin) * run_);
      std::fill_n(to + (end - begin) * run_, (stop - end) * run_, T(0));
      return;
    }
    for (std::int64_t tap = 0; tap < at.tap_count(); ++tap, to += inner) {
      const std::int64_t position = base + at.offsets[static_cast<std::size_t>(tap)];
      if (position < 0 || position >= at.source)
        std::fill_n(to, inner, T(0));
      else if (is_last)
        std::copy_n(source + position * step_[axis], run_, to);
      else
        copy(axis + 1, source + position * step_[axis], rows, to);
    }
  }

  const WindowAxes& axes_;
  std::int64_t pitch_, run_, width_ = 1;
  bool is_run_;  ///< the taps along the last axis are a run of the source
  std::vector<std::int64_t> inner_, step_;
};

/// Positions of the result of windows: the place of each row.
class WindowPlaces {
 public:
  /// sizes: positions of the result along each axis. pitch: elements from one to the next.
  WindowPlaces(const WindowAxes& axes, const std::vector<std::int64_t>& sizes, std::int64_t pitch)
      : axes_(axes) {
    step_.resize(axes.size());
    for (std::size_t i = axes.size(); i-- > 0; pitch *= sizes[i]) step_[i] = pitch;
  }
  /// Returns the place of the first row with all axes but the last at `rows`.
  std::int64_t line(const std::int64_t* rows) const {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < axes_.size(); ++i)
      place += (axes_[i].first + (i + 1 < axes_.size() ? rows[i] * axes_[i].stride : 0)) * step_[i];
    return place;
  }
  /// Returns the elements from one row of a line to the next.
  std::int64_t step() const { return axes_.back().stride * step_.back(); }

 private:
  const WindowAxes& axes_;
  std::vector<std::int64_t> step_;
};

/// Calls fn(rows) for each line along the last axis, with the numbers of a row of each axis before
/// it, for rows first .. end - 1 of the first axis. One line if there is one axis.
template <class Fn>
void for_each_line(const WindowAxes& axes, std::int64_t first, std::int64_t end, Fn&& fn) {
  std::vector<std::int64_t> rows(axes.size(), 0);
  if (axes.size() == 1) return fn(rows.data());
  for (std::size_t i = 1; i + 1 < axes.size(); ++i)
    if (axes[i].rows == 0) return;
  for (rows[0] = first; rows[0] < end;) {
    fn(rows.data());
    std::size_t i = axes.size() - 2;
    while (++rows[i] == axes[i].rows && i > 0) rows[i--] = 0;
  }
}

/// The number of positions that are no padding, for each entry of a tensor and each of its spatial
/// axes.
class UnpaddedPositions {
 public:
  /// first: the first spatial axis; axes before it are entries.
  UnpaddedPositions(const TensorType& type, int first, int count);
  /// Returns them for an entry, one number for each axis.
  const std::int64_t* of(std::int64_t entry) const {
    return counts_.data() + entry * static_cast<std::int64_t>(count_);
  }
  /// Returns true if some entry is shorter than the axis.
  bool has_padding() const { return has_padding_; }

 private:
  std::size_t count_;
  std::vector<std::int64_t> counts_;
  bool has_padding_ = false;
};

}  // namespace reel
