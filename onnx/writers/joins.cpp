// Writers of ops that join tensors and take them apart.
#include <algorithm>

#include "reel/core/ops/shape/join.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

Names inputs_of(const WriteCall& call) {
  Names inputs;
  for (std::size_t i = 0; i < call.count_in(); ++i) inputs.push_back(call.in(i));
  return inputs;
}

Names write_concat(const WriteCall& call) {
  return {call.to.concat(inputs_of(call), call.attr<ConcatAttrs>().axis)};
}

/// Returns the parts of an axis, which have these dims along it. Slices of sizes that only a run
/// knows can be traced when the model is loaded, unlike Split.
Names parts_of(const WriteCall& call, int axis, const Dims& dims) {
  GraphWriter& to = call.to;
  const auto is_known = [](const Dim& dim) { return known_size(dim) >= 0; };
  if (std::all_of(dims.begin(), dims.end(), is_known))
    return to.add("Split", {call.in(0), to.shape(dims)}, call.count_out(),
                  {{"axis", integer(axis)}});
  Names parts;
  Name begin = to.model().integers({0});
  for (const Dim& dim : dims) {
    const Name end = to.add("Add", {begin, to.size(dim)});
    parts.push_back(to.add("Slice", {call.in(0), begin, end, to.model().integers({axis})}));
    begin = end;
  }
  return parts;
}
Names write_unconcat(const WriteCall& call) {
  const UnconcatAttrs& attrs = call.attr<UnconcatAttrs>();
  return parts_of(call, attrs.axis, attrs.parts);
}
Names write_split(const WriteCall& call) {
  const SplitAttrs& attrs = call.attr<SplitAttrs>();
  Dims parts;
  for (std::size_t i = 0; i < call.count_out(); ++i)
    parts.push_back(call.type_out(i).dims()[static_cast<std::size_t>(attrs.axis)]);
  return parts_of(call, attrs.axis, parts);
}

Names write_stack(const WriteCall& call) {
  Names parts;
  for (std::size_t i = 0; i < call.count_in(); ++i)
    parts.push_back(call.to.unsqueeze(call.in(i), {0}));
  return {call.to.concat(parts, 0)};
}
Names write_unstack(const WriteCall& call) {
  Names parts;
  for (std::size_t i = 0; i < call.count_out(); ++i)
    parts.push_back(call.to.add("Gather",
                                {call.in(0), call.to.model().integer(static_cast<std::int64_t>(i))},
                                {{"axis", integer(0)}}));
  return parts;
}

const Writer kWriters[] = {
    {"concat", write_concat}, {"unconcat", write_unconcat}, {"split", write_split},
    {"stack", write_stack},   {"unstack", write_unstack},
};

}  // namespace

std::span<const Writer> join_writers() { return kWriters; }

}  // namespace reel::exported
