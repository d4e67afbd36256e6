#include "reel/frontend/layers/mamba_block.h"

#include <array>
#include <cmath>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/activations.h"
#include "reel/core/functions/scans.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {
namespace {

constexpr const char* kBlockName = "MambaBlock";

/// Returns the inner part x and the gate z.
std::array<Tensor, 2> parts(const MambaBlock& block, const Tensor& u) {
  detail::check_input(kBlockName, "u", u, block.model,
                      detail::made_dtype(kBlockName, "skip", block.skip));
  return split<2>(block.in_projection(u), block.in_projection.out, block.inner);
}

/// The recurrence s' = decay · s + added, from x behind the convolution.
struct Recurrence {
  Tensor decay, added;  ///< [..., inner, states]
};
Recurrence recurrence(const MambaBlock& block, const Tensor& x) {
  const Tensor delta = softplus(block.step_up(block.step(x)));
  Dims dims = delta.dims();
  dims.push_back(block.states);
  const Tensor a = -exp(block.log_a);
  const Tensor decay = exp(expand(delta, dims) * a);
  const Tensor added = expand(delta * x, dims) * expand(block.to_b(x), dims);
  return {decay, added};
}

Tensor result(const MambaBlock& block, const Tensor& s, const Tensor& x, const Tensor& z) {
  const Tensor read = matmul(s, block.to_c(x), block.states);
  const Tensor y = read + x * block.skip;
  return block.out(y * silu(z));
}

}  // namespace

MambaBlock MambaBlock::init(const Dim& model, const MambaOptions& options) {
  detail::check_parameter_dim(kBlockName, "model", model);
  detail::check_parameter_dtype(kBlockName, options.dtype);
  const std::int64_t rank = options.rank ? options.rank : (model.size() + 15) / 16;
  if (options.expansion < 1 || options.states < 1 || rank < 1 || options.taps < 1)
    throw ArgumentError(str(kBlockName, ": expansion ", options.expansion, ", states ",
                            options.states, ", rank ", rank, " and taps ", options.taps,
                            " must be positive"));
  const DType dtype = options.dtype;
  const LinearOptions plain{.has_bias = false, .dtype = dtype};
  MambaBlock block;
  block.model = model;
  block.inner = Dim("inner", options.expansion * model.size());
  block.states = Dim("states", options.states);
  const Dim low("rank", rank), both("both", 2 * block.inner.size());
  block.in_projection = Linear::init(model, both, plain);
  block.conv = CausalConv::depthwise(options.taps, block.inner, {.dtype = dtype});
  block.step = Linear::init(block.inner, low, plain);
  block.step_up = Linear::init(low, block.inner, {.dtype = dtype});
  // The inverse of softplus at step sizes that are log-uniform in [0.001, 0.1].
  const Tensor size = exp(random_uniform({block.inner}, std::log(0.001), std::log(0.1), dtype));
  block.step_up.bias = size + log(-expm1(-size));
  block.to_b = Linear::init(block.inner, block.states, plain);
  block.to_c = Linear::init(block.inner, block.states, plain);
  block.log_a = expand(log(cast(range(block.states, i32) + 1, dtype)), {block.inner, block.states});
  block.skip = ones({block.inner}, dtype);
  block.out = Linear::init(block.inner, model, plain);
  return block;
}

MambaBlock::State MambaBlock::initial_state(const Dims& dims) const {
  Dims of_channels = dims;
  of_channels.push_back(inner);
  return {conv.initial_state(dims),
          detail::zero_state(kBlockName, of_channels, states, skip.dtype())};
}

std::pair<Tensor, MambaBlock::State> MambaBlock::operator()(const Tensor& u,
                                                            const State& state) const {
  const auto [inside, z] = parts(*this, u);
  detail::check_input(kBlockName, "state.s", state.s, states,
                      detail::made_dtype(kBlockName, "skip", skip));
  auto [convolved, past] = conv(inside, state.past);
  const Tensor x = silu(convolved);
  const Recurrence at = recurrence(*this, x);
  const Tensor s = at.decay * state.s + at.added;
  return {result(*this, s, x, z), {std::move(past), s}};
}

Tensor MambaBlock::operator()(const Tensor& u, const Dim& time) const {
  const auto [inside, z] = parts(*this, u);
  const Tensor x = silu(conv(inside, time));
  const Recurrence at = recurrence(*this, x);
  return result(*this, linear_scan(at.decay, at.added, time), x, z);
}

}  // namespace reel
