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
  if (const auto steps = steps_of(attrs, in)) return counted(*steps, "step");
  const char* until = attrs.has_lengths               ? "until its entries have ended"
                      : attrs.cond && attrs.has_bound ? "until its condition or its bound ends it"
                      : attrs.cond                    ? "until its condition ends it"
                      : attrs.has_bound               ? "as many steps as its bound says"
                                                      : "a step for each slice";
  return until;
}

LoopTypes types_of(const LoopAttrs& attrs, const std::vector<TensorType>& in,
                   const std::vector<TensorType>& out) {
  const auto part = [](const std::vector<TensorType>& types, std::size_t from, std::size_t to) {
    return std::vector<TensorType>(types.begin() + static_cast<std::ptrdiff_t>(from),
                                   types.begin() + static_cast<std::ptrdiff_t>(to));
  };
  std::vector<TensorType> captures;
  const Graph& body = *attrs.body.graph;
  std::vector<std::uint8_t> is_read(body.types.size());
  for (const OpRecord& record : body.records)
    for (const ValueId v : body.inputs_of(record)) is_read[v] = 1;
  for (const ValueId v : body.outputs) is_read[v] = 1;
  for (std::size_t i = 0; i < attrs.body_captures.size(); ++i) {
    if (is_read[body.inputs[body.formal_count + i]])
      captures.push_back(
          in[attrs.first_capture() + static_cast<std::size_t>(attrs.body_captures[i])]);
  }
  return {part(in, attrs.first_carry(), attrs.first_slice()),
          part(in, attrs.first_slice(), attrs.first_capture()), std::move(captures),
          part(out, attrs.first_stack(), attrs.first_sum()),
          part(out, attrs.first_sum(), attrs.trips_output())};
}

}  // namespace reel
