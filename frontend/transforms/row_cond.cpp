// Conds, applied to all rows. A costly branch is computed for the rows that take it.
#include <algorithm>

#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/loop/entry_ops.h"
#include "reel/core/ops/loop/loop_types.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/runtime/memory.h"
#include "reel/frontend/loops/loop_recording.h"
#include "reel/frontend/transforms/branch_cost.h"
#include "reel/frontend/transforms/row_batch.h"
#include "reel/frontend/transforms/taken_rows.h"

namespace reel {
namespace {

/// Returns, by output, whether either branch makes it for many rows.
std::vector<std::uint8_t> either(std::vector<std::uint8_t> a, const std::vector<std::uint8_t>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] |= b[i];
  return a;
}

RowValues captures_of(const RowValues& in, const std::vector<int>& indices) {
  RowValues result;
  for (const int i : indices) result.push_back(in[1 + static_cast<std::size_t>(i)]);
  return result;
}

Tensors bind_cond(const Tensor& pred, const RecordedRows& yes, const RecordedRows& no,
                  bool is_guard) {
  CondAttrs attrs;
  attrs.is_guard = is_guard;
  CaptureList captures;
  attrs.true_captures = captures.add(yes.captured);
  attrs.false_captures = captures.add(no.captured);
  attrs.on_true = yes.graph;
  attrs.on_false = no.graph;
  Tensors inputs{pred};
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  return bind_all(cond_op, inputs, make_attrs(std::move(attrs)));
}

/// Both branches take the same captures. If one branch makes a result for each row, the other
/// branch then does so too.
RowValues cond_for_all(const CondAttrs& attrs, const RowValues& in, const Rows& rows) {
  const RowValues on_true = captures_of(in, attrs.true_captures),
                  on_false = captures_of(in, attrs.false_captures);
  const std::vector<std::uint8_t> are_many =
      either(record_for_rows(attrs.on_true, on_true, rows, {}).is_many,
             record_for_rows(attrs.on_false, on_false, rows, {}).is_many);
  const RecordedRows yes = record_for_rows(attrs.on_true, on_true, rows, are_many),
                     no = record_for_rows(attrs.on_false, on_false, rows, are_many);
  RowValues out;
  for (Tensor& made : bind_cond(in[0].value, yes, no, attrs.is_guard))
    out.push_back({std::move(made), are_many[out.size()] != 0});
  return out;
}

/// Returns x with the values of the first row for which the mask holds in the other rows.
/// plain_mask: receives the mask over plain rows. Values with plain axes take it as it is: names
/// for them would be records that every vmap around this one repeats.
RowValue filled(const RowValue& x, const Tensor& mask, Tensor& plain_mask, const Rows& rows) {
  if (!x.is_many) return x;
  if (x.value.type().is_list()) throw RowsRefused("a TensorArray in a branch that rows may take");
  const TensorType row = type_of_row(x);
  if (row.rank() && !row.is_named()) {
    if (!plain_mask.is_defined()) plain_mask = renamed(mask, 0, x.value.dims()[0]);
    return {fill_entries_in_front(x.value, plain_mask), true};
  }
  return {from_named_form(fill_running(in_named_form(x.value, rows), mask), row, rows), true};
}

/// Records a branch for all rows. Rows that do not take it read the values of a row that does.
RecordedRows branch_of_all(const SubGraph& branch, const RowValues& captures, const Tensor& mask,
                           const Rows& rows) {
  RowValues inputs;
  Tensor plain_mask;
  for (const RowValue& value : captures) inputs.push_back(filled(value, mask, plain_mask, rows));
  const std::vector<std::uint8_t> all(branch.graph->outputs.size(), 1);
  return record_for_rows(branch, inputs, rows, all);
}

/// Records a branch for the rows that take it. Its results have zeros in other rows. Throws
/// RowsRefused.
RecordedRows branch_of_taken(const SubGraph& branch, const RowValues& captures, const Tensor& mask,
                             const Rows& rows) {
  GraphBuilder builder(branch.graph->name, "vmap");
  ModeScope scope(builder.scope());
  const TakenRows taken(builder.lift(mask), rows);
  RowValues inputs;
  for (const RowValue& value : captures)
    inputs.push_back(taken.pack({builder.lift(value.value), value.is_many}));
  RowBatch batch(taken.pack(branch), taken.rows());
  RecordedRows result;
  Tensors outputs;
  for (const RowValue& value : batch.run(std::move(inputs))) {
    outputs.push_back(taken.unpack(value));
    result.types.push_back(outputs.back().type());
  }
  result.is_many.assign(outputs.size(), 1);
  result.graph = make_sub_graph(finish_part(builder, outputs));
  result.captured = builder.captured();
  for (const TensorType& type : result.types)
    for (const Dim& dim : type.dims())
      if (dim.is_named() && makes_dim(*result.graph.graph, dim))
        throw RowsRefused(str("the branch returns a dim of its taken rows, ", dim));
  return result;
}

RecordedRows record_branch(const SubGraph& branch, const RowValues& captures, const Tensor& mask,
                           const Rows& rows) {
  if (computes_taken_rows(branch, captures, rows)) try {
      return branch_of_taken(branch, captures, mask, rows);
    } catch (const MemoryError&) {
      throw;
    } catch (const Error&) {
      // Packed already, rows are refused once for all conds around this one: each further attempt
      // would double the time of recording.
      if (rows.are_taken) throw;
    }
  return branch_of_all(branch, captures, mask, rows);
}

/// Returns the results of a branch for the rows of the mask; zeros if there are none. The zeros
/// keep rows that compute nothing from adding NaN to a gradient.
Tensors branch_for_rows(const SubGraph& branch, const RowValues& captures, const Tensor& mask,
                        const Rows& rows) {
  // A branch of constants, such as the zeros below under another vmap, needs no cond.
  if (captures.empty() && !has_loops(*branch.graph) && !has_effects(*branch.graph)) {
    Tensors outputs;
    RowBatch batch(branch, rows);
    for (const RowValue& value : batch.run(captures)) outputs.push_back(as_many(value, rows));
    return outputs;
  }
  const RecordedRows taken = record_branch(branch, captures, mask, rows);
  RecordedRows none;
  {
    GraphBuilder builder("no row", "vmap");
    ModeScope scope(builder.scope());
    Tensors outputs;
    for (const TensorType& type : taken.types) outputs.push_back(zeros(type.dims(), type.dtype()));
    none.graph = make_sub_graph(finish_part(builder, outputs));
    none.captured = builder.captured();
  }
  constexpr bool kIsGuard = true;
  return bind_cond(any(mask, Axes(rows.named)), taken, none, kIsGuard);
}

}  // namespace

