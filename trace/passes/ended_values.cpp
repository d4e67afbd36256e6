#include "reel/trace/passes/ended_values.h"

#include <algorithm>

#include "reel/core/ops/creation.h"
#include "reel/core/ops/elementwise.h"

namespace reel {

EndedValues::EndedValues(const LoopAttrs& attrs, std::span<const TensorType> inputs)
    : body_(*attrs.body.graph),
      entry_(entry_dim(attrs, inputs)),
      rows_(entry_rows(attrs, inputs)),
      is_live_(body_.types.size(), 1),
      is_zero_(body_.types.size(), 0) {
  for (std::size_t i = 1; i < body_.inputs.size(); ++i) {
    const ValueId v = body_.inputs[i];
    if (rows_[v] == RowAxes::kNone) continue;
    const Fill fill = fill_in_memory(attrs.fill_of(i - 1));
    is_live_[v] = fill == Fill::live;
    is_zero_[v] = fill == Fill::zero;
  }
  for (const OpRecord& record : body_.records) {
    const auto in = body_.inputs_of(record);
    const bool is_live = std::all_of(in.begin(), in.end(), [&](ValueId v) { return is_live_[v]; });
    const bool is_zero = is_zero_in_ended(record);
    for (const ValueId v : body_.outputs_of(record)) {
      is_live_[v] = is_live;
      is_zero_[v] = is_zero && (rows_[v] >= 0 || makes_zeros(*record.op, record.attrs.get()));
    }
  }
}

bool EndedValues::is_zero_in_ended(const OpRecord& record) const {
  const auto in = body_.inputs_of(record);
  const Op& op = *record.op;
  if (makes_zeros(op, record.attrs.get())) return true;
  if (in.empty() || !op.vjp) return false;
  if (op.reads_by == reads_the_other) return is_zero_[in[0]] || is_zero_[in[1]];
  if (&op == &div_op) return is_zero_[in[0]];
  if (&op == &tanh_grad_op || &op == &sigmoid_grad_op || &op == &gelu_grad_op)
    return is_zero_[in[1]];
  if (&op == &where_op) return is_zero_[in[1]] && is_zero_[in[2]];
  // Linear with constant coefficients: its gradient reads nothing.
  const OpReads reads = reads_of(op, record.attrs.get(), ~0u);
  return !reads.inputs && !reads.outputs &&
         std::all_of(in.begin(), in.end(), [&](ValueId v) { return is_zero_[v]; });
}

std::optional<Fill> EndedValues::fill(ValueId v) const {
  if (is_mixed(v)) return std::nullopt;
  if (is_zero_[v]) return Fill::zero;
  return is_live_[v] ? std::optional(Fill::live) : std::nullopt;
}

}  // namespace reel
