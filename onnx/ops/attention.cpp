// Attention, with its variants, and rotary embeddings.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/products.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/frontend/layers/attention.h"
#include "reel/frontend/layers/rotate.h"
#include "reel/onnx/ops/heads.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_graph.h"

namespace reel::imported {

Tensor heads_apart(const Call& call, const Tensor& x, std::int64_t heads) {
  if (x.rank() == 4) return x;
  const std::int64_t width = x.rank() == 3 ? x.dim(2).size() : 0;
  if (x.rank() != 3 || heads < 1 || width % heads)
    call.refuse(str(x.type(), " does not fit ", heads, " heads"));
  const Tensor apart = reshape_to(x, Dims{x.dim(0), x.dim(1), Dim(heads), Dim(width / heads)});
  return transpose(apart, {0, 2, 1, 3});
}

Tensor heads_together(const Tensor& x) {
  const std::int64_t width = x.dim(1).size() * x.dim(3).size();
  return reshape_to(transpose(x, {0, 2, 1, 3}), Dims{x.dim(0), x.dim(2), Dim(width)});
}

Dim named_like(const char* name, const Dim& axis) {
  return axis.has_size() ? Dim(name, axis.size()) : Dim(name, axis.lengths());
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Splits the heads of queries into groups that share a head of keys: [N, Hkv, groups, L, D].
Tensor in_groups(const Call& call, const Tensor& q, std::int64_t kv_heads) {
  const std::int64_t heads = q.dim(1).size();
  if (kv_heads < 1 || heads % kv_heads)
    call.refuse(str(heads, " heads of queries do not fit ", kv_heads, " of keys"));
  return reshape_to(q, Dims{q.dim(0), Dim(kv_heads), Dim(heads / kv_heads), q.dim(2), q.dim(3)});
}
/// [N, Hkv, S, D] -> [N, Hkv, 1, S, D]
Tensor for_groups(const Tensor& x) {
  Dims dims = x.dims();
  dims.insert(dims.begin() + 2, Dim(1));
  return reshape_to(x, dims);
}
/// [N, Hkv, groups, L, S] -> [N, Hq, L, S]
Tensor without_groups(const Tensor& x) {
  return reshape_to(x, Dims{x.dim(0), Dim(x.dim(1).size() * x.dim(2).size()), x.dim(3), x.dim(4)});
}

/// Returns q k^T: [N, Hq, L, S]. Heads of keys may be shared by several of queries.
Tensor scores_of(const Call& call, const Tensor& q, const Tensor& k) {
  return without_groups(
      matmul(in_groups(call, q, k.dim(1).size()), transpose(for_groups(k), {0, 1, 2, 4, 3})));
}
/// Returns the sums of values, weighted by probabilities: [N, Hq, L, D].
Tensor sums_of(const Call& call, const Tensor& probabilities, const Tensor& v) {
  return without_groups(matmul(in_groups(call, probabilities, v.dim(1).size()), for_groups(v)));
}

/// Returns a mask such that it is added to scores: booleans become 0 and -inf. A mask that is
/// shorter than the keys excludes the others.
Tensor bias_of_mask(const Tensor& mask, const Dim& keys, DType dtype) {
  Tensor bias = mask;
  if (mask.dtype() == boolean)
    bias = where(mask, zeros(mask.dims(), dtype), full({}, -kInfinity, dtype));
  if (mask.dim(-1) == keys || mask.dim(-1) == Dim(1)) return bias;
  const std::int64_t missing = keys.size() - mask.dim(-1).size();
  return missing > 0 ? pad(bias, mask.rank() - 1, 0, missing, -kInfinity) : bias;
}

/// Returns 0 for keys up to a query's own position behind the past ones, else -inf: [L, S].
Tensor causal_bias(const Dim& queries, const Dim& keys, const Dim& past, DType dtype) {
  const Tensor row = reshape_to(range(queries, i64), Dims{queries, Dim(1)});
  const Tensor own = row + value_of_size(past).tensor;
  return where(range(keys, i64) <= own, full({}, 0, dtype), full({}, -kInfinity, dtype));
}

/// Attention by the function of the frontend, which keeps no tensor over queries and keys.
class StreamedAttention {
 public:
  /// q, k, v: with heads apart. past: of the keys, those that precede the queries.
  StreamedAttention(const Call& call, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Dim& past)
      : call_(call),
        q_(q),
        k_(k),
        v_(v),
        past_(past),
        batch_(named_like("batch", q.dim(0))),
        heads_("heads", k.dim(1).size()),
        groups_("groups", q.dim(1).size() / std::max<std::int64_t>(heads_.size(), 1)),
        queries_(named_like("queries", q.dim(2))),
        keys_(named_like("keys", k.dim(2))),
        features_("features", q.dim(3).size()),
        values_("values", v.dim(3).size()) {}

  /// Returns true if the node does not return the matrix of products and does not bound scores.
  static bool fits(const Call& call, const Tensor& q, const Tensor& k) {
    const std::int64_t heads = k.dim(1).size();
    const auto precision = static_cast<ElementType>(call.integer("softmax_precision", 1));
    return !call.wants(3) && call.number("softcap", 0) <= 0 && precision != ElementType::float64 &&
           heads > 0 && q.dim(1).size() % heads == 0 && q.dim(3) == k.dim(3) &&
           call.tensor(1).dtype() == q.dtype() && call.tensor(2).dtype() == q.dtype() &&
           (!call.has(3) || mask_fits(call.tensor(3), q, k));
  }

  /// Returns [N, Hq, L, Dv].
  Tensor run() const {
    AttentionOptions options{
        .scale = call_.number("scale", 1 / std::sqrt(double(q_.dim(3).size()))),
        .queries = queries_};
    if (call_.flag("is_causal", false)) {
      options.causal = queries_;
      options.offset = cast(value_of_size(past_).tensor, i32);
    }
    if (call_.has(3)) {
      const Tensor mask = named_mask(call_.tensor(3));
      (mask.dtype() == boolean ? options.mask : options.bias) = mask;
    }
    if (call_.has(6)) {  // the number of keys that are no padding, of each entry
      const Tensor lengths = reshape(call_.tensor(6), {batch_});
      const Tensor is_there = expand(range(keys_, i64), Dims{batch_, keys_}) < lengths;
      options.mask = options.mask ? *options.mask && is_there : is_there;
    }
    const Tensor y =
        attention(reshape(q_, {batch_, heads_, groups_, queries_, features_}),
                  reshape(k_, {batch_, heads_, keys_, features_}),
                  reshape(v_, {batch_, heads_, keys_, values_}), keys_, features_, options);
    return reshape(transpose(y, Axes{batch_, heads_, groups_, queries_, values_}),
                   Dims{q_.dim(0), q_.dim(1), q_.dim(2), v_.dim(3)});
  }

 private:
  /// True if a trace knows along which axes of [N, Hq, L, S] the mask changes. A mask that is
  /// shorter than the keys excludes the others.
  static bool mask_fits(const Tensor& mask, const Tensor& q, const Tensor& k) {
    if (mask.rank() < 2 || mask.rank() > 4) return false;
    const Dim all[] = {q.dim(0), q.dim(1), q.dim(2), k.dim(2)};
    for (int axis = 0; axis < mask.rank(); ++axis) {
      const Dim &own = mask.dim(axis), &whole = all[axis + 4 - mask.rank()];
      const bool is_short = axis == mask.rank() - 1 && own.has_size() && whole.has_size() &&
                            own.size() < whole.size();
      if (own != whole && own != Dim(1) && !is_short) return false;
    }
    return true;
  }

  /// Returns a mask with named dims, without those along which it is the same.
  Tensor named_mask(const Tensor& given) const {
    const bool is_boolean = given.dtype() == boolean;
    const Dim keys = k_.dim(2), own = given.dim(-1);
    const bool is_whole = own == keys || own == Dim(1);
    const std::int64_t missing = is_whole ? 0 : keys.size() - own.size();
    Tensor mask = given;
    if (missing > 0 && is_boolean)
      mask = cast(pad(cast(mask, i32), mask.rank() - 1, 0, missing, 0), boolean);
    else if (missing > 0)
      mask = pad(mask, mask.rank() - 1, 0, missing, -kInfinity);
    const Dim all[] = {q_.dim(0), q_.dim(1), q_.dim(2), keys};
    const Dims named[] = {{batch_}, {heads_, groups_}, {queries_}, {keys_}};
    Dims dims;
    for (int axis = 0; axis < mask.rank(); ++axis) {
      const int at = axis + 4 - mask.rank();
      if (mask.dim(axis) == all[at]) dims.insert(dims.end(), named[at].begin(), named[at].end());
    }
    return reshape(mask, dims);
  }

  const Call& call_;
  const Tensor &q_, &k_, &v_;
  const Dim past_, batch_, heads_, groups_, queries_, keys_, features_, values_;
};

Values run_attention(const Call& call) {
  const bool is_packed = call.tensor(0).rank() == 3;
  const Tensor q = heads_apart(call, call.tensor(0), call.integer("q_num_heads", 0));
  Tensor k = heads_apart(call, call.tensor(1), call.integer("kv_num_heads", 0)),
         v = heads_apart(call, call.tensor(2), call.integer("kv_num_heads", 0));
  Dim past(0);
  if (call.has(4)) {
    past = call.tensor(4).dim(2);
    k = concat({call.tensor(4), k}, 2);
    v = concat({call.tensor(5), v}, 2);
  }
  if (StreamedAttention::fits(call, q, k)) {
    const Tensor y = StreamedAttention(call, q, k, v, past).run();
    return {call.stored_like(0, is_packed ? heads_together(y) : y), call.like(1, k),
            call.like(2, v)};
  }
  const double scale =
      std::sqrt(call.number("scale", 1 / std::sqrt(static_cast<double>(q.dim(3).size()))));
  Tensor scores = scores_of(call, q * scale, k * scale);
  const Tensor products = scores;
  const double cap = call.number("softcap", 0);
  if (cap > 0) scores = tanh(scores / cap) * cap;
  const Tensor capped = scores;
  const DType dtype = scores.dtype();
  if (call.has(3)) scores = scores + bias_of_mask(call.tensor(3), k.dim(2), dtype);
  if (call.flag("is_causal", false)) scores = scores + causal_bias(q.dim(2), k.dim(2), past, dtype);
  if (call.has(6)) {  // the number of keys that are no padding, of each entry
    const Tensor lengths = reshape_to(call.tensor(6), Dims{q.dim(0), Dim(1), Dim(1), Dim(1)});
    scores = scores +
             where(range(k.dim(2), i64) < lengths, full({}, 0, dtype), full({}, -kInfinity, dtype));
  }
  const auto precision = static_cast<ElementType>(call.integer("softmax_precision", 1));
  const bool is_double = precision == ElementType::float64;
  const Tensor probabilities =
      cast(softmax(is_double ? cast(scores, f64) : scores, Axes(-1)), dtype);
  const Tensor y = sums_of(call, probabilities, v);
  const Tensor shown[] = {products, capped, scores, probabilities};
  const std::int64_t mode = call.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) call.refuse(str("qk_matmul_output_mode is ", mode));
  return {call.stored_like(0, is_packed ? heads_together(y) : y), call.like(1, k), call.like(2, v),
          call.stored_like(0, shown[mode])};
}

/// Attention with graphs of the node that change scores and probabilities.
Values run_flex_attention(const Call& call) {
  const Tensor& q = call.tensor(0);
  const Tensor &k = call.tensor(1), &v = call.tensor(2);
  const bool is_double = q.dtype() == f64;
  const auto precision = static_cast<ElementType>(call.integer(
      "softmax_precision",
      static_cast<std::int64_t>(is_double ? ElementType::float64 : ElementType::float32)));
  const DType dtype = dtype_of(precision).value_or(f32);
  const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(q.dim(3).size())));
  const auto changed = [&](const char* graph, const Tensor& x) {
    if (!call.has_attribute(graph)) return x;
    const Values out = run_graph(call.graph(graph), {Value::of(x, precision)}, &call.scope());
    if (out.size() != 1 || out[0].kind != Value::Kind::tensor || out[0].tensor.dims() != x.dims())
      call.refuse(str(graph, " does not return one tensor of the shape that it gets"));
    return out[0].tensor;
  };
  const Tensor scores = changed("score_mod", cast(scores_of(call, q, k) * scale, dtype));
  const Tensor probabilities = changed("prob_mod", softmax(scores, Axes(-1)));
  return {call.stored_like(0, sums_of(call, cast(probabilities, v.dtype()), v))};
}

