#include "reel/core/ops/products/unpadded_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

/// The lengths of one axis, and how to find them during a walk over all axes.
struct Lengths {
  std::size_t axis;  ///< in the walk
  Tensor values;
  std::vector<std::int64_t> steps;  ///< by axis of the walk
};

std::optional<Lengths> lengths_of(const TensorType& type, const std::vector<int>& axes,
                                  std::size_t i) {
  const Dim& dim = type.dims()[static_cast<std::size_t>(axes[i])];
  if (!dim.is_ragged() || dim.node()->is_full || !dim.node()->lengths) return std::nullopt;
  Lengths result{i, Tensor(dim.node()->lengths), std::vector<std::int64_t>(axes.size())};
  std::int64_t step = 1;
  for (std::size_t over = dim.length_dims().size(); over-- > 0;) {
    const auto found = std::find_if(axes.begin(), axes.end(), [&](int axis) {
      return type.dims()[static_cast<std::size_t>(axis)] == dim.length_dims()[over];
    });
    if (found == axes.end()) return std::nullopt;
    result.steps[static_cast<std::size_t>(found - axes.begin())] = step;
    step *= dim.length_dims()[over].size();
  }
  return result;
}

void add(UnpaddedRows& rows, std::int64_t row) {
  ++rows.count;
  if (!rows.ranges.empty() && rows.ranges.back().first + rows.ranges.back().count == row)
    ++rows.ranges.back().count;
  else
    rows.ranges.push_back({row, 1});
}

/// Rows that are copied side by side before a product: as many as stay in the cache.
constexpr std::int64_t kTogether = 512;

/// Copies rows of both operands next to each other, on several threads.
class Gathered {
 public:
  Gathered(const MatrixSizes& sizes, std::int64_t item, std::int64_t room)
      : a_(sizes.m * item, room), b_(sizes.n * item, room) {}
  /// Adds rows. Requires at most kTogether rows together, and count > 0.
  void add(std::int64_t first, std::int64_t count) {
    copied_[static_cast<std::size_t>(copied_count_++)] = {first, count, count_};
    count_ += count;
  }
  /// Copies the added rows of both operands.
  void copy(const char* a, const char* b) {
    constexpr std::int64_t kBytes = 4;  // copied in a quarter of a nanosecond
    parallel_ranges(copied_count_, count_ * (a_.bytes + b_.bytes) / kBytes,
                    [&](std::int64_t first, std::int64_t count) {
                      for (std::int64_t i = first; i < first + count; ++i) {
                        const CopiedRows& copied = copied_[static_cast<std::size_t>(i)];
                        a_.put(copied, a);
                        b_.put(copied, b);
                      }
                    });
  }
  std::int64_t count() const { return count_; }
  const char* a() const { return a_.data(); }
  const char* b() const { return b_.data(); }
  void clear() { count_ = copied_count_ = 0; }

 private:
  struct CopiedRows {
    std::int64_t first, count, to;
  };
  struct Side {
    Side(std::int64_t row_bytes, std::int64_t room)
        : bytes(row_bytes), rows_(allocate_block(TensorType(boolean, {row_bytes * room}))) {}
    char* data() const { return rows_.data<char>(); }
    void put(const CopiedRows& copied, const char* from) const {
      std::memcpy(data() + copied.to * bytes, from + copied.first * bytes,
                  static_cast<std::size_t>(copied.count * bytes));
    }
    std::int64_t bytes;

   private:
    Tensor rows_;  // from the pool: a product allocates nothing from the system
  };
  Side a_, b_;
  std::int64_t count_ = 0, copied_count_ = 0;
  std::array<CopiedRows, kTogether> copied_;
};

}  // namespace

std::optional<UnpaddedRows> unpadded_rows(const TensorType& type, const std::vector<int>& axes) {
  std::vector<Lengths> all;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (auto lengths = lengths_of(type, axes, i)) all.push_back(std::move(*lengths));
    rows *= type.sizes()[static_cast<std::size_t>(axes[i])];
  }
  if (all.empty()) return std::nullopt;
  UnpaddedRows result;
  std::vector<std::int64_t> at(axes.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool is_unpadded = std::all_of(all.begin(), all.end(), [&](const Lengths& lengths) {
      std::int64_t place = 0;
      for (std::size_t i = 0; i < at.size(); ++i) place += at[i] * lengths.steps[i];
      return at[lengths.axis] < lengths.values.data<std::int32_t>()[place];
    });
    if (is_unpadded) add(result, row);
    for (std::size_t i = axes.size(); i-- > 0;) {
      if (++at[i] < type.sizes()[static_cast<std::size_t>(axes[i])]) break;
      at[i] = 0;
    }
  }
  return result;
}

