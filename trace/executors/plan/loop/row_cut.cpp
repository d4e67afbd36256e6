#include "reel/trace/executors/plan/loop/row_cut.h"

#include <algorithm>
#include <numeric>

#include "reel/core/base/str.h"
#include "reel/core/graph/record_call.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/executors/plan/loop/loop_work.h"
#include "reel/trace/passes/analysis/row_axes.h"

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

/// Returns an op that fails for values of some operand with rows, which rows of finished entries
/// may have; null if none.
const Op* failing_op(const Graph& body, const RowAxes& axes) {
  for (const OpRecord& record : body.records) {
    const auto in = body.inputs_of(record);
    const std::uint32_t checked = failures_of(*record.op, record.attrs.get()).values;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (axes[in[i]] >= 0 && (checked >> std::min<std::size_t>(i, 31) & 1)) return record.op;
  }
  return nullptr;
}

/// Returns an op on rows that reads lengths of ragged dims by itself; null if none. In a row block
/// these dims have no lengths.
const Op* length_reader(const Graph& body, const RowAxes& axes) {
  for (const OpRecord& record : body.records) {
    if (!record.op->reads_lengths) continue;
    const auto in = body.inputs_of(record);
    const RecordCall call(body, record);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (axes[in[i]] >= 0 && record.op->reads_lengths(*call, i, axes[in[i]])) return record.op;
  }
  return nullptr;
}

/// Adds the dims that have a length for each row to `ragged`. Returns false if there are dims that
/// depend on rows in another way.
bool find_ragged(const Dims& dims, const Dim& rows, Dims& ragged) {
  for (const Dim& dim : dims) {
    const Dims& of = dim.length_dims();
    if (contains(of, rows)) {
      if (!dim.has_size() || !(of[0] == rows)) return false;
      if (!contains(ragged, dim)) ragged.push_back(dim);
    } else if (std::any_of(of.begin(), of.end(),
                           [&](const Dim& other) { return contains(other.length_dims(), rows); })) {
      return false;
    }
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

/// Returns true if the sum is over leading axes.
bool adds_up_first_axes(const OpRecord& record) {
  if (record.op != &sum_op) return false;
  const std::vector<int>& axes = get<ReduceAttrs>(record.attrs.get()).axes;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int>(i)) return false;
  return !axes.empty();
}

}  // namespace

