#include "reel/trace/passes/analysis/one_chain.h"

#include <algorithm>

#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/elementwise/pointwise_code.h"

namespace reel {
namespace {

/// Returns the body as a chain, with the additions of sums. Requires that all ops have code.
Chain chain_of(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  Chain chain;
  const std::size_t sums = attrs.sums.size();
  chain.repeats.assign(body.inputs.size() + sums, false);
  std::vector<int> number(body.types.size(), -1);
  for (std::size_t i = 0; i < body.inputs.size(); ++i) number[body.inputs[i]] = static_cast<int>(i);
  for (const OpRecord& record : body.records) {
    const auto in = body.inputs_of(record);
    const ElementLoop loop = *element_loop(*record.op);
    const Unary* const unary = std::get_if<Unary>(&loop);
    const Chain::Code code = unary ? Chain::Code(*unary) : Chain::Code(std::get<Binary>(loop));
    number[body.outputs_of(record)[0]] =
        chain.append(code, number[in[0]], unary ? -1 : number[in[1]]);
  }
  const auto outputs = body_outputs(attrs);
  for (const auto& leaves : {outputs.carries, outputs.stacks})
    for (const ValueId v : leaves) chain.results.push_back(number[v]);
  for (std::size_t i = 0; i < sums; ++i)
    chain.results.push_back(chain.append(Binary::add, static_cast<int>(body.inputs.size() + i),
                                         number[outputs.sums[i]]));
  return chain;
}

}  // namespace

bool is_one_chain(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  if (attrs.carries.empty() || attrs.cond || attrs.has_entries()) return false;
  const TensorType& state = body.types[body_inputs(attrs).carries[0]];
  if (state.is_list()) return false;
  const bool have_code =
      std::all_of(body.records.begin(), body.records.end(), [&](const OpRecord& record) {
        const auto loop = element_loop(*record.op);
        return loop && has_code(*loop, state.dtype()) &&
               body.types[body.outputs_of(record)[0]] == state;
      });
  if (!have_code) return false;
  const Chain chain = chain_of(attrs);
  return chain.places() <= kMaxChainPlaces && chain.registers() <= chain_registers();
}

}  // namespace reel
