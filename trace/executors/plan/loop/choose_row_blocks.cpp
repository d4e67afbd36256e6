#include "reel/trace/executors/plan/loop/choose_row_blocks.h"

#include <algorithm>
#include <cstdint>

#include "reel/core/base/str.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/cond.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/executors/plan/loop/loop_work.h"
#include "reel/trace/passes/analysis/row_axes.h"
#include "reel/trace/passes/rows/sums_by_block.h"

namespace reel {
namespace {

/// A product of kManyRows rows is about as fast per row as larger ones. Half as many nearly are,
/// which pays if there would be one block otherwise. A quarter pays if rows of similar lengths are
/// to run together.
constexpr std::int64_t kManyRows = 16, kRows = kManyRows / 2, kRowsThatEnd = kManyRows / 4;
/// Multiplications per row and iteration from which on a block of kManyRows, kRows or kRowsThatEnd
/// rows pays for its own pass over the body.
constexpr std::int64_t kWork = 16 * 1024;
/// Blocks that are chosen by their work do the work of kManyRows rows, 8 microseconds, or of kRows
/// rows, 4 microseconds, if there are two. Each has a plan; more than kMaxBlocks gain nothing.
constexpr std::int64_t kWorkOfBlock = kManyRows * kWork, kLeastWorkOfBlock = kRows * kWork,
                       kMaxBlocks = 32;
/// The work of all iterations that repays the tasks of blocks chosen by work: 65 microseconds.
constexpr std::int64_t kWorkOfRun = 1 << 21;

/// Returns the numbers of rows that runs of the cut may have.
std::vector<std::int64_t> rows_of_runs(const RowCut& cut, bool ends) {
  std::vector<std::int64_t> result = cut.blocks;
  if (!ends) {
    result.push_back(cut.dim.size());
    return result;
  }
  const std::int64_t most = std::min<std::int64_t>(kMaxBatches, std::ssize(cut.blocks));
  for (std::int64_t batches = 1; batches <= most; ++batches)
    for (const std::int64_t rows : rows_of_batches(cut.dim.size(), batches))
      for (const std::int64_t size : sizes_of_batch(rows, batches)) result.push_back(size);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// Returns true if a row has the same bits for all numbers of rows that runs of the cut have.
/// Returns false for bodies with a loop or branch, which are not searched.
bool rows_are_alike(const LoopAttrs& attrs, const RowCut& cut, const RowAxes& axes,
                    const PlannedTypes& types) {
  const Graph& body = *attrs.body.graph;
  const std::vector<std::int64_t> runs = rows_of_runs(cut, attrs.has_entries());
  for (const OpRecord& record : body.records) {
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    if (record.op == &loop_op || record.op == &cond_op) return false;
    std::vector<TensorType> read, made;
    for (const ValueId v : in) read.push_back(types.types[v]);
    for (const ValueId v : out) made.push_back(types.types[v]);
    const OpCall call{*record.op, record.attrs.get(), read, made};
    const AxisFactors factors = axis_factors(call);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (axes[in[i]] < 0) continue;
      const int factor = factors.in(i, axes[in[i]]);
      const auto are_alike = [&](std::int64_t count) {
        return factors.are_alike(call, factor, count);
      };
      if (!std::ranges::all_of(runs, are_alike)) return false;
    }
  }
  return true;
}

/// Returns true if blocks can run as one. Sums over rows are allowed if they can be taken block by
/// block.
bool can_be_joined(const LoopAttrs& attrs, const RowCut& cut, const RowAxes& axes,
                   const PlannedTypes& types) {
  if (!attrs.has_entries() && cut.dim.size() % std::ssize(cut.blocks)) return false;
  if (!rows_are_alike(attrs, cut, axes, types)) return false;
  const Graph& body = *attrs.body.graph;
  for (std::size_t i = 0; i < attrs.sums.size(); ++i) {
    if (cut.sums[i] != RowCut::Sum::over_rows) continue;
    const OpRecord* const record = summing_record(attrs, i);
    if (!record || axes[body.inputs_of(*record)[0]] != 0) return false;
  }
  return true;
}

std::vector<std::int64_t> blocks_of(std::int64_t rows, std::int64_t count) {
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = 0; i < count; ++i)
    blocks.push_back(rows * (i + 1) / count - rows * i / count);
  return blocks;
}

/// Returns true if a product multiplies rows by a matrix that all of them share. The matrix is read
/// once for each block.
bool shares_matrices(const Graph& body, const RowAxes& axes) {
  return std::ranges::any_of(body.records, [&](const OpRecord& record) {
    if (!is_product(*record.op)) return false;
    const auto in = body.inputs_of(record);
    return (axes[in[0]] == RowAxes::kNone) != (axes[in[1]] == RowAxes::kNone);
  });
}

/// Returns the number of blocks: by passes.block_rows, or such that the rows of a block pay for a
/// pass over the body. work: multiplications of an iteration for all rows.
std::int64_t count_by_rows(std::int64_t rows, std::int64_t work, bool ends, const Passes& passes) {
  if (passes.block_rows) return std::max<std::int64_t>(rows / passes.block_rows, 1);
  const std::int64_t work_of_row = std::max<std::int64_t>(work / rows, 1);
  const auto count = [&](std::int64_t least) {
    return std::max<std::int64_t>(rows / std::max(least, least * kWork / work_of_row), 1);
  };
  if (ends) return count(kRowsThatEnd);
  return std::max(count(kManyRows), std::min<std::int64_t>(count(kRows), 2));
}

/// Returns the number of blocks such that each one's work pays for a pass over the body.
std::int64_t count_by_work(std::int64_t rows, std::int64_t work) {
  const std::int64_t work_of_row = std::max<std::int64_t>(work / rows, 1);
  const auto count = [&](std::int64_t least) {
    const std::int64_t rows_of_block = (least + work_of_row - 1) / work_of_row;
    return std::clamp<std::int64_t>(rows / rows_of_block, 1, kMaxBlocks);
  };
  const std::int64_t blocks =
      std::max(count(kWorkOfBlock), std::min<std::int64_t>(count(kLeastWorkOfBlock), 2));
  // Equal blocks can run as one on one thread.
  for (std::int64_t equal = blocks; 2 * equal > blocks; --equal)
    if (rows % equal == 0) return equal;
  return blocks;
}

/// Returns why the rows are not cut: they are too few, or have too little work.
///
/// least: the rows of the smallest block. work_of_run: of all iterations, if that is too little.
std::string too_little(const RowCut& cut, std::int64_t least,
                       std::optional<std::int64_t> work_of_run) {
  if (cut.dim.size() < 2 * least)
    return str("the rows, ", cut.dim, ", are fewer than two blocks of ", least);
  if (work_of_run)
    return str("too little work: ", *work_of_run, " multiplications in all iterations, or ",
               "elements that take as long; ", kWorkOfRun, " pay for row blocks");
  return str("too little work: ", cut.work_of_row, " multiplications per row and iteration, or ",
             "elements that take as long; ", kRows * kWork, " pay for a row block");
}

}  // namespace

