// core/ops/kernels/long_sums.h — LongSums, adds any number of terms to rows, one by one.
#pragma once

#include <algorithm>
#include <bit>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace reel {

/// Number of terms that are added to an f32 one by one. Later terms would be lost as the sum grows:
/// at 2^24, adding one has no effect.
inline constexpr std::int64_t kPlainTerms = 32;

/// Divides numbers by a divisor that they are multiples of: multiplies with the inverse of its odd
/// part modulo 2^64.
class ExactDivision {
 public:
  explicit ExactDivision(std::int64_t divisor)
      : shift_(std::countr_zero(static_cast<std::uint64_t>(divisor))) {
    const std::uint64_t odd = static_cast<std::uint64_t>(divisor) >> shift_;
    inverse_ = odd;  // correct for three bits; each step doubles them (Newton)
    for (int bits = 3; bits < 64; bits *= 2) inverse_ *= 2 - odd * inverse_;
  }
  std::int64_t operator()(std::int64_t multiple) const {
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(multiple) >> shift_) * inverse_);
  }

 private:
  int shift_;
  std::uint64_t inverse_;
};

/// Numbers for requested rows: an array over all rows if they are few, otherwise a hash table.
class RowSlots {
 public:
  /// rows: number of all rows. asked: maximum number of requested rows.
  RowSlots(std::int64_t rows, std::int64_t asked) {
    if (rows <= kFewRows || rows / 4 <= asked) {
      slots_.resize(static_cast<std::size_t>(rows));
      return;
    }
    const auto size = std::bit_ceil(static_cast<std::uint64_t>(asked) * 2);
    slots_.resize(size);
    keys_.resize(size, -1);
    shift_ = 64 - std::countr_zero(size);
  }
  /// Returns the number stored for a row, initially 0.
  [[gnu::always_inline]] std::int32_t& of(std::int64_t row) {
    if (keys_.empty()) return slots_[static_cast<std::size_t>(row)];
    std::size_t at = static_cast<std::uint64_t>(row) * 0x9E3779B97F4A7C15ull >> shift_;
    while (keys_[at] != row && keys_[at] >= 0) at = (at + 1) & (keys_.size() - 1);
    keys_[at] = row;
    return slots_[at];
  }

 private:
  static constexpr std::int64_t kFewRows = 4096;
  std::vector<std::int32_t> slots_;
  std::vector<std::int64_t> keys_;
  int shift_ = 0;
};

/// Which rows of a buffer may get more than kPlainTerms terms: found by a first pass over the rows
/// of all terms. Many rows share counters, so that some with fewer terms are named too,
/// but none with more is missed.
class LongRows {
 public:
  /// rows: how many there are, of `size` elements; terms: at most how many there are.
  LongRows(std::int64_t rows, std::int64_t size, std::int64_t terms)
      : row_of_(size),
        counts_(terms > kPlainTerms && terms / kPlainTerms <= rows),
        is_shared_(rows > std::max(terms, kFewRows)),
        has_any_(terms / kPlainTerms > rows) {
    if (!counts_) return;
    const std::uint64_t shared = std::bit_ceil(static_cast<std::uint64_t>(terms));
    shift_ = 64 - std::countr_zero(shared);
    counters_.resize(is_shared_ ? shared : static_cast<std::size_t>(rows));
  }
  /// Returns false if it is known without a first pass, from the numbers of rows and terms.
  bool counts() const { return counts_; }
  /// first: the place of the row's first element.
  [[gnu::always_inline]] void count(std::int64_t first) {
    Counter& counter = counters_[place(first)];
    counter = static_cast<Counter>(counter + (counter <= kPlainTerms));
    has_any_ |= counter > kPlainTerms;
  }
  bool has_any() const { return has_any_; }
  [[gnu::always_inline]] bool has(std::int64_t first) const {
    return !counts_ || counters_[place(first)] > kPlainTerms;
  }

 private:
  using Counter = std::uint16_t;  // a write to a byte may be one to any member
  static constexpr std::int64_t kFewRows = 4096;
  std::size_t place(std::int64_t first) const {
    const std::int64_t row = row_of_(first);
    if (!is_shared_) return static_cast<std::size_t>(row);
    return static_cast<std::uint64_t>(row) * 0x9E3779B97F4A7C15ull >> shift_;
  }

  ExactDivision row_of_;
  bool counts_, is_shared_, has_any_;
  int shift_ = 0;
  boost::container::small_vector<Counter, 256> counters_;
};

/// Sums in the rows of a buffer, each of `size` elements.
///
/// The first kPlainTerms terms of a row of f32 are added in f32, in order. Later ones are added to
/// the row's sum in f64, which finish() rounds once. The bits of a row depend on its own terms
/// alone. Other dtypes are added one by one.
template <class T>
class LongSums {
 public:
  /// terms: maximum number of terms in all rows. Requires: `to` outlives the sums.
  LongSums(T* to, std::int64_t rows, std::int64_t size, std::int64_t terms)
      : to_(to),
        size_(size),
        counts_terms_(std::is_same_v<T, float> && terms > kPlainTerms),
        slots_(counts_terms_ ? rows : 0, counts_terms_ ? terms : 0) {}

  /// Adds a term to a row. add(to, term, size) does so in the dtype of the row.
  template <class Add>
  [[gnu::always_inline]] void add(std::int64_t row, const T* term, Add&& add) {
    if (counts_terms_) {
      std::int32_t& slot = slots_.of(row);
      if (slot == kPlainTerms) slot = begin_wide(row);
      if (slot < 0) return add_wide(wide_.data() + (-1 - slot) * size_, term);
      ++slot;
    }
    add(to_ + row * size_, term, size_);
  }

  /// Rounds the sums in f64 to their rows. Call it once, after the last term.
  void finish() {
    const double* from = wide_.data();
    for (const std::int64_t row : wide_rows_)
      for (std::int64_t i = 0; i < size_; ++i) to_[row * size_ + i] = static_cast<T>(*from++);
  }

 private:
  /// Moves a row's sum to f64 and returns its slot.
  std::int32_t begin_wide(std::int64_t row) {
    wide_rows_.push_back(row);
    wide_.insert(wide_.end(), to_ + row * size_, to_ + (row + 1) * size_);
    return -static_cast<std::int32_t>(wide_rows_.size());
  }
  [[gnu::always_inline]] void add_wide(double* to, const T* term) {
    if (size_ == 1)
      *to += static_cast<double>(*term);
    else
      add_wide_row(to, term, size_);
  }
  [[gnu::noinline, gnu::optimize("O3")]] static void add_wide_row(double* __restrict to,
                                                                  const T* __restrict term,
                                                                  std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i) to[i] += static_cast<double>(term[i]);
  }

  T* to_;
  std::int64_t size_;
  bool counts_terms_;
  RowSlots slots_;  ///< number of terms of a row, or -1 - its place among the wide ones
  std::vector<std::int64_t> wide_rows_;
  std::vector<double> wide_;
};

}  // namespace reel
