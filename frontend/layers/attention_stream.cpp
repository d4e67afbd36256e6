#include "reel/frontend/layers/attention_stream.h"

#include <algorithm>
#include <limits>

#include "reel/autodiff/tape.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/frontend/loops/fold.h"

namespace reel {
namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

Tensor in_order(const Tensor& x, const Dims& dims) {
  return x.dims() == dims ? x : transpose(x, Axes(dims));
}
Tensor spread(const Tensor& x, const Dims& dims) {
  if (x.dims() == dims) return x;
  Dims own;
  for (const Dim& dim : dims)
    if (contains(x.dims(), dim)) own.push_back(dim);
  return expand(in_order(x, own), dims);
}
Tensor reduced(const Tensor& x, const Dims& dims) {
  const Dims rest = without(x.dims(), dims);
  return in_order(rest.empty() ? x : sum(x, Axes(rest)), dims);
}

/// Returns the sum of a · b over all dims that are not in `dims`, with these dims in this order.
Tensor product(const Tensor& a, const Tensor& b, const Dims& dims) {
  Dims contracted;
  for (const Dim& dim : a.dims())
    if (contains(b.dims(), dim) && !contains(dims, dim)) contracted.push_back(dim);
  if (!contracted.empty()) return reduced(matmul(a, b, contracted), dims);
  const Dims all = with_more(a.dims(), b.dims());
  return reduced(spread(a, all) * spread(b, all), dims);
}

}  // namespace

Dim twin(const Dim& dim) {
  return dim.has_size() && !dim.is_ragged() ? dim_like({&dim, 1}, dim.name(), dim.size())
                                            : dim_like({&dim, 1}, dim.name(), dim.lengths());
}

Tensors AttentionStream::tensors(const Inputs& in) {
  Tensors result{in.q, in.k, in.v};
  if (in.bias) result.push_back(*in.bias);
  result.insert(result.end(), in.of_function.begin(), in.of_function.end());
  return result;
}

AttentionStream::Inputs AttentionStream::inputs_of(const Tensors& tensors) const {
  Inputs in{tensors[0], tensors[1], tensors[2], {}, {}};
  std::size_t next = 3;
  if (has_bias) in.bias = tensors[next++];
  for (std::size_t i = 0; i < function_inputs; ++i) in.of_function.push_back(tensors[next++]);
  return in;
}

std::pair<IterationCount, IterationCount> AttentionStream::blocks() const {
  const Tensor all = cast((extent_of(keys) + (block.size() - 1)) / block.size(), i32);
  if (!skips_blocks) return {0, all};
  const std::int64_t beyond = window ? *window : 0;
  // Without queries the extremes are the limits of i32, which clip removes.
  IterationCount first = 0, last = all;
  const auto block_of = [&](const Tensor& position) {
    return clip(floor_divide(position, block.size()), 0, all);
  };
  if (window) first = block_of(min(*positions) - beyond);
  if (is_causal || window)
    last = block_of(max(*positions) + (is_causal ? 0 : beyond) + block.size());
  return {first, last};
}

AttentionStream::Keys AttentionStream::keys_of(const Tensor& i) const {
  const Tensor lengths = cast(keys.lengths(), i32);
  Dims dims = lengths.dims();
  dims.push_back(block);
  const Tensor at = range(block, i32) + i * static_cast<std::int32_t>(block.size());
  const Tensor all = spread(at, dims), ends = spread(lengths, dims);
  return {maximum(minimum(all, ends - 1), 0), at, all < ends};
}

Tensor AttentionStream::taken(const Tensor& x, const Keys& at) const {
  return gather(x, at.places, keys);
}

/// Returns the elements of a bias or mask for the keys of a block.
Tensor AttentionStream::of_block(const Tensor& x, const Keys& at) const {
  return contains(x.dims(), keys) ? taken(x, at) : x;
}

AttentionBlock AttentionStream::block_at(const Keys& at) const {
  return {positions ? *positions : Tensor(), at.positions, block};
}

/// Returns the term that the function of a bias computes for a block.
Tensor AttentionStream::term_of(const Tensors& inputs, const Keys& at) const {
  try {
    return bias_of(inputs, block_at(at));
  } catch (Error& error) {
    if (!positions)
      error.add_line(
          "AttentionBlock::queries is empty, because attention does not know the positions of "
          "queries; give it queries, the dim of q along which they count, or offset, a position "
          "for each query");
    throw;
  }
}

