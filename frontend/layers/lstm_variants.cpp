#include "reel/frontend/layers/lstm_variants.h"

#include <limits>
#include <string_view>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {
namespace {

/// Returns the parameters of an LstmCell, which the variants share.
LstmCell parameters(std::string_view cell, const Dim& in, const Dim& hidden,
                    const LstmCellOptions& options) {
  detail::check_parameter_dim(cell, "in", in);
  detail::check_parameter_dim(cell, "hidden", hidden);
  if (options.has_peepholes) throw ArgumentError(str(cell, ": peepholes are for LstmCell"));
  return LstmCell::init(in, hidden, options);
}

}  // namespace

ProjectedLstmCell ProjectedLstmCell::init(const Dim& in, const Dim& hidden, const Dim& projected,
                                          const LstmCellOptions& options) {
  const LstmCell like = parameters("ProjectedLstmCell", in, hidden, options);
  detail::check_parameter_dim("ProjectedLstmCell", "projected", projected);
  if (hidden == projected)
    throw ArgumentError(str("ProjectedLstmCell: hidden and projected are the same dim, ", hidden,
                            "; make another Dim for projected"));
  const std::int64_t size = projected.size();
  return {like.input_weight,
          glorot_uniform({projected, like.gate}, size, hidden.size(), options.dtype),
          like.bias,
          glorot_uniform({hidden, projected}, hidden.size(), size, options.dtype),
          in,
          hidden,
          projected,
          like.gate};
}

ProjectedLstmCell::State ProjectedLstmCell::initial_state(const Dims& dims) const {
  const DType dtype = detail::made_dtype("ProjectedLstmCell", "bias", bias);
  return {detail::zero_state("ProjectedLstmCell", dims, projected, dtype),
          detail::zero_state("ProjectedLstmCell", dims, hidden, dtype)};
}

std::pair<Tensor, ProjectedLstmCell::State> ProjectedLstmCell::operator()(
    const Tensor& x, const State& state) const {
  constexpr std::string_view kName = "ProjectedLstmCell";
  detail::check_input(kName, "x", x, in, detail::made_dtype(kName, "bias", bias));
  detail::check_state(kName, x, in, "state.h", state.h, projected, bias.dtype());
  detail::check_state(kName, x, in, "state.c", state.c, hidden, bias.dtype());
  // One op after the other: compilers differ in the order of operands, and graphs should not.
  const Tensor of_state = matmul(state.h, recurrent_weight, projected);
  const Tensor gates = matmul(x, input_weight, in) + of_state + bias;
  const auto [i, f, g, o] = split<4>(gates, gate, hidden);
  const Tensor content = tanh(g);
  const Tensor added = sigmoid(i) * content;
  const Tensor c = sigmoid(f) * state.c + added;
  const Tensor seen = tanh(c);
  const Tensor h = matmul(sigmoid(o) * seen, projection, hidden);
  return {h, {h, c}};
}

LayerNormLstmCell LayerNormLstmCell::init(const Dim& in, const Dim& hidden,
                                          const LstmCellOptions& options) {
  const LstmCell like = parameters("LayerNormLstmCell", in, hidden, options);
  const LayerNorm of_gates = LayerNorm::init(like.gate, {.dtype = options.dtype});
  return {like.input_weight,
          like.recurrent_weight,
          like.bias,
          of_gates,
          of_gates,
          LayerNorm::init(hidden, {.dtype = options.dtype}),
          in,
          hidden,
          like.gate};
}

LayerNormLstmCell::State LayerNormLstmCell::initial_state(const Dims& dims) const {
  const Tensor none = detail::zero_state("LayerNormLstmCell", dims, hidden,
                                         detail::made_dtype("LayerNormLstmCell", "bias", bias));
  return {none, none};
}

std::pair<Tensor, LayerNormLstmCell::State> LayerNormLstmCell::operator()(
    const Tensor& x, const State& state) const {
  constexpr std::string_view kName = "LayerNormLstmCell";
  detail::check_input(kName, "x", x, in, detail::made_dtype(kName, "bias", bias));
  detail::check_state(kName, x, in, "state.h", state.h, hidden, bias.dtype());
  detail::check_state(kName, x, in, "state.c", state.c, hidden, bias.dtype());
  const Tensor state_part = of_state(matmul(state.h, recurrent_weight, hidden));
  const Tensor gates = of_input(matmul(x, input_weight, in)) + state_part + bias;
  const auto [i, f, g, o] = split<4>(gates, gate, hidden);
  const Tensor content = tanh(g);
  const Tensor added = sigmoid(i) * content;
  const Tensor c = sigmoid(f) * state.c + added;
  const Tensor seen = tanh(of_cell(c));
  const Tensor h = sigmoid(o) * seen;
  return {h, {h, c}};
}

SLstmCell SLstmCell::init(const Dim& in, const Dim& hidden, const LstmCellOptions& options) {
  const LstmCell like = parameters("SLstmCell", in, hidden, options);
  return {like.input_weight, like.recurrent_weight, like.bias, in, hidden, like.gate};
}

SLstmCell::State SLstmCell::initial_state(const Dims& dims) const {
  const Tensor none =
      detail::zero_state("SLstmCell", dims, hidden, detail::made_dtype("SLstmCell", "bias", bias));
  return {none, none, none,
          full(none.dims(), -std::numeric_limits<double>::infinity(), none.dtype())};
}

std::pair<Tensor, SLstmCell::State> SLstmCell::operator()(const Tensor& x,
                                                          const State& state) const {
  detail::check_input("SLstmCell", "x", x, in, detail::made_dtype("SLstmCell", "bias", bias));
  detail::check_state("SLstmCell", x, in, "state.h", state.h, hidden, bias.dtype());
  detail::check_state("SLstmCell", x, in, "state.c", state.c, hidden, bias.dtype());
  const Tensor of_state = matmul(state.h, recurrent_weight, hidden);
  const Tensor gates = matmul(x, input_weight, in) + of_state + bias;
  const auto [i, f, z, o] = split<4>(gates, gate, hidden);
  const Tensor kept = state.m - softplus(-f);  // log σ(f) = -softplus(-f)
  // h does not depend on m, which only scales c and n.
  const Tensor m = maximum(kept, i);
  const Tensor input = exp(i - m), forget = exp(kept - m);
  const Tensor content = tanh(z);
  const Tensor added = input * content;
  const Tensor c = forget * state.c + added;
  const Tensor n = forget * state.n + input;
  const Tensor mean = c / n;
  const Tensor h = sigmoid(o) * mean;
  return {h, {h, c, n, m}};
}

}  // namespace reel
