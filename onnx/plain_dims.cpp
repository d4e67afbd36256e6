#include "reel/onnx/plain_dims.h"

#include "reel/core/op/bind.h"
#include "reel/core/op/op.h"
#include "reel/core/ops/shape/shape.h"

namespace reel::imported {
namespace {

void plain_type(TypeArgs& args) {
  Dims dims;
  for (const Dim& dim : args.in[0].dims())
    dims.push_back(dim.has_size() ? Dim(dim.size()) : Dim::unknown());
  args.out.push_back(args.in[0].with(dims));
}

constinit const Op plain_dims_op{
    .name = "plain_dims",
    .type = plain_type,
    .kernel = same_elements,
    .storage = OpStorage::input,
    .vjp = reshape_to_input,
    .reads = {.inputs = 0b1},
    .samples =
        [] {
          return OpSamples{{{{TensorType(f32, {Dim("batch", 2), Dim("feature", 3)})}}}};
        },
    .fails = never_fails,
};

}  // namespace

Tensor with_plain_dims(const Tensor& x) {
  return x.type().is_named() ? bind(plain_dims_op, {x}) : x;
}

}  // namespace reel::imported
