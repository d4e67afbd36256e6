#include "reel/frontend/layers/multi_head_attention.h"

#include <cmath>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/functions/updates.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/layers/attention.h"
#include "reel/frontend/layers/attention_stream.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"
#include "reel/frontend/layers/positions.h"

namespace reel {
namespace {

constexpr const char* kLayerName = "MultiHeadAttention";

Tensor expanded(const Tensor& x, const Dims& dims) {
  return x.dims() == dims ? x : expand(x, dims);
}

/// Returns the positions along a dim behind an offset: the dims of the offset, then the dim.
Tensor positions_along(const Dim& time, const std::optional<Tensor>& offset) {
  const Tensor along = range(time, i32);
  if (!offset) return along;
  const Dims dims = with_more(offset->dims(), {time});
  return expanded(along, dims) + expanded(*offset, dims);
}

/// Returns key position - query position over the dims of both.
Tensor distances(const AttentionBlock& at) {
  const Dims dims = with_more(at.queries.dims(), {at.block});
  return expanded(at.keys, dims) - expanded(at.queries, dims);
}

/// Returns turned queries. Their product with the sinusoids of a key's position equals the product
/// of the queries with the sinusoids of the distance query - key. This follows from the addition
/// theorems of sin(i - j) and cos(i - j).
/// x: [..., sinusoid].
Tensor turned(const Tensor& x, const Dim& sinusoid, const Tensor& positions) {
  const Dim pair("pair", sinusoid.size() / 2), two("two", 2);
  const auto parts = [&](const Tensor& of) {
    return unstack(split_dim(of, sinusoid, {pair, two}), two);
  };
  const Tensors of_x = parts(x), at = parts(sinusoidal_positions(positions, sinusoid, x.dtype()));
  const Tensor &a = of_x[0], &b = of_x[1], &s = at[0], &c = at[1];
  const Tensor of_sine = b * s - a * c, of_cosine = a * s + b * c;
  Tensor both = stack({of_sine, of_cosine}, two);
  Dims order = without(both.dims(), {pair, two});
  order.push_back(pair);
  order.push_back(two);
  return merge_dims(transpose(both, Axes(order)), {pair, two}, sinusoid);
}

/// Throws ShapeError if x lacks the dim of the sequence.
void check_time(const Tensor& x, const Dim& time) {
  if (!contains(x.dims(), time))
    throw ShapeError(str(kLayerName, ": x ", x.type(), " has no dim ", time,
                         " to attend along; for one time step, call layer(x, state)",
                         lacking_dim_hint(time, x.dims())));
}

}  // namespace

MultiHeadAttention MultiHeadAttention::init(const Dim& model, std::int64_t heads,
                                            const MultiHeadAttentionOptions& options) {
  detail::check_parameter_dim(kLayerName, "model", model);
  detail::check_parameter_dtype(kLayerName, options.dtype);
  const std::int64_t key_heads = options.key_heads ? options.key_heads : heads;
  if (heads < 1 || model.size() % heads)
    throw ArgumentError(str(kLayerName, ": ", heads, " heads do not divide model ", model));
  if (key_heads < 1 || heads % key_heads)
    throw ArgumentError(
        str(kLayerName, ": ", key_heads, " key_heads do not divide ", heads, " heads"));
  const std::int64_t size = model.size() / heads;
  if (options.positions == PositionEncoding::rotary && size % 2)
    throw ArgumentError(str(kLayerName,
                            ": rotary positions need an even number of features for each ",
                            "head, got ", size, ": ", model.size(), " over ", heads, " heads"));
  if (options.positions == PositionEncoding::transformer_xl && model.size() % 2)
    throw ArgumentError(
        str(kLayerName, ": transformer_xl needs an even size of model, got ", model));
  if (options.max_distance < 0)
    throw ArgumentError(
        str(kLayerName, ": max_distance must not be negative, got ", options.max_distance));
  const Dim memory = options.memory.value_or(model);
  const LinearOptions linear{.has_bias = options.has_bias, .dtype = options.dtype};
  MultiHeadAttention layer;
  layer.query = Linear::init(model, Dim("queries", heads * size), linear);
  layer.key = Linear::init(memory, Dim("keys", key_heads * size), linear);
  layer.value = Linear::init(memory, Dim("values", key_heads * size), linear);
  layer.out = Linear::init(Dim("heads", heads * size), model, linear);
  layer.model = model;
  layer.key_heads = Dim("key_heads", key_heads);
  layer.group = Dim("group", heads / key_heads);
  layer.features = Dim("features", size);
  layer.value_features = Dim("value_features", size);
  layer.distance = Dim("distance", 2 * options.max_distance + 1);
  if (options.capacity) layer.capacity = *options.capacity;
  layer.positions = options.positions;
  layer.rotary_base = options.rotary_base;
  layer.window = options.window;
  layer.is_causal = options.is_causal;
  if (options.positions == PositionEncoding::relative)
    layer.relative = random_normal({layer.distance, layer.features}, options.dtype) *
                     (1 / std::sqrt(static_cast<double>(size)));
  if (options.positions == PositionEncoding::transformer_xl) {
    const Dims of_head{layer.key_heads, layer.group, layer.features};
    const Dim sinusoid("sinusoid", model.size());
    layer.xl =
        TransformerXl{zeros(of_head, options.dtype), zeros(of_head, options.dtype),
                      glorot_uniform({sinusoid, layer.key_heads, layer.group, layer.features},
                                     model.size(), model.size(), options.dtype),
                      sinusoid};
  }
  return layer;
}

MultiHeadAttention::State MultiHeadAttention::initial_state(const Dims& dims,
                                                            const Dim& positions) const {
  detail::check_parameter_dim(kLayerName, "positions", positions);
  Dims all = dims;
  all.push_back(positions);
  all.push_back(key_heads);
  const DType dtype = detail::made_dtype(kLayerName, "query.weight", query.weight);
  return {detail::zero_state(kLayerName, all, features, dtype),
          detail::zero_state(kLayerName, all, value_features, dtype), zeros(dims, i32)};
}

MultiHeadAttention::State MultiHeadAttention::initial_state(const Dims& dims) const {
  if (!capacity.is_named())
    throw ArgumentError(str(kLayerName,
                            ": the number of positions in the state is not known; give ",
                            "init the option capacity, or initial_state a Dim"));
  return initial_state(dims, capacity);
}

/// Returns the keys of x; at positions unless these are null.
Tensor MultiHeadAttention::keys_at(const Tensor& x, const Tensor* at) const {
  const Tensor keys = split_dim(key(x), key.out, {key_heads, features});
  return at && positions == PositionEncoding::rotary ? rotary(keys, features, *at, rotary_base)
                                                     : keys;
}

Tensor MultiHeadAttention::values_of(const Tensor& x) const {
  return split_dim(value(x), value.out, {key_heads, value_features});
}

/// Returns the projected results of all heads.
Tensor MultiHeadAttention::joined(const Tensor& y) const {
  Dims order = without(y.dims(), {key_heads, group, value_features});
  for (const Dim& dim : {key_heads, group, value_features}) order.push_back(dim);
  const Tensor heads = y.dims() == order ? y : transpose(y, Axes(order));
  return out(merge_dims(heads, {key_heads, group, value_features}, out.in));
}

/// Attends from x to keys and values of the same sequence.
Tensor MultiHeadAttention::attend(const Tensor& x, const Dim& queries,
                                  const std::optional<Tensor>& offset, const Tensor& keys,
                                  const Tensor& values, const Dim& time) const {
  Tensor q = split_dim(query(x), query.out, {key_heads, group, features});
  AttentionOptions options{.queries = queries, .offset = offset, .window = window};
  if (is_causal) options.causal = queries;
  const DType dtype = q.dtype();
  const double scale = 1 / std::sqrt(static_cast<double>(features.size()));
  const Tensor at = positions_along(queries, offset);
  if (positions == PositionEncoding::rotary) q = rotary(q, features, at, rotary_base);
  if (positions == PositionEncoding::alibi) {
    const Dim all("heads", key_heads.size() * group.size());
    const Tensor slopes = split_dim(alibi_slopes(all, dtype), all, {key_heads, group});
    options.bias_of =
        attention_bias(None{}, [slopes, dtype](const None&, const AttentionBlock& block) {
          const Tensor away = cast(abs(distances(block)), dtype);
          const Dims dims = with_more(slopes.dims(), away.dims());
          return expanded(slopes, dims) * expanded(-away, dims);
        });
  }
  if (relative) {
    // A product for each distance, from which a block gathers its own.
    const Tensor products = matmul(q, *relative, features) * scale;
    const std::int64_t most = distance.size() / 2;
    options.bias_of = attention_bias(
        products, [dim = distance, most](const Tensor& products, const AttentionBlock& block) {
          return gather(products, clip(distances(block), -most, most) + most, dim);
        });
  }
  if (xl) {
    const Dim sinusoid = xl->sinusoid;
    const Tensor from = matmul(q + xl->position, xl->weight, features) * scale;
    options.bias_of = attention_bias(
        turned(from, sinusoid, at), [sinusoid](const Tensor& from, const AttentionBlock& block) {
          return matmul(from, sinusoidal_positions(block.keys, sinusoid, from.dtype()), sinusoid);
        });
    q = q + xl->content;
  }
  return joined(attention(q, keys, values, time, features, options));
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Dim& given) const {
  detail::check_input(kLayerName, "x", x, model,
                      detail::made_dtype(kLayerName, "query.weight", query.weight));
  const Dim time = canonical(given), past = twin(time);
  check_time(x, time);
  const Tensor at = range(time, i32);
  return attend(x, time, {}, rename(keys_at(x, &at), time, past), rename(values_of(x), time, past),
                past);
}

std::pair<Tensor, MultiHeadAttention::State> MultiHeadAttention::operator()(const Tensor& x,
                                                                            const Dim& given,
                                                                            State state) const {
  const DType dtype = detail::made_dtype(kLayerName, "query.weight", query.weight);
  detail::check_input(kLayerName, "x", x, model, dtype);
  detail::check_input(kLayerName, "state.keys", state.keys, features, dtype);
  detail::check_input(kLayerName, "state.values", state.values, value_features, dtype);
  if (!is_causal)
    throw ArgumentError(str(kLayerName, ": steps need a causal layer; give init is_causal = true"));
  const Dim time = canonical(given);
  check_time(x, time);
  const Dims rest = without(state.keys.dims(), with_more(state.size.dims(), {key_heads, features}));
  if (rest.size() != 1)
    throw ShapeError(str(kLayerName, ": state.keys ", state.keys.type(),
                         " must have the dims of size ", state.size.type(), ", positions, ",
                         key_heads, " and ", features, "; make the state with initial_state"));
  const Dim& cache = rest[0];
  for (const Dim& dim : x.dims())
    if (dim != time && dim != model && !contains(state.size.dims(), dim))
      throw ShapeError(str(kLayerName, ": x has the dim ", dim,
                           ", which the state lacks: state.keys ", state.keys.type(),
                           "; make the state with initial_state and the dims of x",
                           one_dim_hint({dim}, state.size.dims())));
  const Tensor at = positions_along(time, state.size);
  const Tensor k = keys_at(x, &at), v = values_of(x);
  State next;
  try {
    if (time.has_size() && !time.is_ragged() &&
        time.size() == 1) {  // in place, unlike several places
      next.keys = set_at(std::move(state.keys), state.size, squeeze(k, time), cache);
      next.values = set_at(std::move(state.values), state.size, squeeze(v, time), cache);
    } else {
      next.keys = set_at(std::move(state.keys), at, k, cache);
      next.values = set_at(std::move(state.values), at, v, cache);
    }
  } catch (IndexError& error) {
    error.name_function(kLayerName);
    error.add_line(str("The state has no place behind ", cache,
                       "; make it with a larger dim: initial_state(dims, positions)."));
    throw;
  }
  next.size = state.size + expanded(cast(time.lengths(), i32), state.size.dims());
  return {attend(x, time, state.size, next.keys, next.values, cache), next};
}

std::pair<Tensor, MultiHeadAttention::State> MultiHeadAttention::operator()(const Tensor& x,
                                                                            State state) const {
  const Dim one("one", 1);
  Dims dims = x.dims();
  dims.insert(dims.end() - (dims.empty() ? 0 : 1), one);
  auto [y, next] = (*this)(expand(x, dims), one, std::move(state));
  return {squeeze(y, one), std::move(next)};
}

MultiHeadAttention::Memory MultiHeadAttention::of(const Tensor& x, const Dim& given) const {
  const DType dtype = detail::made_dtype(kLayerName, "key.weight", key.weight);
  if (key.in == model && x.is_defined() && x.type().is_named() && !contains(x.dims(), model))
    throw ShapeError(str(kLayerName, ": the memory ", x.type(), " has no dim ", model,
                         ", the features of x; for a memory with other features, give init the ",
                         "option memory, their dim"));
  detail::check_input(kLayerName, "the memory", x, key.in, dtype);
  return {keys_at(x, nullptr), values_of(x), given};
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Memory& memory) const {
  detail::check_input(kLayerName, "x", x, model,
                      detail::made_dtype(kLayerName, "query.weight", query.weight));
  const Tensor q = split_dim(query(x), query.out, {key_heads, group, features});
  return joined(attention(q, memory.keys, memory.values, memory.time, features));
}

}  // namespace reel
