#include "reel/frontend/layers/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "reel/core/base/str.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/custom_vjp.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/loops/fold.h"

namespace reel {
namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

Dims without(Dims dims, const Dims& others) {
  std::erase_if(dims, [&](const Dim& dim) { return contains(others, dim); });
  return dims;
}
Dims with_more(Dims dims, const Dims& more) {
  for (const Dim& dim : more)
    if (!contains(dims, dim)) dims.push_back(dim);
  return dims;
}
Tensor in_order(const Tensor& x, const Dims& dims) {
  return x.dims() == dims ? x : transpose(x, Axes(dims));
}
Tensor spread(const Tensor& x, const Dims& dims) { return x.dims() == dims ? x : expand(x, dims); }

/// Returns the sum of a · b over all dims that are not in `dims`, with these dims in this order.
Tensor product(const Tensor& a, const Tensor& b, const Dims& dims) {
  Dims contracted;
  for (const Dim& dim : a.dims())
    if (contains(b.dims(), dim) && !contains(dims, dim)) contracted.push_back(dim);
  Tensor result;
  if (contracted.empty()) {
    const Dims all = with_more(a.dims(), b.dims());
    result = spread(a, all) * spread(b, all);
  } else {
    result = matmul(a, b, contracted);
  }
  const Dims rest = without(result.dims(), dims);
  if (!rest.empty()) result = sum(result, Axes(rest));
  return in_order(result, dims);
}

/// One call of attention: the sizes and inputs that forward and backward share.
struct Streamed {
  Dim keys, features;
  Dims rows;   ///< of the products: dims of q and k without keys and features
  Dims extra;  ///< dims that only v has
  std::optional<Dim> causal;
  double scale;
  Dim block;

  Tensor block_count() const {
    return cast((extent_of(keys) + (block.size() - 1)) / block.size(), i32);
  }
  /// The keys of block i: their positions, and which of them exist.
  struct Keys {
    Tensor places, positions, exist;
  };
  Keys keys_of(const Tensor& i) const {
    const Tensor lengths = cast(keys.lengths(), i32);
    Dims dims = lengths.dims();
    dims.push_back(block);
    const Tensor positions = range(block, i32) + i * static_cast<std::int32_t>(block.size());
    const Tensor all = spread(positions, dims), ends = spread(lengths, dims);
    return {maximum(minimum(all, ends - 1), 0), positions, all < ends};
  }
  /// Returns the scaled products of a block; -inf for keys that a query does not see.
  Tensor scores(const Tensor& q, const Tensor& k_block, const Keys& at) const {
    Dims dims = rows;
    dims.push_back(block);
    Tensor seen = spread(at.exist, dims);
    if (causal) {
      const Dims both{*causal, block};
      const Tensor is_before =
          less_equal(spread(at.positions, both), spread(range(*causal, i32), both));
      seen = logical_and(seen, spread(is_before, dims));
    }
    const Tensor x = product(q, k_block, dims);
    return where(seen, x * scale, full({}, kMinusInf, x.dtype()));
  }
  Tensor taken(const Tensor& x, const Keys& at) const { return gather(x, at.places, keys); }

  /// Returns the result, and the logarithm of the denominator of each row.
  std::pair<Tensor, Tensor> forward(const Tensor& q, const Tensor& k, const Tensor& v) const {
    const Dims out = with_more(rows, extra);
    const auto step = [&](const Tensor& i, const std::array<Tensor, 3>& state) {
      const auto& [largest, total, sums] = state;
      const Keys at = keys_of(i);
      const Tensor s = scores(q, taken(k, at), at);
      const Tensor now = maximum(largest, in_order(max(s, block), rows));
      const Tensor base = where(equal(now, kMinusInf), 0, now);
      const Tensor p = exp(s - base), shrink = exp(largest - base);
      const Tensor added = product(p, taken(v, at), out);
      return std::array<Tensor, 3>{now, total * shrink + in_order(sum(p, block), rows),
                                   in_order(sums * shrink, out) + added};
    };
    const DType dtype = q.dtype();
    const auto [largest, total, sums] = fori_loop(
        0, block_count(), step,
        std::array<Tensor, 3>{full(rows, kMinusInf, dtype), zeros(rows, dtype), zeros(out, dtype)},
        {.name = "attention"});
    const Tensor divisor = where(equal(total, 0), 1, total);
    const Tensor base = where(equal(largest, kMinusInf), 0, largest);
    return {in_order(sums / divisor, out), base + log(divisor)};
  }

