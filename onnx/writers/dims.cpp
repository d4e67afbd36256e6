// Writers of ops on dims: lengths, masks, new dims.
#include "reel/core/ops/shape/known_dims.h"
#include "reel/core/ops/shape/lengths_read.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

const Dim& dim_of_token(const TensorType& token) { return token.dims()[1]; }

Names write_dim_lengths(const WriteCall& call) {
  return {call.to.lengths(*dim_of_lengths(call.record))};
}
/// The lengths, without padding, become the lengths of the new dim; its token has no name.
Names write_define_dim(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& lengths = call.type_in(0);
  const Name narrow = lengths.dtype() == i32 ? call.in(0) : to.cast(call.in(0), i32);
  to.set_lengths(dim_of_token(call.type_out()),
                 to.mask_padding(narrow, lengths.with(i32), to.model().integer(0, i32)));
  return {""};
}
Names write_dim_token(const WriteCall&) { return {""}; }
Names write_mask(const WriteCall& call) {
  return {call.to.mask(*dim_read_by(*call.record.op, call.record.attrs.get()))};
}

const Writer kWriters[] = {
    {"dim_lengths", write_dim_lengths},
    {"define_dim", write_define_dim},
    {"dim_token", write_dim_token},
    {"mask", write_mask},
};

}  // namespace

std::span<const Writer> dim_writers() { return kWriters; }

}  // namespace reel::exported