std::optional<RowCut> find_row_cut(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const Passes& passes, std::string* why) {
  const auto no = [&](const auto&... text) {
    if (why) *why = str(text...);
    return std::nullopt;
  };
  const Graph& body = *attrs.body.graph;
  const bool ends = attrs.has_entries();  // rows finish one by one
  if (attrs.chunking.over_chunks) return no("its chunks are cut instead");
  if (ends && !passes.shrink_batch) return no("the pass shrink_batch is disabled");
  if (!ends && !passes.cut_rows) return no("the pass cut_rows is disabled");
  if (!attrs.trips.is_full || attrs.cond || attrs.trips.makes_dim)
    return no("its trip count is unknown before it runs");
  if (attrs.entries.dims.size() > 1)
    return no("its entries finish one by one along several dims, ", join(attrs.entries.dims));
  if (attrs.trips.has_lengths != ends)
    return no("only the lengths of its entries bound its trip count");
  if (ends && !attrs.sums.empty()) return no("it sums over running and finished entries");
  const auto adds = [](const auto& leaf) { return leaf.adds_finished; };
  if (ends && (std::ranges::any_of(attrs.carries, adds) || std::ranges::any_of(attrs.stacks, adds)))
    return no("finished entries contribute to its results");
  if (attrs.carries.empty()) return no("it has no carries");
  const auto operands = operands_of(attrs, inputs);
  for (std::size_t i = 0; i < operands.carries.size(); ++i)
    if (operands.carries[i].is_list()) return no("carry ", i, " is a list");
  if (attrs.keeps_few_steps()) return no("its residuals are spilled, some iterations at a time");
  if (attrs.has_windows()) return no("its residuals are recomputed, some iterations at a time");
  const std::optional<Dim> rows = dim_of_rows(attrs, operands.carries);
  if (!rows) return no("its carries have no dims");
  if (rows->is_ragged()) return no("dim ", *rows, " is ragged");
  if (rows->size() < 2) return no("the rows, ", *rows, ", are fewer than two");

  RowCut cut{*rows, std::vector<std::uint8_t>(inputs.size()), {}, {}, {}};
  std::vector<TensorType> types{TensorType(i64)};
  std::vector<std::uint8_t> has_rows{0};  // by input of the body; the position has none
  Dim formal = *rows;
  static constexpr const char* kRowsLater = " does not begin with the rows, ";
  // Returns null if the input's rows, if any, are at the required axis; otherwise the reason.
  const auto mark = [&](LoopLeaf leaf, const TensorType& seen, bool may_have_rows) -> const char* {
    const std::size_t i = operand_number(attrs, leaf);
    if (inputs[i].is_list()) return " is a list, without the rows, ";
    if (has_lengths_over(seen, *rows) && !(ends && contains(seen.dims(), *rows)))
      return " has a dim with lengths over the rows, ";
    if (has_lengths_of_absent(seen, *rows))
      return " has a dim with lengths over dims that it lacks beside the rows, ";
    if (!find_ragged(seen.dims(), *rows, cut.ragged))
      return " has a dim whose lengths run over a ragged dim of the rows, ";
    const ValueId v = body.inputs[types.size()];
    types.push_back(seen);
    int axis = find(seen.dims(), *rows);
    if (!rows->is_named() && (!may_have_rows || axis != 0)) axis = -1;
    has_rows.push_back(axis >= 0);
    if (axis < 0) return nullptr;
    cut.has_rows[i] = 1;
    formal = body.types[v].dims()[static_cast<std::size_t>(axis)];
    return axis == 0 ? nullptr : kRowsLater;
  };
  for (std::size_t i = 0; i < operands.carries.size(); ++i)
    if (const TensorType& type = operands.carries[i];
        const char* wrong = mark({LeafKind::carry, i}, type, true))
      return no("carry ", i, ", ", type, ',', wrong, *rows);
  for (std::size_t i = 0; i < operands.slices.size(); ++i)
    if (const TensorType& type = operands.slices[i];
        const char* wrong = mark({LeafKind::slice, i}, slice_type(type), true))
      return no("a slice of ", type, wrong, *rows);
  for (const int capture : attrs.body_captures)
    if (const auto i = static_cast<std::size_t>(capture);
        const char* wrong = mark({LeafKind::capture, i}, operands.captures[i], false))
      return no("capture ", operands.captures[i], ',', wrong, *rows,
                wrong == kRowsLater ? "; transpose it before the loop" : "");

  if (std::ranges::count(has_rows, 1) == 0) return no("no input has the rows, ", *rows);
  RowAxes axes(body, formal);
  for (std::size_t i = 0; i < has_rows.size(); ++i)
    if (has_rows[i]) axes.seed(body.inputs[i], 0);
  axes.follow();
  if (const Op* op = axes.first_mixing()) return no("op ", op->name, " may mix the rows, ", *rows);
  if (const Op* op = ends ? failing_op(body, axes) : nullptr)
    return no("op ", op->name, " may fail for values of finished entries");
  Dims bound;
  for (const auto& [symbol, actual] : attrs.body.bindings) bound.push_back(actual);
  if (!find_ragged(bound, *rows, cut.ragged))
    return no("a dim of the body has lengths over a ragged dim of the rows, ", *rows);
  if (const Op* op = cut.ragged.empty() ? nullptr : length_reader(body, axes))
    return no("op ", op->name, " reads the lengths of ", join(cut.ragged));
  const auto formals = body_inputs(attrs);
  const auto made = body_outputs(attrs);
  for (std::size_t i = 0; i < attrs.carries.size(); ++i) {
    const int axis = axes[made.carries[i]];
    if (axis != axes[formals.carries[i]])
      return no("carry ", i, " returns its rows, ", *rows, ", along another axis");
    if (ends && axis == 0 && attrs.carries[i].fill == FinishedFill::as_is)
      return no("carry ", i, " changes after its entry has finished");
    if (ends && attrs.trips.is_reverse && axis != 0)
      return no("carry ", i, " has no rows, and starts at the end of the longest entry");
    cut.carry_has_rows.push_back(axis == 0);
  }
  for (std::size_t j = 0; j < attrs.stacks.size(); ++j) {
    const LoopStack& stack = attrs.stacks[j];
    if (stack.is_list || axes[made.stacks[j]] != 0)
      return no("the rows, ", *rows, ", are not the first dim of an element of stack ", j);
    if (ends && stack.is_raw() && !stack.finished_unread)
      return no("elements of finished entries in stack ", j, " are read");
  }
  for (std::size_t i = 0; i < attrs.sums.size(); ++i) {
    const ValueId term = made.sums[i];
    const int axis = axes[term];
    if (body.types[term].is_list() || axis > 0 || axis == RowAxes::kMixed)
      return no("sum ", i, " mixes the rows, ", *rows);
    cut.sums.push_back(axis == 0                  ? RowCut::Sum::has_rows
                       : axis == RowAxes::kSummed ? RowCut::Sum::over_rows
                                                  : RowCut::Sum::same);
  }
  for (ValueId v = 0; v < body.types.size(); ++v) cut.axes.push_back(axes[v]);
  const PlannedTypes planned = plan_types(body, types, attrs.body.env());
  const std::int64_t work = work_of(body, planned).all();
  cut.work_of_row = work / rows->size();
  bool by_work = !ends && !passes.block_rows && !shares_matrices(body, axes);
  if (by_work) {
    cut.blocks = blocks_of(rows->size(), count_by_work(rows->size(), work));
    by_work = rows_are_alike(attrs, cut, axes, planned);
  }
  if (!by_work)
    cut.blocks = blocks_of(rows->size(), count_by_rows(rows->size(), work, ends, passes));
  // Bits must not depend on the number of iterations, since policies run some at a time.
  const bool orders_sums = std::ranges::count(cut.sums, RowCut::Sum::over_rows) > 0;
  const auto iterations = steps_of(attrs, inputs);
  const bool is_short = by_work && !orders_sums && iterations &&
                        work < kWorkOfRun / std::max<std::int64_t>(*iterations, 1);
  if (is_short) cut.blocks = {rows->size()};
  if (cut.blocks.size() == 1 && !ends) {
    const std::int64_t least = passes.block_rows ? passes.block_rows : by_work ? 1 : kRows;
    if (rows->size() < 2 * least)
      return no("the rows, ", *rows, ", are fewer than two blocks of ", least);
    if (is_short)
      return no("too little work: ", work * *iterations, " multiplications in all iterations, or ",
                "elements that take as long; ", kWorkOfRun, " pay for row blocks");
    return no("too little work: ", cut.work_of_row, " multiplications per row and iteration, or ",
              "elements that take as long; ", kRows * kWork, " pay for a row block");
  }
  cut.can_join = cut.blocks.size() > 1 && can_be_joined(attrs, cut, axes, planned);
  return cut;
}

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

const OpRecord* summing_record(const LoopAttrs& attrs, std::size_t i) {
  const Graph& body = *attrs.body.graph;
  const ValueId sum = body_outputs(attrs).sums[i];
  if (std::count(body.outputs.begin(), body.outputs.end(), sum) > 1) return nullptr;
  const OpRecord* made = nullptr;
  for (const OpRecord& record : body.records) {
    const auto in = body.inputs_of(record);
    if (std::find(in.begin(), in.end(), sum) != in.end()) return nullptr;
    if (body.outputs_of(record)[0] == sum && adds_up_first_axes(record)) made = &record;
  }
  return made;
}

DimChanges RowCut::changes_to(const Dim& block_dim, const Dims& extents) const {
  DimChanges result;
  result.add(dim, block_dim);
  for (std::size_t i = 0; i < ragged.size(); ++i) result.add(ragged[i], extents[i]);
  return result;
}

LoopAttrs restrict_to_rows(const LoopAttrs& attrs, const DimChanges& changes) {
  LoopAttrs result = attrs;
  for (auto& [symbol, actual] : result.body.bindings) actual = changes(actual);
  result.entries = {};  // blocks handle finished entries themselves
  return result;
}

}  // namespace reel
