#include "reel/frontend/transforms/row_batch.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/custom_vjp_parts.h"
#include "reel/core/ops/control/graphs_of_record.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/loop/loop_types.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/element_order.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/known_dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/runtime/memory.h"
#include "reel/frontend/transforms/row_scan.h"
#include "reel/trace/passes/analysis/row_axes.h"
#include "reel/trace/passes/cleanup/drop_unread_lists.h"

namespace reel {

// ---- Forms of values ----------------------------------------------------------------------------

TensorType type_of_row(const RowValue& value) {
  const TensorType& type = value.value.type();
  if (!value.is_many) return type;
  return type.with(Dims(type.dims().begin() + 1, type.dims().end()));
}

namespace {

Dims behind(const Dim& rows, const Dims& row) {
  Dims dims{rows};
  dims.insert(dims.end(), row.begin(), row.end());
  return dims;
}

/// Returns the dim that stands in front of values with the dims `row` in one row.
Dim rows_for(const Rows& rows, const Dims& row) {
  return row.empty() || row[0].is_named() ? rows.named : plain_rows(rows);
}

Tensor with_rows(const Tensor& x, const Dim& rows) {
  return x.type().is_list() || x.dims()[0] == rows ? x : renamed(x, 0, rows);
}

}  // namespace

Dim plain_rows(const Rows& rows) {
  if (!rows.plain)
    throw RowsRefused(str("rows along ", rows.named,
                          ", whose number only a run knows, cannot stand in "
                          "front of plain sizes"));
  return *rows.plain;
}

Tensor as_many(const RowValue& value, const Rows& rows) {
  if (value.is_many)
    return value.value.type().is_list() ? value.value
                                        : from_named_form(value.value, type_of_row(value), rows);
  if (value.value.type().is_list()) throw RowsRefused("a TensorArray differs between rows");
  const Dims& row = value.value.dims();
  return expand(value.value, behind(rows_for(rows, row), row));
}

Dims names_for(const Dims& plain) {
  Dims names;
  for (const Dim& dim : plain) {
    if (!dim.has_size()) throw RowsRefused("a plain size is known only during a run");
    names.emplace_back("axis", dim.size());
  }
  return names;
}

Tensor in_named_form(const Tensor& x, const Rows& rows) {
  if (x.type().is_list() || x.type().is_named()) return with_rows(x, rows.named);
  if (x.rank() == 1) return renamed(x, 0, rows.named);
  return reshape(x, behind(rows.named, names_for(Dims(x.dims().begin() + 1, x.dims().end()))));
}

Tensor from_named_form(const Tensor& x, const TensorType& row, const Rows& rows) {
  if (x.type().is_list()) return x;
  const Dims dims = behind(rows_for(rows, row.dims()), row.dims());
  if (x.dims() == dims) return x;
  // The number of packed rows, which only a run knows, is inferred by reshape.
  const auto is_unknown = [](const Dim& dim) { return !dim.is_named() && !dim.has_size(); };
  if (std::ranges::any_of(row.dims(), is_unknown))
    throw RowsRefused("axes would be moved around a plain size that only a run knows");
  return x.rank() == 1 ? renamed(x, 0, dims[0]) : reshape(x, dims);
}

Tensor mask_for(const Tensor& mask, const Tensor& x) {
  if (x.rank() == 1) return with_rows(mask, x.dims()[0]);
  if (x.type().is_named()) return with_rows(mask, x.dims()[0]);
  Dims dims(static_cast<std::size_t>(x.rank()), Dim(1));
  dims[0] = x.dims()[0];
  return reshape(with_rows(mask, dims[0]), dims);
}

bool runs_over(const TensorType& type, const Dim& rows) {
  return std::any_of(type.dims().begin(), type.dims().end(),
                     [&](const Dim& dim) { return runs_over(dim, rows); });
}

// ---- RowBatch -----------------------------------------------------------------------------------

RowBatch::RowBatch(const GraphRef& graph, const Rows& rows, DimEnv env)
    : held_(drop_unread_lists(graph)), graph_(*held_), rows_(rows), env_(std::move(env)) {}
RowBatch::RowBatch(const SubGraph& graph, const Rows& rows) : RowBatch(graph.graph, rows, {}) {
  for (const auto& [symbol, dim] : graph.bindings) bind_dim(symbol, canonical(dim));
}

bool RowBatch::knows(const TensorType& type) const {
  bool result = true;
  for_each_symbol(type, [&](const Dim& symbol) {
    result = result && (symbol.has_size() || env_.knows(symbol));
  });
  return result;
}

AttrsRef RowBatch::attrs_of(const OpRecord& record) {
  const auto r = static_cast<std::size_t>(&record - graph_.records.data());
  return graph_.schedule().attrs_have_symbols[r] ? record.attrs->resolve(env_) : record.attrs;
}

void RowBatch::bind_row(const TensorType& row, const TensorType& actual) {
  env_.bind(row, actual, &rows_.named);
  if (!row.is_list())
    for_each_symbol(row, [&](const Dim& symbol) { of_tensors_.insert(symbol.node()); });
}
void RowBatch::bind_dim(const Dim& row, const Dim& actual) { env_.bind(row, actual, &rows_.named); }

std::optional<Dim> RowBatch::of_tensors(const Dim& dim) {
  bool result = true;
  for_each_symbol(dim, [&](const Dim& symbol) { result &= of_tensors_.contains(symbol.node()); });
  return result ? std::optional(env_.resolve(dim)) : std::nullopt;
}

RowValues RowBatch::run(RowValues inputs) {
  RowValues values(graph_.types.size());
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    const ValueId v = graph_.inputs[i];
    // The trace may have its own symbols for dims of a tensor from outside.
    inputs[i].value = thread_mode.builder->lift(inputs[i].value);
    bind_row(graph_.types[v], type_of_row(inputs[i]));
    values[v] = std::move(inputs[i]);
  }
  for (const OpRecord& record : graph_.records) {
    RowValues in;
    for (const ValueId v : graph_.inputs_of(record)) in.push_back(values[v]);
    const InheritProvenance scope(record);
    RowValues out = apply(record, in);
    const auto to = graph_.outputs_of(record);
    for (std::size_t k = 0; k < to.size(); ++k) {
      if (!out[k].value.is_defined()) continue;  // a result that no record reads
      bind_row(graph_.types[to[k]], type_of_row(out[k]));
      values[to[k]] = std::move(out[k]);
    }
  }
  RowValues outputs;
  for (const ValueId v : graph_.outputs) outputs.push_back(values[v]);
  return outputs;
}

