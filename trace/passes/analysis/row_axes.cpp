#include "reel/trace/passes/analysis/row_axes.h"

#include <algorithm>
#include <utility>

#include "reel/core/dims/dim_env.h"
#include "reel/core/graph/record_call.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/control/graphs_of_record.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/known_dims.h"
#include "reel/core/ops/shape/lengths_read.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/dim_expression.h"

namespace reel {

std::optional<Dim> dim_of_rows(const LoopAttrs& attrs, std::span<const TensorType> carries) {
  if (attrs.has_entries()) return attrs.entries.dims[0];
  for (const TensorType& carry : carries)
    if (carry.rank() > 0) return carry.dims()[0];
  return std::nullopt;
}

bool has_lengths_over(const TensorType& type, const Dim& dim) {
  return dim.is_named() &&
         std::any_of(type.dims().begin(), type.dims().end(),
                     [&](const Dim& axis) { return contains(axis.length_dims(), dim); });
}

bool has_lengths_of_absent(const TensorType& type, const Dim& dim) {
  return dim.is_named() && std::ranges::any_of(type.dims(), [&](const Dim& axis) {
           const auto is_absent = [&](const Dim& of) { return !contains(type.dims(), of); };
           return contains(axis.length_dims(), dim) &&
                  std::ranges::any_of(axis.length_dims(), is_absent);
         });
}

RowAxes::RowAxes(const Graph& graph, const Dim& rows, Joint joint)
    : graph_(graph),
      rows_(rows),
      joint_(rows.is_named() ? joint : Joint::mixed),
      axes_(graph.types.size(), kNone),
      is_joint_(graph.types.size(), 0),
      is_of_one_row_(graph.types.size(), 0),
      is_uniform_(graph.types.size(), 0),
      drawn_(graph.types.size(), nullptr) {}

bool RowAxes::has_kept_lengths(const TensorType& type) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [&](const Dim& dim) { return contains(type.dims(), dim); });
}

void RowAxes::follow() {
  const std::vector<int> seeds = axes_;
  follow_records();
  if (!first_mixing_ || rows_.is_named()) return;
  // The size of a plain axis does not identify it. Try again with rows in random draws, and keep
  // that result if nothing is mixed.
  const std::vector<int> found = std::exchange(axes_, seeds);
  const Op* const mixing = std::exchange(first_mixing_, nullptr);
  draws_have_rows_ = true;
  follow_records();
  if (!first_mixing_) return;
  axes_ = found;
  first_mixing_ = mixing;
}

void RowAxes::follow_records() {
  for (const OpRecord& record : graph_.records) {
    const auto in = graph_.inputs_of(record), out = graph_.outputs_of(record);
    if (record.op == &loop_op && joint_ == Joint::any_order) {
      follow_loop(record);
      continue;
    }
    const bool names_mixed = joint_ == Joint::any_order && names_mixed_dim(record);
    AxesOfOutputs axes;
    const auto is = [&](int kind) {
      return std::any_of(in.begin(), in.end(), [&](ValueId v) { return axes_[v] == kind; });
    };
    if (record.op->has_effect || has_effects(record) || is(kMixed) || is(kSummed) || names_mixed)
      axes.assign(out.size(), kMixed);
    else if (std::all_of(in.begin(), in.end(), [&](ValueId v) { return axes_[v] == kNone; }))
      axes.assign(out.size(), axis_made(record));
    else
      axes = axes_of(record);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const ValueId v = out[k];
      // A value that has the dim without being computed from rows may be anything, unless it is
      // uniform.
      const bool has_others = axes[k] == kNone && !is_uniform_[v] && rows_.is_named() &&
                              contains(type(v).dims(), rows_);
      // A dim with lengths of absent rows is as long as the longest row: whatever their order.
      const bool has_lengths = joint_ != Joint::any_order &&
                               (has_lengths_of_absent(type(v), rows_) || has_kept_lengths(type(v)));
      axes_[v] = (has_others || has_lengths) && record.op != &fused_op ? kMixed : axes[k];
      if (joint_ == Joint::any_order) axes_[v] = in_any_order(record, axes_[v]);
    }
    if (joint_ == Joint::any_order) note_mixed_dims(record);
    const Op* const mixing = first_mixing_;
    if (record.op == &fused_op && axes[0] != kMixed) follow_fused(record);
    const Op* const drawn = drawing_op(record);
    for (const ValueId v : out) drawn_[v] = axes_[v] == kNone ? drawn : nullptr;
    const bool is_mixed =
        std::any_of(out.begin(), out.end(), [&](ValueId v) { return axes_[v] == kMixed; });
    if (joint_ == Joint::rows) find_joint_rows(record);
    if (!is_mixed || mixing) continue;
    if (is(kSummed))
      first_mixing_ = summing_op(in);
    else if (drawn)
      first_mixing_ = drawn;
    else if (!first_mixing_)
      first_mixing_ = record.op;
  }
}

