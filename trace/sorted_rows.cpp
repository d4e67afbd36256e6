#include "reel/trace/sorted_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/runtime/memory.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/explain/plan_view.h"
#include "reel/trace/executors/plan/loop/row_cut.h"
#include "reel/trace/passes/analysis/row_axes.h"
#include "reel/trace/passes/loop_structure/number_draws.h"
#include "reel/trace/passes/residuals/relax_finished_residuals.h"

namespace reel {
namespace {

using RowNumbers = std::vector<std::int64_t>;

/// Fewer rows run as one block, or copy little.
constexpr std::int64_t kFewRows = 8;

/// Which of two tensors has its rows in the order of the call.
enum class Given { from, to };

/// Copies the rows of a tensor to another order, on several threads. axis: of the rows.
void copy_rows(char* to, const Tensor& from, int axis, const RowNumbers& rows, Given given) {
  const std::vector<std::int64_t>& sizes = from.type().sizes();
  const auto at = sizes.begin() + axis;
  const std::int64_t count = *at, before = std::accumulate(sizes.begin(), at, std::int64_t{1},
                                                           std::multiplies<std::int64_t>());
  if (from.type().numel() == 0) return;
  const std::int64_t bytes = from.type().bytes() / (before * count);
  const char* const source = from.data<char>();
  const auto copy = [&](std::int64_t first, std::int64_t some) {
    for (std::int64_t k = first; k < first + some; ++k) {
      const std::int64_t sorted = k,
                         own = k / count * count + rows[static_cast<std::size_t>(k % count)];
      std::memcpy(to + (given == Given::from ? sorted : own) * bytes,
                  source + (given == Given::from ? own : sorted) * bytes,
                  static_cast<std::size_t>(bytes));
    }
  };
  constexpr std::int64_t kBytes = 4;  // copied in a quarter of a nanosecond
  parallel_ranges(before * count, from.type().bytes() / kBytes, copy);
}

/// Returns a tensor with row rows[r] of x as row r.
Tensor take_rows(const Tensor& x, const TensorType& type, int axis, const RowNumbers& rows) {
  Tensor result(allocate_block(type));
  if (axis < 0)
    copy_elements(result.data<void>(), x);
  else
    copy_rows(result.data<char>(), x, axis, rows, Given::from);
  return result;
}

/// Adds the change of a ragged dim to one with sorted rows, behind the changes of the dims that it
/// is computed from and that its lengths run over. Returns false if one of them is a slice: it is
/// found by its dim, and a sorted copy would not be a slice of that.
bool sort_dim(const Dim& dim, const Dim& rows_dim, SortedRows::Order& order) {
  if (dim == rows_dim || !depends_on_rows(dim, rows_dim)) return true;
  if (whole_of(dim)) return false;
  const auto is_sorted = [&](const Dim& of) { return sort_dim(of, rows_dim, order); };
  if (const DimExpression* expression = expression_of(dim);
      expression && !std::ranges::all_of(expression->operands, is_sorted))
    return false;
  if (order.sorted.affects(dim)) return true;
  if (!std::ranges::all_of(dim.length_dims(), is_sorted)) return false;
  const Tensor lengths = dim.lengths();
  const TensorType type = lengths.type().with(order.sorted(dim.length_dims()));
  const Dim to(dim.name(), take_rows(lengths, type, find(dim.length_dims(), rows_dim), order.rows));
  order.sorted.add(dim, to);
  order.back.add(to, dim);
  return true;
}

}  // namespace

SortedRows::RowsOfGraph SortedRows::rows_of(const Graph& graph, const Passes& passes) {
  const std::optional<Dim> rows = rows_of_loops(graph);
  if (!rows) return {};
  RowsOfGraph result;
  // numbers_of() finds the rows by a dim with lengths over them.
  const auto has_lengths = [&](ValueId v) { return has_lengths_over(graph.types[v], *rows); };
  const std::span formal(graph.inputs.data(), graph.formal_count);
  if (std::ranges::any_of(formal, has_lengths)) result.numbered = number_draws(graph, *rows);
  // Relaxed, residuals of finished rows that were made of cotangents are known to be zero.
  const Ref<Graph> relaxed = relax_finished_residuals(result.numbered ? *result.numbered : graph);
  result.order = find_row_order(*relaxed, passes.block_rows > 0);
  if (result.order) return result;
  result.kept_by = op_on_order_of_rows(*relaxed);
  result.numbered = nullptr;
  return result;
}

SortedRows::SortedRows(const Graph& graph, const std::vector<int>& captures, RowsOfGraph rows,
                       const Passes& passes)
    : order_(std::move(rows.order)),
      kept_by_(rows.kept_by),
      least_rows_(passes.block_rows ? 2 : kFewRows) {
  if (!order_) return;
  std::vector<ValueId> inputs(
      graph.inputs.begin(), graph.inputs.begin() + static_cast<std::ptrdiff_t>(graph.formal_count));
  std::vector<int> axes(order_->inputs.begin(),
                        order_->inputs.begin() + static_cast<std::ptrdiff_t>(graph.formal_count));
  for (const int i : captures) {
    const std::size_t at = graph.formal_count + static_cast<std::size_t>(i);
    inputs.push_back(graph.inputs[at]);
    axes.push_back(order_->inputs[at]);
  }
  order_->inputs = axes;
  const auto place_of = [&](const Dim& dim) -> std::optional<Place> {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (const int axis = find(graph.types[inputs[i]].dims(), dim); axis >= 0)
        return Place{i, static_cast<std::size_t>(axis)};
    return std::nullopt;
  };
  Dims seen;
  for (const ValueId v : inputs)
    for (const Dim& dim : graph.types[v].dims()) {
      if (dim == order_->rows || !depends_on_rows(dim, order_->rows) || contains(seen, dim))
        continue;
      seen.push_back(dim);
      ragged_.push_back(*place_of(dim));
      if (place_of_rows_ >= 0) continue;
      over_rows_ = ragged_.back();
      place_of_rows_ = find(dim.length_dims(), order_->rows);
    }
  for (const RowOrder::Lengths& lengths : order_->lengths) {
    const auto place = place_of(lengths.dim);
    if (!place) {
      order_.reset();
      return;
    }
    lengths_.push_back(*place);
  }
}

Tensors SortedRows::numbers_of(const Tensors& formal) const {
  const Dims over = dim_at(over_rows_, formal).length_dims();
  const Dim& rows = over[static_cast<std::size_t>(place_of_rows_)];
  return {range(rows, i64), scalar(rows.size(), i64)};
}

std::shared_ptr<const SortedRows::Order> SortedRows::order_of(const Tensors& inputs) {
  if (!order_) return nullptr;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (order_->inputs[i] >= 0 && residual_value(inputs[i])) return nullptr;
  Dims given;
  given.reserve(ragged_.size());
  for (const Place& place : ragged_) given.push_back(dim_at(place, inputs));
  const std::lock_guard lock(mutex_);
  if (given != last_dims_) {
    last_ = make_order(inputs, given);
    last_dims_ = std::move(given);
  }
  return last_;
}

std::shared_ptr<const SortedRows::Order> SortedRows::make_order(const Tensors& inputs,
                                                                const Dims& given) const {
  std::vector<RowNumbers> lengths;  // by order_->lengths
  for (const Place& place : lengths_) {
    const Tensor of_rows = dim_at(place, inputs).lengths();
    const auto* const first = of_rows.data<std::int32_t>();
    lengths.emplace_back(first, first + of_rows.numel());
  }
  if (std::ssize(lengths[0]) < least_rows_) return nullptr;
  // The order in which most values of loops are read in place.
  const auto in_place = [&](const RowNumbers& rows) {
    int leaves = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      RowNumbers in_order;
      for (const std::int64_t row : rows)
        in_order.push_back(lengths[i][static_cast<std::size_t>(row)]);
      if (fall_or_rise(in_order)) leaves += order_->lengths[i].leaves;
    }
    return leaves;
  };
  RowNumbers rows(lengths[0].size());
  std::iota(rows.begin(), rows.end(), 0);
  const Dim* by = nullptr;
  int most = in_place(rows);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    RowNumbers sorted = longest_first(lengths[i]);
    if (const int leaves = in_place(sorted); leaves > most) {
      most = leaves;
      rows = std::move(sorted);
      by = &dim_at(lengths_[i], inputs);
    }
  }
  if (!by) return nullptr;
  const Dim rows_dim = by->length_dims()[0];
  auto result = std::make_shared<Order>();
  result->rows = std::move(rows);
  for (const Dim& dim : given)
    if (!sort_dim(dim, rows_dim, *result)) return nullptr;
  result->text = str("rows: of ", rows_dim, ", sorted by the lengths of ", by->name(),
                     " for the call, as other orders copy them in each iteration");
  return result;
}