namespace {

/// Returns how many dims of the type have lengths of rows.
std::ptrdiff_t dims_with_lengths(const TensorType& type, const Dim& rows) {
  return std::count_if(type.dims().begin(), type.dims().end(),
                       [&](const Dim& dim) { return runs_over(dim, rows); });
}

}  // namespace

/// True if a dim of the record's attributes has lengths of rows.
bool RowBatch::reads_lengths_of_rows(const OpRecord& record) {
  bool result = false;
  if (record.attrs)
    record.attrs->each_symbol([&](const Dim& symbol) {
      result = result || (env_.knows(symbol) && runs_over(env_.resolve(symbol), rows_.named));
    });
  return result;
}

/// Returns the token of a dim that a record makes. A slice of a dim remains one, also by its key: a
/// call outside with the same dims and numbers has the same Dim.
RowValue RowBatch::defined_dim(const OpRecord& record, const RowValue& lengths) {
  const Dim& symbol = graph_.types[graph_.outputs_of(record)[0]].dims()[1];
  if (lengths.is_many && env_.knows(symbol)) return {dim_token(env_.resolve(symbol))};
  const auto outside = [&](const Dim& dim) { return env_.knows(dim) ? env_.resolve(dim) : dim; };
  std::optional<Dim> whole = whole_of(symbol);
  SliceKey key;
  if (whole) {
    whole = outside(*whole);
    if (const std::optional<KnownSlice> slice = noted_slice(symbol))
      key = slice->key.with_dims(outside);
    if (const std::optional<Dim> known = known_slice(*whole, key)) return {dim_token(*known)};
  }
  const Tensor token =
      lengths.is_many
          ? dim_token(define_dim(*name_of_defined_dim(record), in_named_form(lengths.value, rows_)))
          : bind_all(*record.op, {lengths.value}, attrs_of(record))[0];
  if (whole) note_slice(token.dims()[1], *whole, *whole, key);
  return {token};
}

RowValues RowBatch::apply(const OpRecord& record, const RowValues& in) {
  if (name_of_defined_dim(record)) return {defined_dim(record, in[0])};
  const bool is_many =
      std::any_of(in.begin(), in.end(), [](const RowValue& value) { return value.is_many; }) ||
      (has_sub_graphs(*record.op) && reads_lengths_of_rows(record));
  if (!is_many) return apply_once(record, in);
  // Without the words, letters count as full: in one row up to its own longest word.
  if (!keeps_elements_apart(*record.op) && !record.op->returns_input)
    for (const RowValue& value : in)
      if (value.is_many && has_lengths_of_absent(value.value.type(), rows_.named))
        throw RowsRefused(str(record.op->name, " of an axis whose size differs between rows"));
  if (record.op == &loop_op) return one_loop_over_rows(attrs_of(record), in, *this, rows_);
  if (record.op == &cond_op) return cond_over_rows(attrs_of(record), in, rows_);
  if (record.op == &checkpointed_op) return checkpointed_over_rows(attrs_of(record), in, rows_);
  if (is_custom_vjp(*record.op)) return custom_vjp_over_rows(attrs_of(record), in, rows_);
  RowValues out;
  if (apply_own_rule(record, in, out) || apply_rule(record, in, out)) return out;
  return apply_in_loop(record, in);
}