void multiply_rows(DType dtype, const MatrixSizes& sizes, const UnpaddedRows& rows, const void* a,
                   const void* b, void* c) {
  const auto item = static_cast<std::int64_t>(size_of(dtype));
  const char *from_a = static_cast<const char*>(a), *from_b = static_cast<const char*>(b);
  MatrixSizes part = sizes;
  const auto multiply_part = [&](std::int64_t count, const char* part_a, const char* part_b) {
    part.k = count;
    multiply(dtype, part, part_a, part_b, c);
    part.add = true;
  };
  Gathered gathered(sizes, item, std::min(kTogether, rows.count));
  const auto multiply_gathered = [&] {
    if (!gathered.count()) return;
    gathered.copy(from_a, from_b);
    multiply_part(gathered.count(), gathered.a(), gathered.b());
    gathered.clear();
  };
  for (UnpaddedRows::Range range : rows.ranges) {
    if (range.count >= kTogether) {
      multiply_part(range.count, from_a + range.first * sizes.m * item,
                    from_b + range.first * sizes.n * item);
      continue;
    }
    while (range.count) {
      const std::int64_t count = std::min(range.count, kTogether - gathered.count());
      gathered.add(range.first, count);
      if (gathered.count() == kTogether) multiply_gathered();
      range.first += count;
      range.count -= count;
    }
  }
  multiply_gathered();
  if (!part.add) multiply_part(0, from_a, from_b);  // without rows: zeros
}

std::optional<UnpaddedRows> rows_worth_computing(const TensorType& a, const MatrixSizes& sizes) {
  // Below this work, a product takes less time than looking for its rows.
  constexpr std::int64_t kLeastWork = std::int64_t{1} << 20, kLeastRange = 4;
  const std::int64_t work = sizes.m * sizes.n * sizes.k;
  if (!a.is_ragged() || sizes.a_step != 1 || sizes.n == 1 || sizes.add || work < kLeastWork ||
      !has_alike_rows(sum_order(a.dtype(), sizes)))
    return std::nullopt;
  std::vector<int> axes(static_cast<std::size_t>(a.rank() - 1));
  std::iota(axes.begin(), axes.end(), 0);
  std::optional<UnpaddedRows> rows = unpadded_rows(a, axes);
  if (rows &&
      (8 * rows->count > 7 * sizes.m || rows->count < kLeastRange * std::ssize(rows->ranges)))
    return std::nullopt;
  return rows;
}

void multiply_some_rows(DType dtype, MatrixSizes sizes, const UnpaddedRows& rows, const void* a,
                        const void* b, void* c) {
  const std::size_t item = size_of(dtype);
  const auto bytes = [&](std::int64_t elements) {
    return elements * static_cast<std::int64_t>(item);
  };
  sizes.order = sum_order(dtype, sizes);
  Tensor copy;  // of b in rows, which each range would make otherwise
  if (sizes.b_step != 1 && sizes.order != SumOrder::runs) {
    copy = Tensor(allocate_block(TensorType(dtype, {sizes.k, sizes.n})));
    copy_strided(item, {{sizes.k, sizes.n, sizes.b_row}, {sizes.n, 1, sizes.b_step}},
                 copy.data<char>(), static_cast<const char*>(b));
    b = copy.data<void>();
    sizes.b_row = sizes.n, sizes.b_step = 1;
  }
  char* const to = static_cast<char*>(c);
  const auto clear = [&](std::int64_t first, std::int64_t last) {
    std::memset(to + bytes(first * sizes.c_row), 0,
                static_cast<std::size_t>(bytes((last - first) * sizes.c_row)));
  };
  // The work of a share, in the unit of parallel_ranges().
  constexpr std::int64_t kProducts = 16;
  const std::int64_t work = rows.count * sizes.n * sizes.k / kProducts;
  parallel_ranges(std::ssize(rows.ranges), work, [&](std::int64_t first, std::int64_t count) {
    std::int64_t end = 0;
    if (first) {
      const UnpaddedRows::Range& before = rows.ranges[static_cast<std::size_t>(first - 1)];
      end = before.first + before.count;
    }
    for (std::int64_t i = first; i < first + count; ++i) {
      const UnpaddedRows::Range& range = rows.ranges[static_cast<std::size_t>(i)];
      clear(end, range.first);
      end = range.first + range.count;
      MatrixSizes part = sizes;
      part.m = range.count;
      multiply(dtype, part, static_cast<const char*>(a) + bytes(range.first * sizes.a_row), b,
               to + bytes(range.first * sizes.c_row));
    }
    if (first + count == std::ssize(rows.ranges)) clear(end, sizes.m);
  });
}

}  // namespace reel
