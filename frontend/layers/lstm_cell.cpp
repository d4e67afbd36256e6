#include "reel/frontend/layers/lstm_cell.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {

LstmCell LstmCell::init(const Dim& in, const Dim& hidden, const LstmCellOptions& options) {
  detail::check_parameter_dim("LstmCell", "in", in);
  detail::check_parameter_dim("LstmCell", "hidden", hidden);
  detail::check_parameter_dtype("LstmCell", options.dtype);
  const Dim gate("gate", 4 * hidden.size());
  const std::int64_t size = hidden.size();
  const Tensor place = range(gate);
  const Tensor is_forget = place >= size && place < 2 * size;
  LstmCell cell{
      detail::weight_of_gates("LstmCell", options.input_weight, in, gate, 4, options.dtype),
      detail::weight_of_gates("LstmCell", options.recurrent_weight, hidden, gate, 4, options.dtype),
      where(is_forget, full({gate}, options.forget_bias, options.dtype), 0),
      std::nullopt,
      in,
      hidden,
      gate};
  const Tensor none = zeros({hidden}, options.dtype);
  if (options.has_peepholes) cell.peepholes = Peepholes{none, none, none};
  return cell;
}

LstmCell::State LstmCell::initial_state(const Dims& dims) const {
  const Tensor none =
      detail::zero_state("LstmCell", dims, hidden, detail::made_dtype("LstmCell", "bias", bias));
  return {none, none};
}

std::pair<Tensor, LstmCell::State> LstmCell::operator()(const Tensor& x, const State& state) const {
  detail::check_input("LstmCell", "x", x, in, detail::made_dtype("LstmCell", "bias", bias));
  detail::check_state("LstmCell", x, in, "state.h", state.h, hidden, bias.dtype());
  detail::check_state("LstmCell", x, in, "state.c", state.c, hidden, bias.dtype());
  // One op after the other: compilers differ in the order of operands, and graphs should not.
  const Tensor of_state = matmul(state.h, recurrent_weight, hidden);
  const Tensor gates = matmul(x, input_weight, in) + of_state + bias;
  auto [i, f, g, o] = split<4>(gates, gate, hidden);
  if (peepholes) {
    i = i + peepholes->input * state.c;
    f = f + peepholes->forget * state.c;
  }
  const Tensor content = tanh(g);
  const Tensor added = sigmoid(i) * content;
  const Tensor c = sigmoid(f) * state.c + added;
  if (peepholes) o = o + peepholes->output * c;
  const Tensor seen = tanh(c);
  const Tensor h = sigmoid(o) * seen;
  return {h, {h, c}};
}

namespace {

Tensor zone_out(const Tensor& old, const Tensor& next, double rate, bool training) {
  if (!(rate >= 0 && rate <= 1))
    throw ArgumentError(str("ZoneoutLstmCell: rates must be in [0, 1], got ", rate));
  if (!training) return old * rate + next * (1 - rate);
  return where(random_uniform(next.dims(), 0, 1, next.dtype()) < rate, old, next);
}

}  // namespace

std::pair<Tensor, LstmCell::State> ZoneoutLstmCell::operator()(const Tensor& x,
                                                               const State& state) const {
  const State next = cell(x, state).second;
  const Tensor h = zone_out(state.h, next.h, zoneout_h, training);
  const Tensor c = zone_out(state.c, next.c, zoneout_c, training);
  return {h, {h, c}};
}

}  // namespace reel