/// Returns the scaled products of a block and their bias; -inf for keys that a query does not see.
Tensor AttentionStream::scores(const Inputs& in, const Tensor& k_block, const Keys& at) const {
  Dims dims = rows;
  dims.push_back(block);
  Tensor seen = spread(at.exist, dims);
  const auto hide = [&](const Tensor& visible) { seen = logical_and(seen, spread(visible, dims)); };
  if (is_causal || window) {
    const Dims both = with_more(positions->dims(), {block});
    const Tensor of_key = spread(at.positions, both), of_query = spread(*positions, both);
    if (is_causal) hide(less_equal(of_key, of_query));
    if (window) hide(less_equal(abs(of_query - of_key), *window));
  }
  if (mask) hide(of_block(*mask, at));
  Tensor x = product(in.q, k_block, dims) * scale;
  if (in.bias) x = x + spread(of_block(*in.bias, at), dims);
  if (bias_of) {
    const Tensor term = term_of(in.of_function, at);
    check_defined("attention: the bias", term);
    if (const Dims foreign = without(term.dims(), dims); !foreign.empty())
      throw ShapeError(str("attention: the function returned a bias ", term.type(),
                           " with dims besides those of the products, ", join(dims)));
    if (term.dtype() == boolean)
      hide(term);
    else
      x = x + spread(term, dims);
  }
  return where(seen, x, full({}, kMinusInf, x.dtype()));
}

std::pair<Tensor, Tensor> AttentionStream::forward(const Inputs& in) const {
  const Dims out = with_more(rows, extra);
  const auto step = [&](const Tensor& i, const std::array<Tensor, 3>& state) {
    const auto& [largest, total, sums] = state;
    const Keys at = keys_of(i);
    const Tensor s = scores(in, taken(in.k, at), at);
    const Tensor now = maximum(largest, in_order(max(s, block), rows));
    const Tensor base = where(equal(now, kMinusInf), 0, now);
    const Tensor p = exp(s - base), shrink = exp(largest - base);
    const Tensor added = product(p, taken(in.v, at), out);
    return std::array<Tensor, 3>{now, total * shrink + in_order(sum(p, block), rows),
                                 in_order(sums * shrink, out) + added};
  };
  const DType dtype = in.q.dtype();
  const auto [first, last] = blocks();
  const auto [largest, total, sums] = fori_loop(
      first, last, step,
      std::array<Tensor, 3>{full(rows, kMinusInf, dtype), zeros(rows, dtype), zeros(out, dtype)},
      {.name = "attention"});
  const Tensor divisor = where(equal(total, 0), 1, total);
  const Tensor base = where(equal(largest, kMinusInf), 0, largest);
  return {in_order(sums / divisor, out), base + log(divisor)};
}

Tensors AttentionStream::function_gradient(const Tensors& inputs, const Keys& at,
                                           const Tensor& g) const {
  // Own values: if the function also captures an input, the captured tensor gets no gradient here.
  Tensors own;
  for (const Tensor& x : inputs) own.push_back(is_float(x.dtype()) ? identity(x) : x);
  RecordingTape tape;
  for (const Tensor& x : own) tape.watch(x);
  const Tensor term = term_of(own, at);
  if (term.dtype() == boolean) return Tensors(inputs.size());
  return tape.gradient({spread(term, g.dims())}, {g}, own);
}

Tensors AttentionStream::backward(const Inputs& in, const Tensor& y, const Tensor& log_total,
                                  const Tensor& g) const {
  const Tensor own = extra.empty() ? g * y : in_order(sum(g * y, Axes(extra)), rows);
  const Dims row_block = with_more(rows, {block});
  const auto step = [&](const Tensor& i, const Tensors& state) {
    const Keys at = keys_of(i);
    const Tensor k_block = taken(in.k, at), v_block = taken(in.v, at);
    const Tensor p = exp(scores(in, k_block, at) - log_total);
    const Tensor d = p * (product(g, v_block, row_block) - own), ds = d * scale;
    Tensors next = state;
    next[0] = state[0] + product(ds, k_block, in.q.dims());
    next[1] = scatter_add(state[1], at.places, product(ds, in.q, k_block.dims()), keys);
    next[2] = scatter_add(state[2], at.places, product(p, g, v_block.dims()), keys);
    std::size_t k = 3;
    if (in.bias) {
      const Tensor of_bias = reduced(d, of_block(*in.bias, at).dims());
      next[k] = contains(in.bias->dims(), keys) ? scatter_add(state[k], at.places, of_bias, keys)
                                                : state[k] + of_bias;
      ++k;
    }
    if (bias_of && !in.of_function.empty()) {
      const Tensors gradients = function_gradient(in.of_function, at, d);
      for (std::size_t n = 0; n < gradients.size(); ++n)
        if (gradients[n].is_defined()) next[k + n] = state[k + n] + gradients[n];
    }
    return next;
  };
  Tensors initial = tensors(in);
  for (Tensor& x : initial) x = zeros_like(x);
  const auto [first, last] = blocks();
  Tensors result = fori_loop(first, last, step, initial, {.name = "the gradient of attention"});
  for (Tensor& x : result)
    if (!is_float(x.dtype())) x = Tensor();
  return result;
}

}  // namespace reel