/// Applies a record to values that are the same in all rows. A dim with a length for each row makes
/// the result differ between rows.
RowValues RowBatch::apply_once(const OpRecord& record, const RowValues& in) {
  Tensors tensors;
  for (const RowValue& value : in) tensors.push_back(value.value);
  RowValues out;
  for (Tensor& made : bind_all(*record.op, tensors, attrs_of(record))) {
    const TensorType& type = made.type();
    const bool is_token = type.rank() == 2 && type == token_type(type.dims()[1]);
    if (is_token || type.is_list()) {
      out.push_back({std::move(made)});
    } else if (const int axis = find(type.dims(), rows_.named); axis >= 0) {
      std::vector<int> order{axis};
      for (int i = 0; i < type.rank(); ++i)
        if (i != axis) order.push_back(i);
      out.push_back({transposed(made, order), true});
    } else if (runs_over(type, rows_.named)) {
      out.push_back({as_many({made}, rows_), true});
    } else {
      out.push_back({std::move(made)});
    }
  }
  return out;
}

/// Returns true if each result of one application to all rows has the type of rows side by side, or
/// of one row.
bool RowBatch::fits(const OpRecord& record, const Tensors& made) {
  const auto to = graph_.outputs_of(record);
  if (made.size() != to.size()) return false;
  for (std::size_t k = 0; k < to.size(); ++k) {
    const TensorType row = env_.resolve(graph_.types[to[k]]);
    if (made[k].type() == row) continue;  // all rows have it in common
    if (made[k].dtype() != row.dtype() || made[k].dims().empty()) return false;
    const Dim& front = made[k].dims()[0];
    const bool is_plain = row.rank() && !row.is_named();
    if (made[k].dims() != behind(front, row.dims()) || (is_plain && front.is_named())) return false;
  }
  return true;
}

/// Makes operands ready for all rows at once if their dims have lengths of rows. In one row such a
/// dim has one length and no padding. Returns false if only a loop knows the lengths.
bool RowBatch::hide_padding(const OpRecord& record, Tensors& operands,
                            const TensorType& result) const {
  if (padding_of(*record.op) == Padding::unread) return true;
  const bool is_apart = keeps_elements_apart(*record.op);
  for (Tensor& x : operands) {
    // rename to a dim with one size fits only rows of this size.
    const bool keeps_lengths =
        dims_with_lengths(x.type(), rows_.named) <= dims_with_lengths(result, rows_.named);
    if (!runs_over(x.type(), rows_.named) || (is_apart && keeps_lengths)) continue;
    const std::optional<NestedList> neutral = neutral_number(*record.op, x.dtype());
    if (!neutral) return false;
    x = mask_padding(x, *neutral);
  }
  return true;
}

namespace {

/// Returns true if results are named, and depend on operands with plain axes as a whole, as on the
/// key of a draw. Such operands may be beside named ones.
bool keeps_plain_operands_whole(const OpCall& call) {
  if (!call.op.axes) return false;
  for (const TensorType& out : call.out)
    if (out.rank() && !out.is_named()) return false;
  const AxisFactors factors = axis_factors(call);
  for (std::size_t i = 0; i < call.in.size(); ++i)
    for (int axis = 0; !call.in[i].is_named() && axis < call.in[i].rank(); ++axis)
      if (factors.in(i, axis) != AxisFactors::kWhole) return false;
  return true;
}

}  // namespace