bool choose_row_blocks(RowCut& cut, const LoopAttrs& attrs, std::span<const TensorType> inputs,
                       const PlannedTypes& types, const RowAxes& axes, const Passes& passes,
                       std::string* why) {
  const Graph& body = *attrs.body.graph;
  const bool ends = attrs.has_entries();
  const std::int64_t rows = cut.dim.size();
  const std::int64_t work = work_of(body, types).all();
  cut.work_of_row = work / rows;
  bool by_work = !ends && !passes.block_rows && !shares_matrices(body, axes);
  if (by_work) {
    cut.blocks = blocks_of(rows, count_by_work(rows, work));
    by_work = rows_are_alike(attrs, cut, axes, types);
  }
  if (!by_work) cut.blocks = blocks_of(rows, count_by_rows(rows, work, ends, passes));
  // Bits must not depend on the number of iterations, since policies run some at a time.
  const bool orders_sums = std::ranges::count(cut.sums, RowCut::Sum::over_rows) > 0;
  const auto iterations = steps_of(attrs, inputs);
  const bool is_short = by_work && !orders_sums && iterations &&
                        work < kWorkOfRun / std::max<std::int64_t>(*iterations, 1);
  if (is_short) cut.blocks = {rows};
  if (cut.blocks.size() == 1 && !ends) {
    const std::int64_t least = passes.block_rows ? passes.block_rows : by_work ? 1 : kRows;
    if (why)
      *why = too_little(cut, least, is_short ? std::optional(work * *iterations) : std::nullopt);
    return false;
  }
  cut.can_join = cut.blocks.size() > 1 && can_be_joined(attrs, cut, axes, types);
  return true;
}

}  // namespace reel
