#include "reel/trace/passes/analysis/filled_padding.h"

#include <algorithm>

#include "reel/core/op/facts.h"

namespace reel {

std::vector<std::uint8_t> find_filled_padding(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  std::vector<std::uint8_t> result(body.types.size()), is_zero(body.types.size());
  for (std::size_t i = 1; i < body.inputs.size(); ++i)
    result[body.inputs[i]] =
        fill_of(attrs, body_input_at(attrs, i)) == FinishedFill::running_padding;
  for (const OpRecord& record : body.records) {
    const auto in = body.inputs_of(record), out = body.outputs_of(record);
    const auto is_filled = [&](ValueId v) { return result[v] != 0; };
    bool fills =
        record.op->padding != Padding::dropped && std::any_of(in.begin(), in.end(), is_filled);
    if (record.op->padding == Padding::selected) {  // where(mask, x, number)
      const ValueId other = in[2];
      fills =
          body.types[other].is_ragged() ? is_filled(in[1]) || is_filled(other) : !is_zero[other];
    }
    for (const ValueId v : out) {
      is_zero[v] = makes_zeros(*record.op, record.attrs.get());
      result[v] = fills && body.types[v].is_ragged();
    }
  }
  return result;
}

}  // namespace reel