bool RowBatch::apply_rule(const OpRecord& record, const RowValues& in, RowValues& out) {
  const IterationBatchingRule rule = iteration_batching_rule(*record.op);
  if (!rule) return false;
  std::vector<TensorType> step_in, step_out;
  for (const ValueId v : graph_.outputs_of(record)) {
    if (!knows(graph_.types[v]) || graph_.types[v].is_list()) return false;
    step_out.push_back(env_.resolve(graph_.types[v]));
  }
  bool is_named = false, is_plain = false;
  const auto look_at = [&](const TensorType& row) {
    if (row.rank()) (row.is_named() ? is_named : is_plain) = true;
  };
  for (const TensorType& row : step_out) look_at(row);
  for (const RowValue& value : in) look_at(step_in.emplace_back(type_of_row(value)));
  const AttrsRef attrs = attrs_of(record);
  const bool is_mixed = is_named && is_plain;
  if (is_mixed && keeps_elements(*record.op)) {
    if (!rows_.plain || runs_over(in[0].value.type(), rows_.named)) return false;
    out.push_back({from_named_form(in[0].value, step_out[0], rows_), true});
    return true;
  }
  if (is_mixed && !keeps_plain_operands_whole({*record.op, attrs.get(), step_in, step_out}))
    return false;
  const Dim rows = is_plain && !is_mixed ? plain_rows(rows_) : rows_.named;
  Tensors tensors;
  std::vector<std::uint8_t> is_many;
  for (const RowValue& value : in) {
    if (value.value.type().is_list()) return false;
    const Dim& front = is_mixed ? rows_for(rows_, type_of_row(value).dims()) : rows;
    tensors.push_back(value.is_many ? with_rows(value.value, front) : value.value);
    is_many.push_back(value.is_many);
  }
  if (!step_out.empty() && !hide_padding(record, tensors, step_out[0])) return false;
  try {
    const Tensors made = rule(IterationBatch{*record.op, attrs, tensors, is_many, step_out, rows,
                                             /*is_summed=*/false, /*is_vmap=*/true});
    if (!fits(record, made)) return false;
    for (std::size_t k = 0; k < made.size(); ++k)
      out.push_back({made[k], made[k].type() != step_out[k]});
    return true;
  } catch (const MemoryError&) {
    throw;
  } catch (const Error&) {  // attributes of one row need not fit all: a loop over the rows tells
    return false;
  }
}

/// Applies ops that return their operand.
bool RowBatch::apply_own_rule(const OpRecord& record, const RowValues& in, RowValues& out) {
  if (record.op->returns_input && in.size() == 1) {
    out.push_back({bind(*record.op, {in[0].value}, attrs_of(record)), true});
    return true;
  }
  return false;
}

/// Returns the dims of the graph for one row in the body of a loop over the rows.
DimEnv RowBatch::env_of_row(const OpRecord& record, const Tensors& in) {
  DimEnv result;
  const auto add = [&](const Dim& symbol) {
    // A static dim made in the function is one Dim inside and outside of the loop.
    if (!env_.knows(symbol) && !symbol.has_size()) return;
    const Dim dim = env_.resolve(symbol);
    if (!runs_over(dim, rows_.named)) result.bind(symbol, canonical(dim));
  };
  const auto formals = graph_.inputs_of(record);
  for (const ValueId v : formals) for_each_symbol(graph_.types[v], add);
  if (record.attrs) record.attrs->each_symbol(add);
  for (std::size_t i = 0; i < in.size(); ++i) result.bind(graph_.types[formals[i]], in[i].type());
  if (record.attrs)
    record.attrs->each_symbol([&](const Dim& symbol) {
      if (!symbol.has_size() && !result.knows(symbol))
        throw RowsRefused(str(record.op->name, " reads a dim with lengths of rows"));
    });
  return result;
}

RowValues RowBatch::apply_in_loop(const OpRecord& record, const RowValues& in) {
  const auto to = graph_.outputs_of(record);
  for (const RowValue& value : in)
    if (value.is_many && value.value.type().is_list())
      throw RowsRefused(str(record.op->name, " of TensorArrays"));
  for (const ValueId v : to)
    if (graph_.types[v].is_list() || !knows(graph_.types[v]))
      throw RowsRefused(str(record.op->name, " makes a value that a loop cannot stack"));
  std::vector<TensorType> types;
  for (const ValueId v : to) types.push_back(env_.resolve(graph_.types[v]));
  Tensors xs;
  for (const RowValue& value : in)
    if (value.is_many) xs.push_back(in_named_form(value.value, rows_));
  const auto of_row = [&](const Tensors& rows) {
    Tensors inputs;
    std::size_t next = 0;
    for (const RowValue& value : in) {
      if (!value.is_many) {
        inputs.push_back(value.value);
        continue;
      }
      const Tensor& row = rows[next++];
      const TensorType type = type_of_row(value);
      const bool is_plain = type.rank() && !type.is_named();
      inputs.push_back(is_plain ? reshape(row, type.dims()) : row);
    }
    DimEnv env = env_of_row(record, inputs);
    const AttrsRef attrs = record.attrs ? record.attrs->resolve(env) : record.attrs;
    Tensors results = bind_all(*record.op, inputs, attrs);
    for (Tensor& made : results)
      if (made.rank() && !made.type().is_named()) made = reshape(made, names_for(made.dims()));
    return results;
  };
  const Tensors stacks =
      map_rows(row_scan("vmap", std::string(record.op->name), rows_.named, xs), to.size(), of_row);
  RowValues out;
  for (std::size_t k = 0; k < to.size(); ++k)
    out.push_back({from_named_form(stacks[k], types[k], rows_), true});
  return out;
}

}  // namespace reel