namespace {

/// Returns true if the loop inside a loop over chunks runs until each row ends.
bool has_lengths_in_chunks(const LoopAttrs& attrs) {
  return std::ranges::any_of(attrs.body.graph->records, [](const OpRecord& record) {
    return record.op == &loop_op && get<LoopAttrs>(record.attrs.get()).trips.has_lengths;
  });
}

bool shrinks(const Plan& plan) {
  for (const PlanView::Instruction& at : PlanView::instructions(plan)) {
    const OpRecord& record = plan.graph().records[at.record];
    if (record.op != &loop_op) continue;
    const LoopAttrs& attrs = PlanView::attrs_of(plan, at);
    // Whether a loop inside can be cut is known when it runs.
    if (attrs.chunking.over_chunks && has_lengths_in_chunks(attrs)) return true;
    // No output of known type depends on a loop of unknown types. It may run for its checks alone.
    if (!attrs.has_entries() || !PlanView::types(plan).has_types[at.record]) continue;
    const auto cut = find_row_cut(attrs, PlanView::types(plan, plan.graph().inputs_of(record)),
                                  PlanView::context(plan).passes);
    if (cut && cut->can_join) return true;
  }
  return false;
}

}  // namespace

bool SortedRows::suits(const Plan& plan) {
  for (std::size_t k = 0; k < plan.graph().outputs.size(); ++k)
    if (!plan.output_is_known(k)) return false;
  return shrinks(plan);
}