void RowAxes::find_joint_rows(const OpRecord& record) {
  const auto out = graph_.outputs_of(record);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const ValueId v = out[k];
    if (axes_[v] != kMixed || type(v).is_list() || has_lengths_over(type(v), rows_)) continue;
    const int axis = find(type(v).dims(), rows_);
    is_joint_[v] = axis >= 0;
    if (axis >= 0) axes_[v] = axis;
    is_of_one_row_[v] = axis >= 0 && axis == axis_beside_sums(record, k);
  }
}

/// Returns the axis of the rows if operands without the dim, to which several rows contributed,
/// counted as equal for all rows. They would if they came as slices. Returns kMixed if such an
/// operand has the dim.
int RowAxes::axis_beside_sums(const OpRecord& record, std::size_t output) {
  if (record.op->has_effect || has_effects(record)) return kMixed;
  const auto in = graph_.inputs_of(record);
  std::vector<std::pair<ValueId, int>> sums;
  bool has_rows = false;
  for (const ValueId v : in) {
    has_rows = has_rows || axes_[v] >= 0;
    if (axes_[v] != kMixed && axes_[v] != kSummed) continue;
    if (type(v).is_list() || has_lengths_over(type(v), rows_) || contains(type(v).dims(), rows_))
      return kMixed;
    sums.emplace_back(v, axes_[v]);
  }
  if (!has_rows) return kMixed;
  for (const auto& [v, axis] : sums) axes_[v] = kNone;
  const int result = axes_of(record)[output];
  for (const auto& [v, axis] : sums) axes_[v] = axis;
  return result;
}

/// Returns the op that drew a value as long as the rows, from which the record computes without
/// having rows. On plain axes such draws hide which axis counts rows.
const Op* RowAxes::drawing_op(const OpRecord& record) const {
  if (rows_.is_named()) return nullptr;
  if (const int axis = first_axis(record); axis >= 0 && draws_at(record, axis)) return record.op;
  for (const ValueId v : graph_.inputs_of(record))
    if (drawn_[v]) return drawn_[v];
  return nullptr;
}

/// Returns the op that made the sum over rows among the operands: it is the op that mixes rows.
const Op* RowAxes::summing_op(std::span<const ValueId> in) const {
  for (const OpRecord& record : graph_.records)
    for (const ValueId v : graph_.outputs_of(record))
      if (axes_[v] == kSummed && std::find(in.begin(), in.end(), v) != in.end()) return record.op;
  return nullptr;
}

namespace {

/// Returns true if the op runs a graph that mentions the dim, or lengths over it: the graph may
/// count, number or draw rows without a value that has them.
bool runs_graph_on(const OpRecord& record, const Dim& rows) {
  if (!runs_sub_graphs(*record.op)) return false;
  bool result = false;
  record.attrs->each_symbol([&](const Dim& dim) {
    for_each_symbol(dim, [&](const Dim& symbol) { result = result || symbol == rows; });
  });
  return result;
}

}  // namespace

/// Returns the axis of the first result with the dim of the rows; -1 if it has none.
int RowAxes::first_axis(const OpRecord& record) const {
  if (!record.output_count) return -1;
  const TensorType& made = type(graph_.outputs_of(record)[0]);
  return made.is_list() ? -1 : find(made.dims(), rows_);
}

/// Returns true if each row of the first result, which has them at `axis`, draws its own numbers.
bool RowAxes::draws_at(const OpRecord& record, int axis) const {
  const AxisFactors factors = axis_factors(*RecordCall(graph_, record));
  return factors.role(factors.out(0, axis)) == Role::drawn;
}

