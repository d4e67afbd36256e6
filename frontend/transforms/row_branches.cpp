// Conds, checkpointed functions and custom gradients, applied to all rows.
#include <algorithm>

#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/custom_vjp.h"
#include "reel/core/ops/control/custom_vjp_parts.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/frontend/loops/loop_recording.h"
#include "reel/frontend/transforms/row_batch.h"

namespace reel {
namespace {

/// A sub-graph that was recorded again, for all rows.
struct Recorded {
  SubGraph graph;
  Tensors captured;
  std::vector<TensorType> types;      ///< of its outputs
  std::vector<std::uint8_t> is_many;  ///< by output
};

/// Records a sub-graph for all rows. Outputs listed in `wanted` have the rows in front.
Recorded record_for_rows(const SubGraph& of, const RowValues& inputs, const Dim& rows,
                         const std::vector<std::uint8_t>& wanted) {
  GraphBuilder builder(of.graph->name, "vmap");
  ModeScope scope(builder.scope());
  RowBatch batch(*of.graph, rows, of.env());
  const RowValues made = batch.run(inputs);
  Recorded result;
  Tensors outputs;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const bool is_many = made[k].is_many || (k < wanted.size() && wanted[k]);
    outputs.push_back(is_many ? as_many(made[k], rows) : made[k].value);
    result.is_many.push_back(is_many);
    result.types.push_back(outputs.back().type());
  }
  result.graph = make_sub_graph(finish_part(builder, outputs));
  result.captured = builder.captured();
  return result;
}

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

Tensors bind_cond(const Tensor& pred, const Recorded& yes, const Recorded& no) {
  CondAttrs attrs;
  CaptureList captures;
  attrs.true_captures = captures.add(yes.captured);
  attrs.false_captures = captures.add(no.captured);
  attrs.on_true = yes.graph;
  attrs.on_false = no.graph;
  Tensors inputs{pred};
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  return bind_all(cond_op, inputs, make_attrs(std::move(attrs)));
}

/// Both branches take the same captures, so that results which only one of them makes for many
/// rows are made so by the other one, too.
RowValues cond_for_all(const CondAttrs& attrs, const RowValues& in, const Dim& rows) {
  const RowValues on_true = captures_of(in, attrs.true_captures),
                  on_false = captures_of(in, attrs.false_captures);
  const std::vector<std::uint8_t> are_many =
      either(record_for_rows(attrs.on_true, on_true, rows, {}).is_many,
             record_for_rows(attrs.on_false, on_false, rows, {}).is_many);
  const Recorded yes = record_for_rows(attrs.on_true, on_true, rows, are_many),
                 no = record_for_rows(attrs.on_false, on_false, rows, are_many);
  RowValues out;
  for (Tensor& made : bind_cond(in[0].value, yes, no))
    out.push_back({std::move(made), are_many[out.size()] != 0});
  return out;
}

/// Returns x with the values of the first row for which the mask holds in the other rows.
RowValue filled(const RowValue& x, const Tensor& mask, const Dim& rows) {
  if (!x.is_many) return x;
  if (x.value.type().is_list()) throw RowsRefused("a TensorArray in a branch that rows may take");
  const TensorType row = type_of_row(x);
  return {from_named_form(fill_live(in_named_form(x.value, rows), mask), row, rows), true};
}

/// Returns the results of a branch for the rows of the mask; zeros if there are none. The zeros
/// keep rows that compute nothing from adding NaN to a gradient.
Tensors branch_for_rows(const SubGraph& branch, const RowValues& captures, const Tensor& mask,
                        const Dim& rows) {
  RowValues inputs;
  for (const RowValue& value : captures) inputs.push_back(filled(value, mask, rows));
  const std::vector<std::uint8_t> all(branch.graph->outputs.size(), 1);
  const Recorded taken = record_for_rows(branch, inputs, rows, all);
  Recorded none;
  {
    GraphBuilder builder("no row", "vmap");
    ModeScope scope(builder.scope());
    Tensors outputs;
    for (const TensorType& type : taken.types) outputs.push_back(zeros(type.dims(), type.dtype()));
    none.graph = make_sub_graph(finish_part(builder, outputs));
    none.captured = builder.captured();
  }
  return bind_cond(any(mask, Axes(rows)), taken, none);
}

}  // namespace

RowValues cond_over_rows(const AttrsRef& ref, const RowValues& in, const Dim& rows) {
  const CondAttrs& attrs = get<CondAttrs>(ref.get());
  if (!in[0].is_many) return cond_for_all(attrs, in, rows);
  for (const ValueId v : attrs.on_true.graph->outputs)
    if (attrs.on_true.graph->types[v].is_list())
      throw RowsRefused("a cond with a predicate for each row returns a TensorArray");
  const Tensor pred = in_named_form(in[0].value, rows);
  const Tensors yes = branch_for_rows(attrs.on_true, captures_of(in, attrs.true_captures), pred,
                                      rows),
                no = branch_for_rows(attrs.on_false, captures_of(in, attrs.false_captures),
                                     logical_not(pred), rows);
  RowValues out;
  for (std::size_t k = 0; k < yes.size(); ++k) {
    if (yes[k].dims() != no[k].dims())
      throw RowsRefused("the branches of a cond return different dims");
    const Tensor chosen = where(mask_for(pred, yes[k]), yes[k], no[k]);
    out.push_back(
        {chosen.dims() == yes[k].dims() ? chosen : transpose(chosen, yes[k].dims()), true});
  }
  return out;
}

RowValues checkpointed_over_rows(const AttrsRef& ref, const RowValues& in, const Dim& rows) {
  const CheckpointedAttrs& attrs = get<CheckpointedAttrs>(ref.get());
  Recorded body = record_for_rows(attrs.body, in, rows, {});
  const Tensors made = bind_all(checkpointed_op, body.captured,
                                make_attrs(CheckpointedAttrs{body.graph, attrs.kept}));
  RowValues out;
  for (std::size_t k = 0; k < made.size(); ++k) out.push_back({made[k], body.is_many[k] != 0});
  return out;
}

RowValues custom_vjp_over_rows(const AttrsRef& ref, const RowValues& in, const Dim& rows) {
  const CustomVjpParts parts = custom_vjp_parts(ref);
  // A value of all rows becomes one of many: its cotangent is then the sum over rows.
  const auto take = [&](std::size_t first, std::size_t count) {
    Tensors result;
    for (std::size_t i = first; i < first + count; ++i) result.push_back(as_many(in[i], rows));
    return result;
  };
  const std::size_t read = parts.residuals + parts.captures;
  const Tensors residuals = take(0, parts.residuals),
                captures = take(parts.residuals, parts.captures),
                arguments = take(read, parts.arguments),
                results = take(read + parts.arguments, in.size() - read - parts.arguments);
  const auto backward = [&](const Tensors& saved, const Tensors& cotangents) {
    RowValues inputs;
    for (const Tensors* some : {&saved, &cotangents, &captures})
      for (const Tensor& tensor : *some) inputs.push_back({tensor, true});
    const RowValues given =
        RowBatch(*parts.graph.graph, rows, parts.graph.env()).run(std::move(inputs));
    Tensors gradients(parts.arguments);
    for (std::size_t k = 0; k < given.size(); ++k) {
      const auto argument = static_cast<std::size_t>(parts.given[k]);
      gradients[argument] = as_many(given[k], rows);
    }
    return gradients;
  };
  RowValues out;
  for (Tensor& made : with_custom_vjp(arguments, results, residuals, backward))
    out.push_back({std::move(made), true});
  return out;
}

}  // namespace reel