  /// Returns the cotangents of q, k and v. Weights are computed again, block by block.
  std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& q, const Tensor& k, const Tensor& v,
                                              const Tensor& y, const Tensor& log_total,
                                              const Tensor& g) const {
    const Tensor own = extra.empty() ? g * y : in_order(sum(g * y, Axes(extra)), rows);
    const Dims row_block = with_more(rows, {block});
    const auto step = [&](const Tensor& i, const std::array<Tensor, 3>& state) {
      const Keys at = keys_of(i);
      const Tensor k_block = taken(k, at), v_block = taken(v, at);
      const Tensor p = exp(scores(q, k_block, at) - log_total);
      const Tensor ds = p * (product(g, v_block, row_block) - own) * scale;
      return std::array<Tensor, 3>{
          state[0] + product(ds, k_block, q.dims()),
          scatter_add(state[1], at.places, product(ds, q, k_block.dims()), keys),
          scatter_add(state[2], at.places, product(p, g, v_block.dims()), keys)};
    };
    const auto [dq, dk, dv] = fori_loop(
        0, block_count(), step, std::array<Tensor, 3>{zeros_like(q), zeros_like(k), zeros_like(v)},
        {.name = "the gradient of attention"});
    return {dq, dk, dv};
  }
};

void check(const Tensor& x, const char* name, const Dims& dims) {
  check_defined("attention", x);
  if (!is_float(x.dtype()))
    throw DTypeError(str("attention: ", name, " must be f32 or f64, got ", x.type()));
  for (const Dim& dim : dims)
    if (find(x.dims(), dim) < 0)
      throw ShapeError(str("attention: ", name, " ", x.type(), " has no dim ", dim));
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& given_k, const Tensor& given_v,
                 const Dim& given_keys, const Dim& given_features,
                 const AttentionOptions& options) {
  const Dim keys = canonical(given_keys), features = canonical(given_features);
  check(q, "q", {features});
  check(given_k, "k", {keys, features});
  check(given_v, "v", {keys});
  if (q.dtype() != given_k.dtype() || q.dtype() != given_v.dtype())
    throw DTypeError(str("attention: dtypes differ: q ", q.type(), ", k ", given_k.type(), ", v ",
                         given_v.type(), "; cast them to one"));
  if (options.causal) check(q, "q", {canonical(*options.causal)});
  if (contains(q.dims(), keys))
    throw ShapeError(str("attention: q ", q.type(), " has the dim of the keys, ", keys,
                         "; queries need a dim of their own: rename theirs"));
  if (options.block < 1)
    throw ArgumentError(str("attention: block must be at least 1, got ", options.block));
  if (!options.scale && !features.has_size())
    throw ArgumentError(str("attention: the size of ", features, " is not known; give scale"));
  const Tensor k = mask_padding(given_k), v = mask_padding(given_v);
  Streamed call{keys, features, {}, {}, {}, 0, Dim("block", options.block)};
  call.rows =
      without(with_more(without(q.dims(), {features}), without(k.dims(), {keys})), {features});
  call.extra = without(v.dims(), with_more(call.rows, {keys}));
  if (options.causal) call.causal = canonical(*options.causal);
  call.scale = options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(features.size()));
  // The innermost tape takes the gradient from `backward`; the tapes around it record how the
  // residuals were computed.
  ThreadMode aside = thread_mode;
  if (aside.tape) aside.tape = aside.tape->outer;
  Tensor y, log_total;
  {
    const ModeScope scope(aside);
    std::tie(y, log_total) = call.forward(q, k, v);
  }
  const auto backward = [call](const Tensors& saved, const Tensors& g) {
    auto [dq, dk, dv] = call.backward(saved[0], saved[1], saved[2], saved[3], saved[4], g[0]);
    return Tensors{std::move(dq), std::move(dk), std::move(dv)};
  };
  return with_custom_vjp({q, k, v}, {y}, {q, k, v, y, log_total}, backward)[0];
}

}  // namespace reel
