// Checkpointed functions and custom gradients, applied to all rows.
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/custom_vjp.h"
#include "reel/core/ops/control/custom_vjp_parts.h"
#include "reel/frontend/loops/loop_recording.h"
#include "reel/frontend/transforms/row_batch.h"

namespace reel {

RecordedRows record_for_rows(const SubGraph& of, const RowValues& inputs, const Rows& rows,
                             const std::vector<std::uint8_t>& wanted) {
  GraphBuilder builder(of.graph->name, "vmap");
  ModeScope scope(builder.scope());
  RowBatch batch(of, rows);
  const RowValues made = batch.run(inputs);
  RecordedRows result;
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

RowValues checkpointed_over_rows(const AttrsRef& ref, const RowValues& in, const Rows& rows) {
  const CheckpointedAttrs& attrs = get<CheckpointedAttrs>(ref.get());
  RecordedRows body = record_for_rows(attrs.body, in, rows, {});
  const Tensors made = bind_all(checkpointed_op, body.captured,
                                make_attrs(CheckpointedAttrs{body.graph, attrs.kept}));
  RowValues out;
  for (std::size_t k = 0; k < made.size(); ++k) out.push_back({made[k], body.is_many[k] != 0});
  return out;
}

RowValues custom_vjp_over_rows(const AttrsRef& ref, const RowValues& in, const Rows& rows) {
  const CustomVjpParts parts = custom_vjp_parts(ref);
  // A value that all rows share is repeated for each row: its cotangent is then the sum over rows.
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
    const RowValues given = RowBatch(parts.graph, rows).run(std::move(inputs));
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
