#include "reel/trace/executors/plan/loop/row_cut.h"

#include <algorithm>
#include <numeric>

#include "reel/core/base/str.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/creation/draw_checks.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/ops/products/packed.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/passes/analysis/row_axes.h"

namespace reel {
namespace {

/// A product of kManyRows rows is about as fast per row as larger ones. Half as many nearly are,
/// which pays if there would be one block otherwise. A quarter pays if rows of similar lengths are
/// to run together.
constexpr std::int64_t kManyRows = 16, kRows = kManyRows / 2, kRowsThatEnd = kManyRows / 4;
/// Multiplications per row and iteration from which on a block pays for its own pass over the body.
constexpr std::int64_t kWork = 16 * 1024;

/// Returns the multiplications of one iteration, without recomputed products: blocks must not
/// depend on the residuals that a policy keeps.
std::int64_t work_of(const Graph& body, const PlannedTypes& types) {
  std::int64_t work = 0;
  for (const OpRecord& record : body.records) {
    if ((record.op != &dot_op && !is_packed_dot(*record.op)) || record.recompute != Recompute::no)
      continue;
    const auto in = body.inputs_of(record);
    const TensorType& a = types.types[in[0]];
    std::int64_t inner = 1;
    for (const int axis : get<DotAttrs>(record.attrs.get()).a_contract)
      inner *= a.sizes()[static_cast<std::size_t>(axis)];
    work += types.types[body.outputs_of(record)[0]].numel() * inner;
  }
  return work;
}

bool is_reduction(const Op& op) {
  const auto all = reduction_ops();
  return std::find(all.begin(), all.end(), &op) != all.end();
}

/// Returns true if the bits of a row do not depend on the number of rows. Sums over rows are
/// allowed if they can be taken block by block.
bool can_be_joined(const LoopAttrs& attrs, const RowCut& cut, const RowAxes& axes,
                   const PlannedTypes& types) {
  const Graph& body = *attrs.body.graph;
  if (!attrs.has_entries() && cut.dim.size() % std::ssize(cut.blocks)) return false;
  for (const OpRecord& record : body.records) {
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    if (record.op == &loop_op || record.op == &cond_op) return false;
    if (is_reduction(*record.op) && axes[in[0]] > 0) return false;  // rows are adjacent elements
    const bool is_packed = is_packed_dot(*record.op);
    if ((record.op != &dot_op && !is_packed) || axes[out[0]] == RowAxes::kNone) continue;
    if (axes[in[0]] != 0 || axes[in[1]] != RowAxes::kNone) return false;
    const auto& dot = get<DotAttrs>(record.attrs.get());
    const TensorType &a = types.types[in[0]], &b = types.types[in[1]];
    const auto are_alike = [&](std::int64_t rows) {
      return is_packed ? packed_rows_are_alike(*record.op, dot, a, b, rows)
                       : dot_rows_are_alike(dot, a, b, rows);
    };
    std::int64_t together = 0;  // rows of this and of longer blocks
    for (const std::int64_t rows : cut.blocks) {
      together += rows;
      if (!are_alike(rows) || !are_alike(together)) return false;
    }
  }
  for (std::size_t i = 0; i < attrs.sums.size(); ++i) {
    if (cut.sums[i] != RowCut::Sum::over_rows) continue;
    const OpRecord* const record = summing_record(attrs, i);
    if (!record || axes[body.inputs_of(*record)[0]] != 0) return false;
  }
  return true;
}

/// Returns an op that throws for some indices, which rows of finished entries may have; null if
/// none.
const Op* failing_op(const Graph& body, const RowAxes& axes) {
  for (const OpRecord& record : body.records) {
    if (record.op == &checked_logits_op && axes[body.inputs_of(record)[0]] >= 0) return record.op;
    if (record.op != &gather_op && record.op != &gather_unknown_op && record.op != &scatter_add_op)
      continue;
    const IndexRule rule = get<GatherAttrs>(record.attrs.get()).rule;
    if (axes[body.inputs_of(record)[1]] >= 0 && rule != IndexRule::clip) return record.op;
  }
  return nullptr;
}

/// Returns the rows of each block: passes.block_rows, or enough to pay for a pass over the body.
/// work: multiplications of an iteration for all rows.
std::vector<std::int64_t> blocks_of(std::int64_t rows, std::int64_t work, bool ends,
                                    const Passes& passes) {
  const auto blocks_from = [&](std::int64_t least) {
    const std::int64_t worth = least * kWork / std::max<std::int64_t>(work / rows, 1);
    return std::max<std::int64_t>(rows / std::max(least, worth), 1);
  };
  const std::int64_t count =
      passes.block_rows ? std::max<std::int64_t>(rows / passes.block_rows, 1)
      : ends            ? blocks_from(kRowsThatEnd)
             : std::max(blocks_from(kManyRows), std::min<std::int64_t>(blocks_from(kRows), 2));
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = 0; i < count; ++i)
    blocks.push_back(rows * (i + 1) / count - rows * i / count);
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
  // Returns null if the input's rows, if any, are at the required axis; otherwise the reason.
  const auto mark = [&](LoopLeaf leaf, const TensorType& seen, bool may_have_rows) -> const char* {
    const std::size_t i = operand_number(attrs, leaf);
    if (inputs[i].is_list()) return " is a list, without the rows, ";
    if (has_lengths_over(seen, *rows)) return " has a dim with lengths over the rows, ";
    const ValueId v = body.inputs[types.size()];
    types.push_back(seen);
    int axis = find(seen.dims(), *rows);
    if (!rows->is_named() && (!may_have_rows || axis != 0)) axis = -1;
    has_rows.push_back(axis >= 0);
    if (axis < 0) return nullptr;
    cut.has_rows[i] = 1;
    formal = body.types[v].dims()[static_cast<std::size_t>(axis)];
    return axis == 0 ? nullptr : " does not begin with the rows, ";
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
      return no("capture ", operands.captures[i], ',', wrong, *rows);

  RowAxes axes(body, formal);
  for (std::size_t i = 0; i < has_rows.size(); ++i)
    if (has_rows[i]) axes.seed(body.inputs[i], 0);
  axes.follow();
  if (const Op* op = axes.first_mixing()) return no("op ", op->name, " may mix the rows, ", *rows);
  if (const Op* op = ends ? failing_op(body, axes) : nullptr)
    return no("op ", op->name, " may fail for values of finished entries");
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
  const std::int64_t work = work_of(body, planned);
  cut.blocks = blocks_of(rows->size(), work, ends, passes);
  if (cut.blocks.size() == 1 && !ends) {
    const std::int64_t least = passes.block_rows ? passes.block_rows : kRows;
    if (rows->size() < 2 * least)
      return no("the rows, ", *rows, ", are fewer than two blocks of ", least);
    return no("too little work: ", work / rows->size(), " multiplications per row and iteration, ",
              kRows * kWork, " pay for a row block");
  }
  cut.can_join = cut.blocks.size() > 1 && can_be_joined(attrs, cut, axes, planned);
  return cut;
}

std::vector<BlockOfRows> RowCut::rows_of_blocks(const LoopAttrs& attrs, OpInputs in) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(dim.size())), lengths;
  std::iota(order.begin(), order.end(), 0);
  if (attrs.has_entries()) {
    const Tensor& given = *operands_of(attrs, in).lengths->tensor;
    const Iterations iterations(attrs, in);
    for (const std::int64_t row : order)
      lengths.push_back(std::clamp<std::int64_t>(index_at(given, row) - iterations.step_at(0), 0,
                                                 iterations.limit));
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return lengths[a] > lengths[b]; });
  }
  std::vector<BlockOfRows> result;
  auto next = order.begin();
  for (const std::int64_t count : blocks) {
    BlockOfRows block{{next, next + count}, {}};
    next += count;
    std::sort(block.rows.begin(), block.rows.end());
    if (!lengths.empty())
      for (const std::int64_t row : block.rows) block.lengths.push_back(lengths[row]);
    result.push_back(std::move(block));
  }
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

LoopAttrs restrict_to_rows(const LoopAttrs& attrs, const Dim& whole, const Dim& part) {
  LoopAttrs result = attrs;
  for (auto& [symbol, actual] : result.body.bindings)
    if (actual == whole) actual = part;
  result.entries = {};  // blocks handle finished entries themselves
  return result;
}

}  // namespace reel