bool RowAxes::draws(const OpRecord& record) const {
  const int axis = first_axis(record);
  return axis >= 0 && axes_[graph_.outputs_of(record)[0]] >= 0 && draws_at(record, axis);
}

namespace {

/// Returns true if all elements of the first result are equal whatever the operands hold.
bool has_equal_elements(const AxisFactors& factors, const OpCall& call) {
  for (int axis = 0; axis < call.out[0].rank(); ++axis)
    if (factors.role(factors.out(0, axis)) != Role::repeated) return false;
  // A number that is repeated along the rows may come from a single row.
  return call.in.empty() || factors.axis_in(0, factors.out(0, 0)) == 0;
}

}  // namespace

/// Returns true if an op without rows in its operands gives the rows of operands that are equal
/// for all rows. factor: of the rows.
bool RowAxes::takes_equal_rows(const OpRecord& record, const AxisFactors& factors,
                               int factor) const {
  // Products choose their order of sums by the operands (axes_of), other ops read lengths.
  if (record.output_count > 1 || factors.has(Role::summed) || record.op->reads_lengths)
    return false;
  const auto in = graph_.inputs_of(record);
  bool result = false;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (factors.axis_in(i, factor) < 0) continue;
    if (!is_uniform_[in[i]]) return false;
    result = true;
  }
  return result;
}

/// Returns the axis of rows in the outputs of an op without rows in its operands: draws have rows,
/// and values that are repeated along the rows.
int RowAxes::axis_made(const OpRecord& record) {
  const auto out = graph_.outputs_of(record);
  if (runs_graph_on(record, rows_)) return kMixed;
  if (const auto dim = dim_read_by(*record.op, record.attrs.get()))  // row r has its own lengths
    return *dim == rows_ ? kMixed : find(type(out[0]).dims(), rows_);
  const int axis = first_axis(record);
  if (axis < 0) return kNone;
  const RecordCall call(graph_, record);
  const AxisFactors factors = axis_factors(*call);
  const int factor = factors.out(0, axis);
  const Role role = factors.role(factor);
  for (std::size_t i = 0; role == Role::drawn && i < record.input_count; ++i)
    if (factors.axis_in(i, factor) >= 0) return kNone;  // numbered rows, the same for all rows
  if (!rows_.is_named()) return draws_have_rows_ && role == Role::drawn && axis == 0 ? 0 : kNone;
  const bool is_any = joint_ == Joint::any_order;
  if (role == Role::drawn) return is_any ? kMixed : axis;  // number_draws.h skipped it
  if (role == Role::mapped) return takes_equal_rows(record, factors, factor) ? axis : kNone;
  if (role != Role::repeated) return kNone;
  is_uniform_[out[0]] = has_equal_elements(factors, *call);
  // Equal elements differ once they are padding, so rows in any order have their own.
  return is_any || !is_uniform_[out[0]] ? axis : kNone;
}

/// Returns the axes of rows in the outputs of an op with rows in some operands.
RowAxes::AxesOfOutputs RowAxes::axes_of(const OpRecord& record) const {
  const auto all = [&](int axis) { return AxesOfOutputs(record.output_count, axis); };
  if (record.op == &fused_op) return all(kNone);  // follow_fused() finds them
  if (joint_ == Joint::any_order && name_of_defined_dim(record))
    return all(kNone);  // rows' lengths
  const auto in = graph_.inputs_of(record);
  const RecordCall record_call(graph_, record);
  const OpCall call = *record_call;
  const AxisFactors factors = axis_factors(call);
  int rows = AxisFactors::kWhole;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (axes_[in[i]] == kNone) continue;
    const int factor = axes_[in[i]] < 0 ? AxisFactors::kWhole : factors.in(i, axes_[in[i]]);
    if (factor == AxisFactors::kWhole || (rows != AxisFactors::kWhole && factor != rows))
      return all(kMixed);
    rows = factor;
  }
  // Rows meet rows, or operands that are equal along them. In a row block, equal elements along a
  // named dim are as many as its rows; products choose their order of sums by the operands.
  const bool stands_for_rows = rows_.is_named() && !factors.has(Role::summed);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (axes_[in[i]] != kNone || (stands_for_rows && is_uniform_[in[i]])) continue;
    const int axis = factors.axis_in(i, rows);
    if (axis >= 0 && (rows_.is_named() || dim_at(call.in[i], axis).raw_size() != 1))
      return all(kMixed);
  }
  const Role role = factors.role(rows);
  const bool is_any = joint_ == Joint::any_order;
  if (role == Role::summed || (role == Role::unordered && is_any)) return all(kSummed);
  // Lengths number the elements of a ragged draw, and dims of a row block have none.
  const bool has_numbers = role == Role::drawn && !is_any && call.out[0].is_ragged();
  if (role == Role::unordered || has_numbers) return all(kMixed);
  AxesOfOutputs result;
  for (std::size_t k = 0; k < call.out.size(); ++k) {
    const int axis = factors.axis_out(k, rows);
    result.push_back(axis < 0 ? kMixed : axis);
  }
  return result;
}

