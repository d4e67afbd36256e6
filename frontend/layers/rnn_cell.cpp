#include "reel/frontend/layers/rnn_cell.h"

#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {

RnnCell RnnCell::init(const Dim& in, const Dim& hidden, const RnnCellOptions& options) {
  detail::check_parameter_dim("RnnCell", "in", in);
  detail::check_parameter_dim("RnnCell", "hidden", hidden);
  detail::check_parameter_dtype("RnnCell", options.dtype);
  const Dim gate("gate", hidden.size());
  return {
      detail::weight_of_gates("RnnCell", options.input_weight, in, gate, 1, options.dtype),
      detail::weight_of_gates("RnnCell", options.recurrent_weight, hidden, gate, 1, options.dtype),
      zeros({gate}, options.dtype),
      in,
      hidden,
      gate};
}

RnnCell::State RnnCell::initial_state(const Dims& dims) const {
  return detail::zero_state("RnnCell", dims, hidden, detail::made_dtype("RnnCell", "bias", bias));
}

std::pair<Tensor, RnnCell::State> RnnCell::operator()(const Tensor& x, const State& h) const {
  detail::check_input("RnnCell", "x", x, in, detail::made_dtype("RnnCell", "bias", bias));
  detail::check_state("RnnCell", x, in, "the state", h, hidden, bias.dtype());
  const Tensor sum = matmul(x, input_weight, in) + matmul(h, recurrent_weight, hidden) + bias;
  const Tensor next = rename(tanh(sum), gate, hidden);
  return {next, next};
}

}  // namespace reel
