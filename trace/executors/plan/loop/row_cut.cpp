#include "reel/trace/executors/plan/loop/row_cut.h"

#include <algorithm>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/graph/record_call.h"
#include "reel/core/op/facts.h"
#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/executors/plan/loop/choose_row_blocks.h"
#include "reel/trace/executors/plan/loop/unfit_output.h"
#include "reel/trace/passes/analysis/row_axes.h"

namespace reel {
namespace {

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
bool try_add_ragged(const Dims& dims, const Dim& rows, Dims& ragged) {
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

/// Finds the cut of one loop, step by step. A step returns false, and sets the reason, if the loop
/// cannot be cut.
class RowCutFinder {
 public:
  RowCutFinder(const LoopAttrs& attrs, std::span<const TensorType> inputs, std::string* why)
      : attrs_(attrs),
        inputs_(inputs),
        operands_(operands_of(attrs, inputs)),
        why_(why),
        cut_{Dim(0), std::vector<std::uint8_t>(inputs.size()), {}, {}, {}} {}

  std::optional<RowCut> find(const Passes& passes) {
    if (!is_cut_by(passes) || !ends_alike() || !try_find_rows() || !try_mark_inputs())
      return std::nullopt;
    RowAxes axes(body_, formal_);
    for (std::size_t i = 0; i < has_rows_.size(); ++i)
      if (has_rows_[i]) axes.seed(body_.inputs[i], 0);
    axes.follow();
    if (!try_keep_rows_apart(axes) || !try_keep_carries(axes) || !try_keep_results(axes))
      return std::nullopt;
    for (ValueId v = 0; v < body_.types.size(); ++v) cut_.axes.push_back(axes[v]);
    const PlannedTypes planned = plan_types(body_, types_, attrs_.body.env());
    cut_.keeps_types = keeps_types(planned);
    for (const ValueId v : body_.outputs) cut_.outputs.push_back(planned.types[v]);
    if (!choose_row_blocks(cut_, attrs_, inputs_, planned, axes, passes, why_)) return std::nullopt;
    return std::move(cut_);
  }

 private:
  template <class... Text>
  bool no(const Text&... text) const {
    if (why_) *why_ = str(text...);
    return false;
  }

  bool is_cut_by(const Passes& passes) const {
    if (attrs_.chunking.over_chunks) return no("its chunks are cut instead");
    if (ends_ && !passes.shrink_batch) return no("the pass shrink_batch is disabled");
    if (!ends_ && !passes.cut_rows) return no("the pass cut_rows is disabled");
    return true;
  }

  /// Returns true if only lengths of rows end the loop, and finished rows leave its results alone.
  bool ends_alike() const {
    if (!attrs_.trips.is_full || attrs_.cond || attrs_.trips.makes_dim)
      return no("its trip count is unknown before it runs");
    if (attrs_.entries.dims.size() > 1)
      return no("its entries finish one by one along several dims, ", join(attrs_.entries.dims));
    if (attrs_.trips.has_lengths != ends_)
      return no("only the lengths of its entries bound its trip count");
    if (ends_ && !attrs_.sums.empty()) return no("it sums over running and finished entries");
    const auto adds = [](const auto& leaf) { return leaf.adds_finished; };
    if (ends_ &&
        (std::ranges::any_of(attrs_.carries, adds) || std::ranges::any_of(attrs_.stacks, adds)))
      return no("finished entries contribute to its results");
    return true;
  }

  bool try_find_rows() {
    if (attrs_.carries.empty()) return no("it has no carries");
    for (std::size_t i = 0; i < operands_.carries.size(); ++i)
      if (operands_.carries[i].is_list()) return no("carry ", i, " is a list");
    if (attrs_.keeps_few_steps()) return no("its residuals are spilled, some iterations at a time");
    if (attrs_.has_windows()) return no("its residuals are recomputed, some iterations at a time");
    const std::optional<Dim> rows = dim_of_rows(attrs_, operands_.carries);
    if (!rows) return no("its carries have no dims");
    if (rows->is_ragged()) return no("dim ", *rows, " is ragged");
    if (rows->size() < 2) return no("the rows, ", *rows, ", are fewer than two");
    cut_.dim = formal_ = *rows;
    return true;
  }

  /// Marks the inputs that have rows, which must be their first axis.
  bool try_mark_inputs() {
    const Dim& rows = cut_.dim;
    for (std::size_t i = 0; i < operands_.carries.size(); ++i)
      if (const TensorType& type = operands_.carries[i];
          const char* wrong = mark({LeafKind::carry, i}, type, true))
        return no("carry ", i, ", ", type, ',', wrong, rows);
    for (std::size_t i = 0; i < operands_.slices.size(); ++i)
      if (const TensorType& type = operands_.slices[i];
          const char* wrong = mark({LeafKind::slice, i}, slice_type(type), true))
        return no("a slice of ", type, wrong, rows);
    for (const int capture : attrs_.body_captures)
      if (const auto i = static_cast<std::size_t>(capture);
          const char* wrong = mark({LeafKind::capture, i}, operands_.captures[i], false))
        return no("capture ", operands_.captures[i], ',', wrong, rows,
                  wrong == kRowsLater ? "; transpose it before the loop" : "");
    if (std::ranges::count(has_rows_, 1) == 0) return no("no input has the rows, ", rows);
    return true;
  }

  /// Returns null if the input's rows, if any, are at the required axis; otherwise the reason.
  const char* mark(LoopLeaf leaf, const TensorType& seen, bool may_have_rows) {
    const Dim& rows = cut_.dim;
    const std::size_t i = operand_number(attrs_, leaf);
    if (inputs_[i].is_list()) return " is a list, without the rows, ";
    if (has_lengths_over(seen, rows) && !(ends_ && contains(seen.dims(), rows)))
      return " has a dim with lengths over the rows, ";
    if (has_lengths_of_absent(seen, rows))
      return " has a dim with lengths over dims that it lacks beside the rows, ";
    if (!try_add_ragged(seen.dims(), rows, cut_.ragged))
      return " has a dim whose lengths run over a ragged dim of the rows, ";
    const ValueId v = body_.inputs[types_.size()];
    types_.push_back(seen);
    int axis = reel::find(seen.dims(), rows);
    if (!rows.is_named() && (!may_have_rows || axis != 0)) axis = -1;
    has_rows_.push_back(axis >= 0);
    if (axis < 0) return nullptr;
    cut_.has_rows[i] = 1;
    formal_ = body_.types[v].dims()[static_cast<std::size_t>(axis)];
    return axis == 0 ? nullptr : kRowsLater;
  }

  /// Returns true if no op mixes rows, fails for finished ones, or reads their lengths.
  bool try_keep_rows_apart(const RowAxes& axes) {
    const Dim& rows = cut_.dim;
    if (const Op* op = axes.first_mixing()) return no("op ", op->name, " may mix the rows, ", rows);
    if (const Op* op = ends_ ? failing_op(body_, axes) : nullptr)
      return no("op ", op->name, " may fail for values of finished entries");
    Dims bound;
    for (const auto& [symbol, actual] : attrs_.body.bindings) bound.push_back(actual);
    if (!try_add_ragged(bound, rows, cut_.ragged))
      return no("a dim of the body has lengths over a ragged dim of the rows, ", rows);
    if (const Op* op = cut_.ragged.empty() ? nullptr : length_reader(body_, axes))
      return no("op ", op->name, " reads the lengths of ", join(cut_.ragged));
    return true;
  }

  /// Returns true if each carry keeps its rows where they are, and those of finished entries as
  /// they are.
  bool try_keep_carries(const RowAxes& axes) {
    const auto formals = body_inputs(attrs_);
    const auto made = body_outputs(attrs_);
    for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
      const int axis = axes[made.carries[i]];
      if (axis != axes[formals.carries[i]])
        return no("carry ", i, " returns its rows, ", cut_.dim, ", along another axis");
      if (ends_ && axis == 0 && attrs_.carries[i].fill == FinishedFill::as_is)
        return no("carry ", i, " changes after its entry has finished");
      if (ends_ && attrs_.trips.is_reverse && axis != 0)
        return no("carry ", i, " has no rows, and starts at the end of the longest entry");
      cut_.carry_has_rows.push_back(axis == 0);
    }
    return true;
  }

  /// Returns true if stacks have rows first, and sums do not mix them.
  bool try_keep_results(const RowAxes& axes) {
    const auto made = body_outputs(attrs_);
    for (std::size_t j = 0; j < attrs_.stacks.size(); ++j) {
      const LoopStack& stack = attrs_.stacks[j];
      if (stack.is_list || axes[made.stacks[j]] != 0)
        return no("the rows, ", cut_.dim, ", are not the first dim of an element of stack ", j);
      if (ends_ && stack.is_raw() && !stack.finished_unread)
        return no("elements of finished entries in stack ", j, " are read");
    }
    for (std::size_t i = 0; i < attrs_.sums.size(); ++i) {
      const ValueId term = made.sums[i];
      const int axis = axes[term];
      if (body_.types[term].is_list() || axis > 0 || axis == RowAxes::kMixed)
        return no("sum ", i, " mixes the rows, ", cut_.dim);
      cut_.sums.push_back(axis == 0                  ? RowCut::Sum::has_rows
                          : axis == RowAxes::kSummed ? RowCut::Sum::over_rows
                                                     : RowCut::Sum::same);
    }
    return true;
  }

  /// Returns true if the types of stacks and sums are known before a run, and carries keep theirs.
  bool keeps_types(const PlannedTypes& planned) const {
    return !first_unfit_output(
        attrs_, operands_.carries,
        [&](std::size_t k) { return planned.is_known[body_.outputs[k]] != 0; },
        [&](std::size_t k) -> const TensorType& { return planned.types[body_.outputs[k]]; });
  }

  static constexpr const char* kRowsLater = " does not begin with the rows, ";

  const LoopAttrs& attrs_;
  std::span<const TensorType> inputs_;
  LoopOperands<const TensorType> operands_;
  const Graph& body_ = *attrs_.body.graph;
  const bool ends_ = attrs_.has_entries();  // rows finish one by one
  std::string* why_;
  RowCut cut_;
  Dim formal_{0};                                   // the rows as the body's inputs have them
  std::vector<TensorType> types_{TensorType(i64)};  // of the body's inputs
  std::vector<std::uint8_t> has_rows_{0};           // by input of the body; the position has none
};

}  // namespace

std::optional<RowCut> find_row_cut(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                   const Passes& passes, std::string* why) {
  return RowCutFinder(attrs, inputs, why).find(passes);
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