std::string SortedRows::text() const {
  if (!kept_by_) return {};
  return str(
      "rows: keep their places, as ", kept_by_->name,
      " depends on their order; each iteration copies rows, unless they come in the order of "
      "their lengths");
}

bool RowsOfCall::sort(Tensors& inputs) {
  order_ = all_.order_of(inputs);
  if (!order_) return false;
  given_.reserve(inputs.size());  // keeps inputs if a later allocation fails
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int axis = all_.order_->inputs[i];
    const TensorType type = order_->sorted(inputs[i].type());
    if (axis < 0 && type == inputs[i].type()) continue;
    Tensor sorted = take_rows(inputs[i], type, axis, order_->rows);
    given_.emplace_back(i, std::exchange(inputs[i], std::move(sorted)));
  }
  return true;
}

void RowsOfCall::restore(Tensors& to, std::size_t count) {
  for (auto& [i, tensor] : given_)
    if (i < count) to[i] = std::move(tensor);
  given_.clear();
  order_.reset();
}

void RowsOfCall::mark_copies(std::vector<std::uint8_t>& by_input) const {
  for (const auto& [i, tensor] : given_)
    if (i < by_input.size()) by_input[i] = 1;
}

void RowsOfCall::make_outputs(const Plan& plan) {
  if (!order_) return;
  const Graph& graph = plan.graph();
  outputs_.resize(graph.outputs.size());
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const bool has_rows = all_.order_->outputs[k] >= 0;
    const TensorType& made = plan.output_type(k);
    const TensorType type = order_->back(made);
    if (has_rows || !(type == made)) outputs_[k] = Tensor(allocate_block(type));
  }
}

Tensor RowsOfCall::put_back(std::size_t k, Tensor made) {
  if (!order_ || !outputs_[k].is_defined()) return made;
  const int axis = all_.order_->outputs[k];
  Tensor result = std::move(outputs_[k]);
  if (axis < 0)
    copy_elements(result.data<void>(), made);
  else
    copy_rows(result.data<char>(), made, axis, order_->rows, Given::to);
  return result;
}

}  // namespace reel
