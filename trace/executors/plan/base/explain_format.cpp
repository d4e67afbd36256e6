#include "reel/trace/executors/plan/base/explain_format.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {

std::string types_text(const std::vector<TensorType>& types) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < types.size();) {
    std::size_t end = i + 1;
    while (end < types.size() && types[end] == types[i]) ++end;
    texts.push_back(end > i + 1 ? str(end - i, " x ", types[i]) : str(types[i]));
    i = end;
  }
  return join(texts);
}

std::string runs_text(double runs) { return fixed_text(runs, 1) + " times"; }

std::string steps_text(const LoopAttrs& attrs, std::span<const TensorType> in) {
  if (const auto steps = steps_of(attrs, in)) return counted(*steps, "iteration");
  const char* until = attrs.trips.has_lengths ? "until all entries have finished"
                      : attrs.cond && attrs.trips.has_bound
                          ? "until its condition or its bound ends it"
                      : attrs.cond            ? "until its condition ends it"
                      : attrs.trips.has_bound ? "as many iterations as its bound says"
                                              : "an iteration for each slice";
  return until;
}

LoopTypes types_of(const LoopAttrs& attrs, const std::vector<TensorType>& in,
                   const std::vector<TensorType>& out) {
  const auto list = [](std::span<const TensorType> types) {
    return std::vector<TensorType>(types.begin(), types.end());
  };
  const Graph& body = *attrs.body.graph;
  std::vector<std::uint8_t> is_read(body.types.size());
  for (const OpRecord& record : body.records)
    for (const ValueId v : body.inputs_of(record)) is_read[v] = 1;
  for (const ValueId v : body.outputs) is_read[v] = 1;
  const auto operands = operands_of(attrs, in);
  const auto results = results_of(attrs, out);
  const auto formals = body_inputs(attrs).captures;
  std::vector<TensorType> captures;
  for (std::size_t i = 0; i < formals.size(); ++i)
    if (is_read[formals[i]])
      captures.push_back(operands.captures[static_cast<std::size_t>(attrs.body_captures[i])]);
  return {list(operands.carries), list(operands.slices), std::move(captures), list(results.stacks),
          list(results.sums)};
}

}  // namespace reel
