#include "reel/core/ops/products/live_rows.h"

#include <algorithm>
#include <cstring>

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

void add(LiveRows& rows, std::int64_t row) {
  ++rows.count;
  if (!rows.ranges.empty() && rows.ranges.back().first + rows.ranges.back().count == row)
    ++rows.ranges.back().count;
  else
    rows.ranges.push_back({row, 1});
}

/// Rows that are copied side by side before a product: as many as stay in the cache.
constexpr std::int64_t kTogether = 512;

/// Copies rows of both operands next to each other.
class Gathered {
 public:
  Gathered(const MatrixSizes& sizes, std::int64_t item, std::int64_t room)
      : a_(sizes.m * item, room), b_(sizes.n * item, room) {}
  void add(const char* a, const char* b, std::int64_t first, std::int64_t count) {
    a_.put(count_, a, first, count);
    b_.put(count_, b, first, count);
    count_ += count;
  }
  std::int64_t count() const { return count_; }
  const char* a() const { return a_.data(); }
  const char* b() const { return b_.data(); }
  void clear() { count_ = 0; }

 private:
  struct Side {
    Side(std::int64_t row_bytes, std::int64_t room)
        : bytes(row_bytes), rows_(allocate_block(TensorType(boolean, {row_bytes * room}))) {}
    const char* data() const { return rows_.data<char>(); }
    void put(std::int64_t at, const char* from, std::int64_t first, std::int64_t rows) {
      std::memcpy(rows_.data<char>() + at * bytes, from + first * bytes,
                  static_cast<std::size_t>(rows * bytes));
    }
    std::int64_t bytes;

   private:
    Tensor rows_;  // from the pool: a product allocates nothing from the system
  };
  Side a_, b_;
  std::int64_t count_ = 0;
};

}  // namespace

std::optional<LiveRows> live_rows(const TensorType& type, const std::vector<int>& axes) {
  std::vector<Lengths> all;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (auto lengths = lengths_of(type, axes, i)) all.push_back(std::move(*lengths));
    rows *= type.sizes()[static_cast<std::size_t>(axes[i])];
  }
  if (all.empty()) return std::nullopt;
  LiveRows result;
  std::vector<std::int64_t> at(axes.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool is_live = std::all_of(all.begin(), all.end(), [&](const Lengths& lengths) {
      std::int64_t place = 0;
      for (std::size_t i = 0; i < at.size(); ++i) place += at[i] * lengths.steps[i];
      return at[lengths.axis] < lengths.values.data<std::int32_t>()[place];
    });
    if (is_live) add(result, row);
    for (std::size_t i = axes.size(); i-- > 0;) {
      if (++at[i] < type.sizes()[static_cast<std::size_t>(axes[i])]) break;
      at[i] = 0;
    }
  }
  return result;
}

void multiply_rows(DType dtype, const MatrixSizes& sizes, const LiveRows& rows, const void* a,
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
    if (gathered.count()) multiply_part(gathered.count(), gathered.a(), gathered.b());
    gathered.clear();
  };
  for (LiveRows::Range range : rows.ranges) {
    if (range.count >= kTogether) {
      multiply_part(range.count, from_a + range.first * sizes.m * item,
                    from_b + range.first * sizes.n * item);
      continue;
    }
    while (range.count) {
      const std::int64_t count = std::min(range.count, kTogether - gathered.count());
      gathered.add(from_a, from_b, range.first, count);
      if (gathered.count() == kTogether) multiply_gathered();
      range.first += count;
      range.count -= count;
    }
  }
  multiply_gathered();
  if (!part.add) multiply_part(0, from_a, from_b);  // without rows: zeros
}

}  // namespace reel