/// Rotates pairs of elements by angles of positions, as `rotary` does; its angles are given.
Values run_rotary_embedding(const Call& call) {
  const Tensor& given = call.tensor(0);
  const bool is_packed = given.rank() == 3;
  const Tensor x = heads_apart(call, given, call.integer("num_heads", 0));  // [N, H, L, D]
  std::int64_t width = call.integer("rotary_embedding_dim", 0);
  if (width == 0) width = x.dim(3).size();
  if (width < 2 || width % 2 || width > x.dim(3).size())
    call.refuse(str("cannot rotate ", width, " elements of ", x.type()));
  const Dim batch = named_like("batch", x.dim(0)), heads("heads", x.dim(1).size()),
            time = named_like("time", x.dim(2)), feature("feature", width), half("half", width / 2),
            pair("pair", 2);
  const auto angles = [&](std::size_t i) {
    Tensor cache = call.tensor(i);
    if (call.has(3)) cache = gather(cache, call.tensor(3), 0);  // [N, L, width / 2]
    if (cache.rank() != 3 || cache.dim(2) != Dim(width / 2))
      call.refuse(str("a cache of ", cache.type(), " does not fit ", width, " elements"));
    Dims dims;  // those along which it changes
    if (!(cache.dim(0) == Dim(1))) dims.push_back(batch);
    if (!(cache.dim(1) == Dim(1))) dims.push_back(time);
    dims.push_back(half);
    return reshape(cache, dims);
  };
  const Tensor cosines = angles(1), sines = angles(2);
  const bool is_interleaved = call.flag("interleaved", false);
  Tensor turned = slice(x, 3, 0, width);
  if (is_interleaved) {  // even elements in front, odd ones behind
    turned = reshape(turned, {batch, heads, time, half, pair});
    turned = merge_dims(transpose(turned, Axes{batch, heads, time, pair, half}), Axes{pair, half},
                        feature);
  } else {
    turned = reshape(turned, {batch, heads, time, feature});
  }
  const Axes order{batch, heads, time, feature};
  turned = transpose(detail::rotated(turned, feature, half, cosines, sines), order);
  if (is_interleaved)
    turned =
        transpose(split_dim(turned, feature, {pair, half}), Axes{batch, heads, time, half, pair});
  Dims dims = x.dims();
  dims[3] = Dim(width);
  turned = reshape_to(turned, dims);
  if (width < x.dim(3).size()) turned = concat({turned, slice(x, 3, width)}, 3);
  return {call.stored_like(0, is_packed ? heads_together(turned) : turned)};
}

const Rule kRules[] = {
    {"Attention", run_attention, "", 23},
    {"FlexAttention", run_flex_attention, kPreview, 1, 1, false},
    {"RotaryEmbedding", run_rotary_embedding, "", 23},
};

}  // namespace

std::span<const Rule> attention_rules() { return kRules; }

}  // namespace reel::imported
