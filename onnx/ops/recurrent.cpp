// RNN, GRU and LSTM, as scans over time.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/products.h"
#include "reel/core/functions/shape.h"
#include "reel/frontend/loops/scan.h"
#include "reel/onnx/ops/rows.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

// ---- Activations of cells ---------------------------------------------------------------------

/// An activation with its numbers.
struct Activation {
  std::string name;
  double alpha, beta, limit;  ///< limit: of the argument's size; 0 for none

  Tensor operator()(const Tensor& given) const {
    const Tensor x = limit > 0 ? clip(given, -limit, limit) : given;
    if (name == "tanh") return tanh(x);
    if (name == "sigmoid") return sigmoid(x);
    if (name == "relu") return relu(x);
    if (name == "affine") return x * alpha + beta;
    if (name == "leakyrelu") return where(x < 0, x * alpha, x);
    if (name == "thresholdedrelu") return where(x > alpha, x, zeros_like(x));
    if (name == "scaledtanh") return tanh(x * beta) * alpha;
    if (name == "hardsigmoid") return clip(x * alpha + beta, 0., 1.);
    if (name == "elu") return where(x < 0, expm1(where(x < 0, x, zeros_like(x))) * alpha, x);
    if (name == "softsign") return x / (abs(x) + 1);
    if (name == "softplus") return softplus(x);
    throw ArgumentError(str("the activation ", name, " is not supported"));
  }
};

/// The numbers that an activation takes from activation_alpha and activation_beta, and their
/// defaults, equal to the defaults of the op of that name.
struct ActivationNumbers {
  const char* name;
  bool has_alpha, has_beta;
  double alpha, beta;
};
constexpr ActivationNumbers kNumbers[] = {
    {"affine", true, true, 1, 0},           {"leakyrelu", true, false, 0.01, 0},
    {"thresholdedrelu", true, false, 1, 0}, {"scaledtanh", true, true, 1, 1},
    {"hardsigmoid", true, true, 0.2, 0.5},  {"elu", true, false, 1, 0}};

/// Returns the activations of all directions, one behind another.
std::vector<Activation> activations_of(const Call& call, std::vector<std::string> otherwise,
                                       std::size_t directions) {
  std::vector<std::string> names = call.texts("activations");
  if (names.empty())
    for (std::size_t d = 0; d < directions; ++d)
      names.insert(names.end(), otherwise.begin(), otherwise.end());
  if (names.size() != otherwise.size() * directions)
    call.refuse(
        str(names.size(), " activations for ", directions, " directions of ", otherwise.size()));
  const auto alphas = call.numbers("activation_alpha"), betas = call.numbers("activation_beta");
  std::size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> result;
  for (std::string& name : names) {
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    Activation activation{name, 0, 0, call.number("clip", 0)};
    for (const ActivationNumbers& numbers : kNumbers) {
      if (name != numbers.name) continue;
      activation.alpha =
          numbers.has_alpha && next_alpha < alphas.size() ? alphas[next_alpha++] : numbers.alpha;
      activation.beta =
          numbers.has_beta && next_beta < betas.size() ? betas[next_beta++] : numbers.beta;
    }
    result.push_back(std::move(activation));
  }
  return result;
}

// ---- Sequences and directions -----------------------------------------------------------------

/// One direction of a node, with the tensors that belong to it.
struct Direction {
  Tensor x;          ///< [time, batch, input], in the order of the loop
  Tensor weight;     ///< [gates * hidden, input]
  Tensor recurrent;  ///< [gates * hidden, hidden]
  Tensor bias;       ///< [2 * gates * hidden], or empty
  Tensor peephole;   ///< [3 * hidden], or empty
  Tensors state;     ///< h, and c of an LSTM: [batch, hidden]
  const Activation* activations;
};

/// A step of a cell: takes the products of the inputs and the state, returns the new state.
using Cell = std::function<Tensors(const Tensor& products, const Tensors& state)>;

/// A node of RNN, GRU or LSTM. The first inputs are X, W, R, B, sequence_lens, initial_h.
struct Recurrent {
  const Call& call;
  std::vector<std::string> default_activations;
  std::size_t state_count;      ///< 1, or 2 for an LSTM
  std::size_t first_state = 5;  ///< the input with the first initial state
  std::optional<std::size_t> peepholes = {};
  Cell (*cell)(const Call&, const Direction&);
};

Tensor part_of(const Tensor& x, std::size_t index) {
  return gather(x, scalar(static_cast<std::int64_t>(index), i64), 0);
}

