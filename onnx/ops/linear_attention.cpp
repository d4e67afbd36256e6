// Linear attention and causal convolutions with a state, by the functions of the frontend.
#include <cmath>

#include "reel/core/base/str.h"
#include "reel/core/functions/activations.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/products.h"
#include "reel/core/functions/shape.h"
#include "reel/frontend/layers/causal_conv.h"
#include "reel/frontend/layers/linear_attention.h"
#include "reel/onnx/ops/heads.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

constexpr std::int64_t kMaxHeads = 1 << 20;

/// Which terms the recurrence S_t = exp(g_t) S_{t-1} + beta_t k_t (v_t - S_{t-1}^T k_t) has.
struct UpdateRule {
  bool is_gated, corrects;
};
UpdateRule update_rule_of(const Call& call) {
  const std::string name = call.text("update_rule", "gated_delta");
  UpdateRule rule{name.starts_with("gated"), name.ends_with("delta")};
  if (name != "linear" && name != "gated" && name != "delta" && name != "gated_delta")
    call.refuse(str("the update_rule ", name, " is not supported"));
  if (rule.is_gated != call.has(4) || rule.corrects != call.has(5))
    call.refuse(str("the inputs decay and beta do not fit the update_rule ", name));
  return rule;
}

/// The dims of a node. Queries have `groups` heads for each head of keys.
struct LinearAttentionDims {
  Dim time, batch, heads, groups, keys, values;
};

LinearAttentionDims dims_of(const Call& call) {
  const std::int64_t heads = call.integer("q_num_heads", 0),
                     kv_heads = call.integer("kv_num_heads", 0);
  const Tensor &query = call.tensor(0), &value = call.tensor(2);
  if (heads < 1 || heads > kMaxHeads || kv_heads < 1 || heads % kv_heads || query.rank() != 3 ||
      value.rank() != 3 || query.dim(2).size() % heads || value.dim(2).size() % kv_heads)
    call.refuse(str(heads, " heads of queries and ", kv_heads, " of keys do not fit ", query.type(),
                    " and ", value.type()));
  return {named_like("time", query.dim(1)),
          named_like("batch", query.dim(0)),
          Dim("heads", kv_heads),
          Dim("groups", heads / kv_heads),
          Dim("keys", query.dim(2).size() / heads),
          Dim("values", value.dim(2).size() / kv_heads)};
}

/// Returns an input with the time steps in front, in f32. inner: the dims of its last axis.
Tensor steps_of(const Call& call, std::size_t input, const LinearAttentionDims& dims,
                const Dims& inner) {
  const Tensor& x = call.tensor(input);
  std::int64_t width = 1;
  for (const Dim& dim : inner) width *= dim.size();
  if (x.rank() != 3 || x.dim(2) != Dim(width))
    call.refuse(str("input ", input, " is ", x.type(), ", whose last axis is not ", width));
  Dims all{dims.time, dims.batch};
  all.insert(all.end(), inner.begin(), inner.end());
  return reshape(cast(transpose(x, {1, 0, 2}), f32), all);
}

Values run_linear_attention(const Call& call) {
  const UpdateRule rule = update_rule_of(call);
  const LinearAttentionDims dims = dims_of(call);
  const Dim &time = dims.time, &batch = dims.batch, &heads = dims.heads, &groups = dims.groups,
            &keys = dims.keys, &values = dims.values;
  const double given = call.number("scale", 0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(keys.size()));

  const Tensor q = steps_of(call, 0, dims, {heads, groups, keys}),
               k = steps_of(call, 1, dims, {heads, keys}),
               v = steps_of(call, 2, dims, {heads, values});
  LinearAttentionOptions options{.scale = scale};
  if (rule.is_gated) {
    const bool is_of_head = call.tensor(4).dim(2) == Dim(heads.size());
    options.decay = steps_of(call, 4, dims, is_of_head ? Dims{heads} : Dims{heads, keys});
  }
  if (rule.corrects) {
    const bool is_shared = call.tensor(5).dim(2) == Dim(1);  // by all heads
    const Tensor beta = steps_of(call, 5, dims, is_shared ? Dims() : Dims{heads});
    options.beta = is_shared ? reshape(beta, Dims{time, batch}) : beta;
  }
  const Dims of_state{batch, heads, keys, values};
  const Tensor initial =
      call.has(3) ? cast(reshape(call.tensor(3), of_state), f32) : zeros(of_state);
  const auto [ys, last] = linear_attention(q, k, v, time, keys, initial, options);
  const Tensor& query = call.tensor(0);
  const Dim output(heads.size() * groups.size() * values.size());
  const Tensor ordered = transpose(ys, Axes{batch, time, heads, groups, values});
  const Tensor y = reshape(ordered, Dims{query.dim(0), query.dim(1), output});
  const Tensor state =
      reshape(transpose(last, Axes(of_state)),
              Dims{query.dim(0), Dim(heads.size()), Dim(keys.size()), Dim(values.size())});
  const ElementType state_type = call.has(3) ? call.type(3) : call.type(0);
  return {call.stored_like(0, cast(y, query.dtype())),
          Value::of(stored_as(cast(state, dtype_of(state_type).value_or(f32)), state_type),
                    state_type)};
}

/// A depthwise convolution that reads the elements up to its own position: CausalConv, with the
/// elements before as its state. x: [N, C, L].
Values run_causal_conv(const Call& call) {
  const Tensor &x = call.tensor(0), &weight = call.tensor(1);
  if (x.rank() != 3 || weight.rank() != 3 || weight.dim(0) != x.dim(1) || weight.dim(1) != Dim(1))
    call.refuse(str("weights ", weight.type(), " do not fit ", x.type()));
  const std::int64_t width = weight.dim(2).size();
  const Dim batch = named_like("batch", x.dim(0)), channels("channels", x.dim(1).size()),
            time = named_like("time", x.dim(2));
  CausalConv conv;
  conv.taps = Dim("taps", width);
  conv.in = conv.out = channels;
  conv.past = Dim("past", width - 1);
  conv.window = Dim("window", width);
  conv.filter = transpose(reshape(weight, {channels, conv.taps}), Axes{conv.taps, channels});
  if (call.has(2)) conv.bias = reshape(call.tensor(2), {channels});
  const Tensor before = call.has(3) ? reshape(call.tensor(3), {batch, channels, conv.past})
                                    : zeros({batch, channels, conv.past}, x.dtype());
  const auto [sums, after] = conv(reshape(x, {batch, channels, time}), time, before);
  Tensor y = transpose(sums, Axes{batch, channels, time});
  const std::string activation = call.text("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = silu(y);
  else if (activation != "none")
    call.refuse(str("the activation ", activation, " is not supported"));
  const Tensor state = transpose(after, Axes{batch, channels, conv.past});
  return {call.stored_like(0, reshape(y, x.dims())),
          call.like(0, reshape(state, Dims{x.dim(0), x.dim(1), Dim(width - 1)}))};
}

const Rule kRules[] = {
    {"CausalConvWithState", run_causal_conv, "", 27},
    {"LinearAttention", run_linear_attention, "", 27},
};

}  // namespace

std::span<const Rule> linear_attention_rules() { return kRules; }

}  // namespace reel::imported