RowValues cond_over_rows(const AttrsRef& ref, const RowValues& in, const Rows& rows) {
  const CondAttrs& attrs = get<CondAttrs>(ref.get());
  if (!in[0].is_many) return cond_for_all(attrs, in, rows);
  for (const ValueId v : attrs.on_true.graph->outputs)
    if (attrs.on_true.graph->types[v].is_list())
      throw RowsRefused("a cond with a predicate for each row returns a TensorArray");
  const Tensor pred = in_named_form(in[0].value, rows);
  const Tensors yes =
      branch_for_rows(attrs.on_true, captures_of(in, attrs.true_captures), pred, rows);
  RowValues out;
  if (attrs.is_guard) {
    for (const Tensor& value : yes) out.push_back({value, true});
    return out;
  }
  const Tensors no = branch_for_rows(attrs.on_false, captures_of(in, attrs.false_captures),
                                     logical_not(pred), rows);
  for (std::size_t k = 0; k < yes.size(); ++k) {
    if (yes[k].dims() != no[k].dims())
      throw RowsRefused("the branches of a cond return different dims");
    const Tensor chosen = where(mask_for(pred, yes[k]), yes[k], no[k]);
    out.push_back(
        {chosen.dims() == yes[k].dims() ? chosen : transpose(chosen, yes[k].dims()), true});
  }
  return out;
}

}  // namespace reel