/// Returns part `gate` of an axis that has the gates one behind another.
Tensor gate_of(const Tensor& x, std::int64_t gate, std::int64_t hidden, int axis = -1) {
  return slice(x, axis < 0 ? axis + x.rank() : axis, gate * hidden, (gate + 1) * hidden);
}

/// The sum of both biases, or an empty Tensor.
Tensor whole_bias(const Direction& at, std::int64_t width) {
  if (!at.bias.is_defined()) return {};
  return slice(at.bias, 0, 0, width) + slice(at.bias, 0, width, 2 * width);
}
Tensor plus(const Tensor& x, const Tensor& bias) { return bias.is_defined() ? x + bias : x; }

/// Runs one direction. inside: [time, batch, 1], true within an entry's length, or empty. Returns
/// all h, [time, batch, hidden], in the order of the loop, and the final state.
std::pair<Tensor, Tensors> run_direction(const Recurrent& node, const Direction& at,
                                         const Tensor& inside) {
  const Cell cell = node.cell(node.call, at);
  const Tensor products = matmul(at.x, transpose(at.weight, {1, 0}));
  Tensors xs{products};
  if (inside.is_defined()) xs.push_back(inside);
  const auto step = [&](const Tensors& x, const Tensors& state) {
    Tensors next = cell(x[0], state);
    if (x.size() == 1) return std::pair{next[0], next};
    const Tensor y = where(x[1], next[0], zeros_like(next[0]));
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = where(x[1], next[i], state[i]);
    return std::pair{y, next};
  };
  auto result =
      scan(Scan{.initial = at.state, .xs = xs, .body = step, .name = node.call.node().name});
  return {result.ys, result.state};
}

Values run_recurrent(const Recurrent& node) {
  const Call& call = node.call;
  const bool is_batch_first = call.integer("layout", 0) != 0;
  const std::string direction = call.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    call.refuse(str("the direction ", direction, " is not supported"));
  const std::size_t directions = direction == "bidirectional" ? 2 : 1;
  const auto activations = activations_of(call, node.default_activations, directions);

  const Tensor x = is_batch_first ? transpose_first_two(call.tensor(0)) : call.tensor(0);
  if (x.rank() != 3 || call.tensor(1).rank() != 3 || call.tensor(2).rank() != 3)
    call.refuse("X, W and R have three axes");
  const std::int64_t hidden = call.tensor(2).dim(-1).size();
  const Dim time = x.dim(0), batch = x.dim(1);
  Tensor lengths, inside;
  if (call.has(4)) {
    lengths = cast(call.tensor(4), i64);
    inside = transpose_first_two(is_within(time, lengths));
    Dims dims = inside.dims();
    dims.emplace_back(1);
    inside = reshape(inside, dims);
  }
  const auto reversed = [&](const Tensor& sequence) {
    if (!lengths.is_defined()) return reverse(sequence, 0);
    return transpose_first_two(gather(transpose_first_two(sequence),
                                      reversed_positions(time, lengths), 1, {.batch_dims = 1}));
  };

  Tensors outputs;
  std::vector<Tensors> finals(node.state_count);
  for (std::size_t d = 0; d < directions; ++d) {
    const bool is_reverse = direction == "reverse" || d == 1;
    Direction at{is_reverse ? reversed(x) : x,
                 part_of(call.tensor(1), d),
                 part_of(call.tensor(2), d),
                 {},
                 {},
                 {},
                 &activations[d * node.default_activations.size()]};
    if (call.has(3)) at.bias = part_of(call.tensor(3), d);
    if (node.peepholes && call.has(*node.peepholes))
      at.peephole = part_of(call.tensor(*node.peepholes), d);
    for (std::size_t s = 0; s < node.state_count; ++s) {
      const std::size_t input = node.first_state + s;
      if (!call.has(input))
        at.state.push_back(zeros({batch, Dim(hidden)}, x.dtype()));
      else
        at.state.push_back(part_of(
            is_batch_first ? transpose_first_two(call.tensor(input)) : call.tensor(input), d));
    }
    const auto [ys, state] = run_direction(node, at, inside);
    outputs.push_back(is_reverse ? reversed(ys) : ys);
    for (std::size_t s = 0; s < node.state_count; ++s) finals[s].push_back(state[s]);
  }
  // [time, directions, batch, hidden], or [batch, time, directions, hidden].
  const Tensor y = stack(outputs, 1);
  Values results{call.like(0, is_batch_first ? transpose(y, {2, 0, 1, 3}) : y)};
  for (const Tensors& final : finals) {
    const Tensor state = stack(final, 0);
    results.push_back(call.like(0, is_batch_first ? transpose_first_two(state) : state));
  }
  return results;
}

