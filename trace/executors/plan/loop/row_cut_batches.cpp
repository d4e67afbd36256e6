// The rows of each block and of each batch of a cut loop, by their numbers of iterations.
#include <algorithm>
#include <numeric>

#include "reel/core/ops/list/list_data.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/plan/loop/row_cut.h"

namespace reel {
namespace {

/// Returns the iterations of each row. Requires entries that finish one by one.
std::vector<std::int64_t> lengths_of_rows(const RowCut& cut, const LoopAttrs& attrs, OpInputs in) {
  const Tensor& given = *operands_of(attrs, in).lengths->tensor;
  const Iterations iterations(attrs, in);
  std::vector<std::int64_t> lengths;
  lengths.reserve(static_cast<std::size_t>(cut.dim.size()));
  for (std::int64_t row = 0; row < cut.dim.size(); ++row)
    lengths.push_back(std::clamp<std::int64_t>(index_at(given, row) - iterations.step_at(0), 0,
                                               iterations.limit));
  return lengths;
}

/// Returns the rows of a run; in descending order of iterations if entries finish one by one.
BlockOfRows sorted_rows(const RowCut& cut, const LoopAttrs& attrs, OpInputs in) {
  BlockOfRows result;
  if (!attrs.has_entries()) {
    result.rows.resize(static_cast<std::size_t>(cut.dim.size()));
    std::iota(result.rows.begin(), result.rows.end(), 0);
    return result;
  }
  const std::vector<std::int64_t> lengths = lengths_of_rows(cut, attrs, in);
  result.rows = longest_first(lengths);
  for (const std::int64_t row : result.rows) result.lengths.push_back(lengths[row]);
  return result;
}

}  // namespace

std::vector<std::int64_t> longest_first(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> rows(lengths.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::int64_t a, std::int64_t b) { return lengths[a] > lengths[b]; });
  return rows;
}

bool fall_or_rise(const std::vector<std::int64_t>& lengths) {
  return std::ranges::is_sorted(lengths) || std::ranges::is_sorted(lengths, std::ranges::greater());
}

bool are_adjacent(const std::vector<std::int64_t>& rows) {
  for (std::size_t r = 1; r < rows.size(); ++r)
    if (rows[r] != rows[r - 1] + 1) return false;
  return true;
}

BlockOfRows rows_from(const BlockOfRows& rows, std::size_t first, std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), first);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return rows.rows[a] < rows.rows[b]; });
  BlockOfRows result;
  for (const std::size_t r : order) {
    result.rows.push_back(rows.rows[r]);
    if (!rows.lengths.empty()) result.lengths.push_back(rows.lengths[r]);
  }
  return result;
}

std::vector<BlockOfRows> RowCut::rows_of_blocks(const LoopAttrs& attrs, OpInputs in) const {
  const BlockOfRows sorted = sorted_rows(*this, attrs, in);
  std::vector<BlockOfRows> result;
  std::size_t first = 0;
  for (const std::int64_t count : blocks) {
    result.push_back(rows_from(sorted, first, static_cast<std::size_t>(count)));
    first += static_cast<std::size_t>(count);
  }
  return result;
}

bool RowCut::is_in_order(const LoopAttrs& attrs, OpInputs in) const {
  return fall_or_rise(lengths_of_rows(*this, attrs, in));
}

std::vector<BlockOfRows> RowCut::batches(const LoopAttrs& attrs, OpInputs in, std::int64_t count,
                                         bool is_dealt) const {
  const BlockOfRows sorted = sorted_rows(*this, attrs, in);
  const std::vector<std::int64_t> sizes = rows_of_batches(dim.size(), count);
  std::vector<BlockOfRows> result(sizes.size());
  std::int64_t batch = 0;
  for (std::int64_t r = 0; r < dim.size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    // Dealt forwards and backwards in turn, so that no batch has the longest row of each round.
    if (is_dealt)
      batch = r / count % 2 ? count - 1 - r % count : r % count;
    else if (std::ssize(result[static_cast<std::size_t>(batch)].rows) == sizes[batch])
      ++batch;
    BlockOfRows& to = result[static_cast<std::size_t>(batch)];
    to.rows.push_back(sorted.rows[at]);
    to.lengths.push_back(sorted.lengths[at]);
  }
  return result;
}

std::vector<std::int64_t> rows_of_batches(std::int64_t rows, std::int64_t count) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(count), rows / count);
  // Dealing leaves the last rows to the first batches, or to the last ones on the way back.
  const bool is_back = rows / count % 2;
  for (std::int64_t i = 0; i < rows % count; ++i)
    ++result[static_cast<std::size_t>(is_back ? count - 1 - i : i)];
  return result;
}

std::vector<std::int64_t> sizes_of_batch(std::int64_t rows, std::int64_t batches) {
  const std::int64_t count =
      std::min(rows, batches > 2 ? kMaxSizes / 2 : kMaxSizes);  // similar lengths need fewer
  std::vector<std::int64_t> result;
  for (std::int64_t i = 1; i <= count; ++i) result.push_back(rows * i / count);
  return result;
}

}  // namespace reel
