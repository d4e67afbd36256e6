#include "reel/onnx/writers/linear_attention_writer.h"

#include <algorithm>
#include <string>

#include "reel/onnx/writers/merged_axes.h"

namespace reel::exported {
namespace {

constexpr std::size_t kState = 3, kDecay = 4, kBeta = 5;  // roles

/// The dims of a call. groups: dims of q alone.
struct LinearAttentionDims {
  Dims batch, heads, groups, values;
};
LinearAttentionDims dims_of(const LabelledCall& at) {
  const Dims own{at.dim(0), at.dim(1)}, &of_k = at.type(1)->dims();
  LinearAttentionDims dims{.batch = dims_without(of_k, own),
                           .heads = {},
                           .groups = dims_without(at.type(0)->dims(), of_k),
                           .values = dims_without(at.type(2)->dims(), of_k)};
  if (dims.batch.size() > 1) {
    dims.heads = {dims.batch.back()};
    dims.batch.pop_back();
  }
  return dims;
}

Dims joined(const Dims& a, const Dims& b, const Dims& c = {}) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

/// Returns the product of known sizes.
std::int64_t size_of(const Dims& dims) {
  std::int64_t size = 1;
  for (const Dim& dim : dims) size *= known_size(dim);
  return size;
}

}  // namespace

bool fits_linear_attention(const LabelledCall& at) {
  const LinearAttentionDims dims = dims_of(at);
  const Dims sizes = joined(joined({at.dim(1)}, dims.heads), dims.groups, dims.values);
  const auto is_known = [](const Dim& dim) { return known_size(dim) > 0; };
  // The node takes a scale of 0, in f32, for its default.
  if (static_cast<float>(at.number(0)) == 0 || at.dim(0).is_ragged() || !at.type(kState) ||
      !std::all_of(sizes.begin(), sizes.end(), is_known))
    return false;
  // The rate of a head is one for all its values.
  return !at.type(kBeta) ||
         dims_without(dims.values, at.type(kBeta)->dims()).size() == dims.values.size();
}

Names write_linear_attention(const WriteCall& call, const LabelledCall& at) {
  GraphWriter& to = call.to;
  const LinearAttentionDims dims = dims_of(at);
  const Dims time{at.dim(0)}, feature{at.dim(1)};
  const auto operand = [&](std::size_t role, const MergedAxes& axes) {
    return to_axes(to, at.name(to, role), at.type(role)->dims(), axes);
  };
  // Decay and beta may lack dims along which they are equal.
  const auto spread = [&](std::size_t role, const Dims& inner) {
    if (!at.type(role)) return Name();
    const Dims all = joined(dims.batch, time, inner), &own = at.type(role)->dims();
    const Name x = to.expand(to.aligned(at.name(to, role), own, all), all);
    return to_axes(to, x, all, {dims.batch, time, inner});
  };
  const bool decays = at.type(kDecay), corrects = at.type(kBeta);
  const bool is_of_feature = decays && contains(at.type(kDecay)->dims(), at.dim(1));
  const MergedAxes of_state{dims.batch, dims.heads, feature, dims.values};
  Names inputs{operand(0, {dims.batch, time, joined(dims.heads, dims.groups, feature)}),
               operand(1, {dims.batch, time, joined(dims.heads, feature)}),
               operand(2, {dims.batch, time, joined(dims.heads, dims.values)}),
               operand(kState, of_state),
               spread(kDecay, is_of_feature ? joined(dims.heads, feature) : dims.heads),
               spread(kBeta, dims.heads)};
  while (inputs.back().empty()) inputs.pop_back();
  std::string rule = corrects ? "delta" : "linear";
  if (decays) rule = corrects ? "gated_delta" : "gated";
  const std::int64_t heads = size_of(dims.heads);
  const Names made = to.add("LinearAttention", inputs, 2,
                            {{"q_num_heads", integer(heads * size_of(dims.groups))},
                             {"kv_num_heads", integer(heads)},
                             {"scale", number(at.number(0))},
                             {"update_rule", text(rule)}});
  const MergedAxes of_y{dims.batch, time, joined(dims.heads, dims.groups, dims.values)};
  return {from_axes(to, made[0], of_y, call.type_out(0).dims()),
          from_axes(to, made[1], of_state, call.type_out(1).dims())};
}

}  // namespace reel::exported