// ---- Cells ------------------------------------------------------------------------------------

Cell rnn_cell(const Call&, const Direction& at) {
  const Tensor recurrent = transpose(at.recurrent, {1, 0});
  const Tensor bias = whole_bias(at, at.recurrent.dim(0).size());
  const Activation& f = at.activations[0];
  return [=](const Tensor& products, const Tensors& state) {
    return Tensors{f(plus(products, bias) + matmul(state[0], recurrent))};
  };
}

/// Gates: update z, reset r, hidden h.
Cell gru_cell(const Call& call, const Direction& at) {
  const std::int64_t hidden = at.recurrent.dim(1).size();
  const Tensor recurrent = transpose(at.recurrent, {1, 0});
  const Tensor of_gates = slice(recurrent, 1, 0, 2 * hidden),
               of_hidden = gate_of(recurrent, 2, hidden);
  Tensor bias, hidden_bias;  // all biases of the input; the bias of the state for h
  if (at.bias.is_defined()) {
    const Tensor input = slice(at.bias, 0, 0, 3 * hidden),
                 state = slice(at.bias, 0, 3 * hidden, 6 * hidden);
    hidden_bias = gate_of(state, 2, hidden);
    bias = input + concat({slice(state, 0, 0, 2 * hidden), zeros_like(hidden_bias)}, 0);
  }
  const Activation &f = at.activations[0], &g = at.activations[1];
  const bool resets_product = call.flag("linear_before_reset", false);
  return [=](const Tensor& products, const Tensors& state) {
    const Tensor x = plus(products, bias), &h = state[0];
    const Tensor gates = slice(x, 1, 0, 2 * hidden) + matmul(h, of_gates);
    const Tensor z = f(gate_of(gates, 0, hidden)), r = f(gate_of(gates, 1, hidden));
    const Tensor of_state = resets_product ? r * plus(matmul(h, of_hidden), hidden_bias)
                                           : plus(matmul(r * h, of_hidden), hidden_bias);
    const Tensor candidate = g(gate_of(x, 2, hidden) + of_state);
    return Tensors{(1 - z) * candidate + z * h};
  };
}

/// Gates: input i, output o, forget f, cell c. Peepholes: i, o, f.
Cell lstm_cell(const Call& call, const Direction& at) {
  const std::int64_t hidden = at.recurrent.dim(1).size();
  const Tensor recurrent = transpose(at.recurrent, {1, 0});
  const Tensor bias = whole_bias(at, 4 * hidden);
  const Tensor peephole = at.peephole;
  const Activation &f = at.activations[0], &g = at.activations[1], &h = at.activations[2];
  const bool couples = call.flag("input_forget", false);
  return [=](const Tensor& products, const Tensors& state) {
    const Tensor gates = plus(products, bias) + matmul(state[0], recurrent);
    const auto gate = [&](std::int64_t index, int peeps, const Tensor& c) {
      const Tensor x = gate_of(gates, index, hidden);
      return peephole.is_defined() && peeps >= 0 ? x + gate_of(peephole, peeps, hidden) * c : x;
    };
    const Tensor i = f(gate(0, 0, state[1]));
    const Tensor forget = couples ? 1 - i : f(gate(2, 2, state[1]));
    const Tensor c = forget * state[1] + i * g(gate(3, -1, {}));
    const Tensor o = f(gate(1, 1, c));
    return Tensors{o * h(c), c};
  };
}

Values run_rnn(const Call& call) {
  return run_recurrent(
      {.call = call, .default_activations = {"Tanh"}, .state_count = 1, .cell = rnn_cell});
}
Values run_gru(const Call& call) {
  return run_recurrent({.call = call,
                        .default_activations = {"Sigmoid", "Tanh"},
                        .state_count = 1,
                        .cell = gru_cell});
}
Values run_lstm(const Call& call) {
  return run_recurrent({.call = call,
                        .default_activations = {"Sigmoid", "Tanh", "Tanh"},
                        .state_count = 2,
                        .peepholes = 7,
                        .cell = lstm_cell});
}

const Rule kRules[] = {{"GRU", run_gru}, {"LSTM", run_lstm}, {"RNN", run_rnn}};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRules; }

}  // namespace reel::imported