void RowAxes::follow_fused(const OpRecord& record) {
  const auto in = graph_.inputs_of(record), out = graph_.outputs_of(record);
  const Graph& body = *get<FusedAttrs>(record.attrs.get()).body.graph;
  RowAxes inside(body, rows_);
  inside.kept_ = kept_;
  for (std::size_t i = 0; i < in.size(); ++i) {
    inside.seed(body.inputs[i], axes_[in[i]]);
    inside.is_uniform_[body.inputs[i]] = is_uniform_[in[i]];
  }
  inside.follow();
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (axes_[out[k]] == kMixed) continue;
    axes_[out[k]] = inside[body.outputs[k]];
    // A fused op adds up its sums in one piece, not by row blocks.
    if (axes_[out[k]] == kSummed) {
      axes_[out[k]] = kMixed;
      if (!first_mixing_) first_mixing_ = inside.summing_op({&body.outputs[k], 1});
    }
    if (axes_[out[k]] == kMixed && !first_mixing_) first_mixing_ = inside.first_mixing_;
  }
}

Dim entry_dim(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const TensorType* const lengths = operands_of(attrs, inputs).lengths;
  return lengths ? lengths->dims()[0] : attrs.entries.dims[0];
}

namespace {

/// Returns true for a dim that is among `dims` or computed from any of them.
bool is_made_of(const Dim& dim, const Dims& dims) {
  if (contains(dims, dim)) return true;
  const DimExpression* const expression = expression_of(dim);
  return expression && std::any_of(expression->operands.begin(), expression->operands.end(),
                                   [&](const Dim& of) { return is_made_of(of, dims); });
}

/// Returns the dims of the body that finished entries read unchanged (FinishedEntries): dims of
/// array elements in the state, and dims that iterations change.
Dims kept_dims(const LoopAttrs& attrs, DimEnv& env) {
  const Dims changing = changing_dims(attrs);
  Dims result;
  for (const TensorType& type : attrs.body.graph->types)
    for (const Dim& dim : type.dims())
      if (!contains(result, dim) &&
          (is_made_of(dim, changing) || is_made_of(dim, attrs.entries.kept_dims) ||
           (env.knows(dim) && is_made_of(env.resolve(dim), attrs.entries.kept_dims))))
        result.push_back(dim);
  return result;
}

}  // namespace

RowAxes entry_rows(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  const Dim entry = entry_dim(attrs, inputs);
  DimEnv env = body_env(attrs, inputs);
  // A ragged dim over the entries belongs to the rows of a value that has them.
  const auto kind = [](const TensorType& type, const Dim& rows) {
    const int axis = find(type.dims(), rows);
    return type.is_list() || has_lengths_of_absent(type, rows) ? RowAxes::kMixed : axis;
  };
  const auto axis_in = [&](ValueId v) { return kind(env.resolve(body.types[v]), entry); };
  Dim rows = entry;
  for (const ValueId v : body.inputs)
    if (const int axis = axis_in(v); axis >= 0)
      rows = body.types[v].dims()[static_cast<std::size_t>(axis)];
  RowAxes result(body, rows, RowAxes::Joint::rows);
  const Dims kept = kept_dims(attrs, env);
  for (const Dim& dim : kept)
    if (contains(dim.length_dims(), rows)) result.keep_lengths(dim);
  for (const ValueId v : body.inputs) {
    const bool is_mixed =
        kind(body.types[v], rows) == RowAxes::kMixed || result.has_kept_lengths(body.types[v]);
    result.seed(v, is_mixed ? RowAxes::kMixed : axis_in(v));
  }
  result.follow();
  return result;
}

}  // namespace reel
