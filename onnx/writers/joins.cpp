// Writers of ops that join tensors and take them apart.
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

/// Splits an axis into parts; sizes: i64[parts].
Names split(const WriteCall& call, int axis, const Name& sizes) {
  return call.to.add("Split", {call.in(0), sizes}, call.count_out(), {{"axis", integer(axis)}});
}
Names write_unconcat(const WriteCall& call) {
  const UnconcatAttrs& attrs = call.attr<UnconcatAttrs>();
  return split(call, attrs.axis, call.to.shape(attrs.parts));
}
Names write_split(const WriteCall& call) {
  const SplitAttrs& attrs = call.attr<SplitAttrs>();
  Dims parts;
  for (std::size_t i = 0; i < call.count_out(); ++i)
    parts.push_back(call.type_out(i).dims()[static_cast<std::size_t>(attrs.axis)]);
  return split(call, attrs.axis, call.to.shape(parts));
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
