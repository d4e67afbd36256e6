#include "reel/frontend/layers/gru_cell.h"

#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {

GruCell GruCell::init(const Dim& in, const Dim& hidden, const GruCellOptions& options) {
  detail::check_parameter_dim("GruCell", "in", in);
  detail::check_parameter_dim("GruCell", "hidden", hidden);
  detail::check_parameter_dtype("GruCell", options.dtype);
  const Dim gate("gate", 3 * hidden.size());
  std::optional<Tensor> candidate_bias;
  if (options.reset_after) candidate_bias = zeros({hidden}, options.dtype);
  return {
      detail::weight_of_gates("GruCell", options.input_weight, in, gate, 3, options.dtype),
      detail::weight_of_gates("GruCell", options.recurrent_weight, hidden, gate, 3, options.dtype),
      zeros({gate}, options.dtype),
      candidate_bias,
      in,
      hidden,
      gate};
}

GruCell::State GruCell::initial_state(const Dims& dims) const {
  return detail::zero_state("GruCell", dims, hidden, detail::made_dtype("GruCell", "bias", bias));
}

std::pair<Tensor, GruCell::State> GruCell::operator()(const Tensor& x, const State& h) const {
  detail::check_input("GruCell", "x", x, in, detail::made_dtype("GruCell", "bias", bias));
  detail::check_state("GruCell", x, in, "the state", h, hidden, bias.dtype());
  const auto [x_r, x_z, x_n] = split<3>(matmul(x, input_weight, in) + bias, gate, hidden);
  const auto mix = [&, &x_z = x_z](const Tensor& h_z, const Tensor& n) {
    const Tensor z = sigmoid(x_z + h_z), next = n + z * (h - n);
    return std::pair{next, next};
  };
  if (candidate_bias) {
    const auto [h_r, h_z, h_n] = split<3>(matmul(h, recurrent_weight, hidden), gate, hidden);
    // One op after the other: compilers differ in the order of operands, and graphs should not.
    const Tensor candidate = h_n + *candidate_bias;
    const Tensor reset = sigmoid(x_r + h_r);
    return mix(h_z, tanh(x_n + reset * candidate));
  }
  // U_r and U_z are applied to h in one product, U_n to r h.
  const std::int64_t units = hidden.size();
  const Dim both("both", 2 * units), part("part", units);
  const Tensor u_rz = slice(recurrent_weight, gate, 0, 2 * units, both),
               u_n = slice(recurrent_weight, gate, 2 * units, {}, part);
  const auto [h_r, h_z] = split<2>(matmul(h, u_rz, hidden), both, hidden);
  const Tensor rest = sigmoid(x_r + h_r) * h;
  return mix(h_z, tanh(x_n + rename(matmul(rest, u_n, hidden), part, hidden)));
}

}  // namespace reel
