// Writers of ops that create tensors.
#include "reel/core/ops/creation/creation.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

Names write_full(const WriteCall& call) {
  const FullAttrs& attrs = call.attr<FullAttrs>();
  const DType dtype = attrs.type.dtype();
  const Name value = is_integer(dtype) ? call.to.model().integer(attrs.integer, dtype)
                                       : call.to.model().number(attrs.number, dtype);
  return {attrs.type.rank() ? call.to.expand(value, call.type_out().dims()) : value};
}
/// zeros_like or ones_like.
Names write_full_like(const WriteCall& call) {
  const TensorType& type = call.type_out();
  const bool is_zero = makes_zeros(*call.record.op, call.record.attrs.get());
  const Name value = call.to.model().number(is_zero ? 0 : 1, type.dtype());
  if (!type.rank()) return {value};
  return {call.to.add("Expand", {value, call.to.add("Shape", {call.in(0)})})};
}
Names write_constant(const WriteCall& call) {
  const ConstantAttrs& attrs = call.attr<ConstantAttrs>();
  const TensorType& type = call.type_out();
  const Tensor& data = attrs.numbers.data;
  if (!type.is_known()) return {call.to.reshape(call.to.model().constant(data), type.dims())};
  return {call.to.model().constant(reshape(data, type.sizes()))};
}
Names write_range(const WriteCall& call) {
  return {call.to.range(call.type_out().dims()[0], call.type_out().dtype())};
}
/// Compares with all classes: OneHot of ONNX would count negative indices from the end.
Names write_one_hot(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& indices = call.type_in(0);
  const Name classes = to.range(call.type_out().dims().back(), indices.dtype());
  const Name is_hot = to.add("Equal", {to.unsqueeze(call.in(0), {indices.rank()}), classes});
  return {to.cast(is_hot, call.type_out().dtype())};
}

const Writer kWriters[] = {
    {"full", write_full},   {"full_like", write_full_like}, {"constant", write_constant},
    {"range", write_range}, {"one_hot", write_one_hot},
};

}  // namespace

std::span<const Writer> creation_writers() { return kWriters; }

}  // namespace reel::exported
