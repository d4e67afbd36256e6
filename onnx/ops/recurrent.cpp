// RNN, GRU and LSTM, as scans over time. Lengths of entries make the time a ragged dim.
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
/// defaults: they equal the defaults of the op with the same name.
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

/// The dims of a node's tensors. They are named, so that lengths can belong to entries.
struct RecurrentDims {
  Dim steps;  ///< all steps of X
  Dim time;   ///< the steps that are computed: ragged if the node has lengths, otherwise `steps`
  Dim batch, in, hidden;
  Dim gates;  ///< the elements of all gates, one gate behind another
};

/// One direction of a node, with the tensors that belong to it.
struct Direction {
  const RecurrentDims& dims;
  bool is_reverse;
  Tensor weight;     ///< [gates, in]
  Tensor recurrent;  ///< [gates, hidden]
  Tensor bias;       ///< [2 * gates], or empty
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
  std::int64_t gates = 1;
  Cell (*cell)(const Call&, const Direction&);
};

Tensor part_of(const Tensor& x, std::size_t index) {
  return gather(x, scalar(static_cast<std::int64_t>(index), i64), 0);
}

/// Returns part `index` of the last axis, which has the gates one behind another.
Tensor gate_of(const Tensor& x, std::int64_t index, const Dim& hidden) {
  const std::int64_t size = hidden.size();
  return slice(x, x.rank() - 1, index * size, (index + 1) * size, hidden);
}
/// Returns the elements of all gates of the input's bias (0), or of the state's (1).
Tensor bias_of(const Direction& at, std::int64_t index) {
  const std::int64_t size = at.dims.gates.size();
  return slice(at.bias, 0, index * size, (index + 1) * size, at.dims.gates);
}
/// The sum of both biases, or an empty Tensor.
Tensor whole_bias(const Direction& at) {
  return at.bias.is_defined() ? bias_of(at, 0) + bias_of(at, 1) : Tensor();
}
Tensor plus(const Tensor& x, const Tensor& bias) { return bias.is_defined() ? x + bias : x; }

/// Returns a named dim with the size of a plain axis.
Dim named_as(const char* name, const Dim& axis) {
  return axis.has_size() ? Dim(name, axis.size()) : Dim(name, axis.lengths());
}

/// Returns the dims of a node. x: [time, batch, in], plain.
RecurrentDims dims_of(const Recurrent& node, const Tensor& x) {
  RecurrentDims dims{named_as("steps", x.dim(0)),
                     {},
                     named_as("batch", x.dim(1)),
                     named_as("in", node.call.tensor(1).dim(-1)),
                     {},
                     {}};
  const std::int64_t hidden = node.call.tensor(2).dim(-1).size();
  dims.hidden = Dim("hidden", hidden);
  dims.gates = Dim("gates", node.gates * hidden);
  dims.time = dims.steps;
  if (node.call.has(4)) {
    const Tensor most =
        x.dim(0).has_size() ? scalar(x.dim(0).size(), i64) : cast(x.dim(0).lengths(), i64);
    const Tensor lengths = minimum(maximum(cast(node.call.tensor(4), i64), 0), most);
    dims.time = Dim("time", cast(reshape(lengths, Dims{dims.batch}), i32));
  }
  return dims;
}

/// Runs one direction. xs: [time, batch, in]. Returns all h, [time, batch, hidden], and the final
/// state.
std::pair<Tensor, Tensors> run_direction(const Recurrent& node, const Direction& at,
                                         const Tensor& xs) {
  const Cell cell = node.cell(node.call, at);
  const auto step = [&](const Tensor& products, const Tensors& state) {
    Tensors next = cell(products, state);
    return std::pair{next[0], next};
  };
  auto result = scan(Scan{.spatial_dim = at.dims.time,
                          .initial = at.state,
                          .xs = matmul(xs, at.weight, at.dims.in),
                          .body = step,
                          .reverse = at.is_reverse,
                          .name = node.call.node().name});
  return {result.ys, result.state};
}

/// Returns the parameters and the initial state of direction `d` of a node.
Direction direction_of(const Recurrent& node, const RecurrentDims& dims, std::size_t d,
                       bool is_reverse, bool is_batch_first, const Activation* activations) {
  const Call& call = node.call;
  Direction at{dims,
               is_reverse,
               reshape(part_of(call.tensor(1), d), Dims{dims.gates, dims.in}),
               reshape(part_of(call.tensor(2), d), Dims{dims.gates, dims.hidden}),
               {},
               {},
               {},
               activations};
  if (call.has(3))
    at.bias = reshape(part_of(call.tensor(3), d), Dims{Dim("biases", 2 * dims.gates.size())});
  if (node.peepholes && call.has(*node.peepholes))
    at.peephole = reshape(part_of(call.tensor(*node.peepholes), d),
                          Dims{Dim("peepholes", 3 * dims.hidden.size())});
  for (std::size_t s = 0; s < node.state_count; ++s) {
    const std::size_t input = node.first_state + s;
    const Dims of_state{dims.batch, dims.hidden};
    if (!call.has(input)) {
      at.state.push_back(zeros(of_state, call.tensor(0).dtype()));
      continue;
    }
    const Tensor& given = call.tensor(input);
    at.state.push_back(
        reshape(part_of(is_batch_first ? transpose_first_two(given) : given, d), of_state));
  }
  return at;
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
  const RecurrentDims dims = dims_of(node, x);
  const bool has_lengths = call.has(4);
  Tensor xs = reshape(x, Dims{dims.steps, dims.batch, dims.in});
  if (has_lengths) xs = gather(xs, range(dims.time), dims.steps);

  Tensors outputs;
  std::vector<Tensors> finals(node.state_count);
  for (std::size_t d = 0; d < directions; ++d) {
    const Direction at =
        direction_of(node, dims, d, direction == "reverse" || d == 1, is_batch_first,
                     &activations[d * node.default_activations.size()]);
    auto [ys, state] = run_direction(node, at, xs);
    if (has_lengths)
      ys = scatter_add(zeros({dims.steps, dims.batch, dims.hidden}, x.dtype()), range(dims.time),
                       ys, dims.steps);
    outputs.push_back(reshape(ys, Dims{x.dim(0), x.dim(1), Dim(dims.hidden.size())}));
    for (std::size_t s = 0; s < node.state_count; ++s)
      finals[s].push_back(reshape(state[s], Dims{x.dim(1), Dim(dims.hidden.size())}));
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
  const Tensor recurrent = at.recurrent, bias = whole_bias(at);
  const Activation& f = at.activations[0];
  const Dim hidden = at.dims.hidden, gates = at.dims.gates;
  return [=](const Tensor& products, const Tensors& state) {
    return Tensors{
        rename(f(plus(products, bias) + matmul(state[0], recurrent, hidden)), gates, hidden)};
  };
}

/// Gates: update z, reset r, hidden h.
Cell gru_cell(const Call& call, const Direction& at) {
  const Dim hidden = at.dims.hidden;
  const std::int64_t size = hidden.size();
  const Dim first_two("gates", 2 * size), units("units", size);
  const Tensor of_gates = slice(at.recurrent, 0, 0, 2 * size, first_two),
               of_hidden = slice(at.recurrent, 0, 2 * size, 3 * size, units);
  Tensor bias, hidden_bias;  // all biases of the input; the bias of the state for h
  if (at.bias.is_defined()) {
    const Tensor input = bias_of(at, 0), state = bias_of(at, 1);
    hidden_bias = gate_of(state, 2, hidden);
    bias =
        input + concat({slice(state, 0, 0, 2 * size), zeros({Dim("gates", size)}, state.dtype())},
                       0, at.dims.gates);
  }
  const Activation &f = at.activations[0], &g = at.activations[1];
  const bool resets_product = call.flag("linear_before_reset", false);
  return [=](const Tensor& products, const Tensors& state) {
    const Tensor x = plus(products, bias), &h = state[0];
    const auto of_state = [&](const Tensor& s) {
      return plus(rename(matmul(s, of_hidden, hidden), units, hidden), hidden_bias);
    };
    const Tensor gates = slice(x, 1, 0, 2 * size, first_two) + matmul(h, of_gates, hidden);
    const Tensor z = f(gate_of(gates, 0, hidden)), r = f(gate_of(gates, 1, hidden));
    const Tensor candidate =
        g(gate_of(x, 2, hidden) + (resets_product ? r * of_state(h) : of_state(r * h)));
    return Tensors{(1 - z) * candidate + z * h};
  };
}

/// Gates: input i, output o, forget f, cell c. Peepholes: i, o, f.
Cell lstm_cell(const Call& call, const Direction& at) {
  const Dim hidden = at.dims.hidden;
  const Tensor recurrent = at.recurrent, bias = whole_bias(at), peephole = at.peephole;
  const Activation &f = at.activations[0], &g = at.activations[1], &h = at.activations[2];
  const bool couples = call.flag("input_forget", false);
  return [=](const Tensor& products, const Tensors& state) {
    const Tensor gates = plus(products, bias) + matmul(state[0], recurrent, hidden);
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
                        .gates = 3,
                        .cell = gru_cell});
}
Values run_lstm(const Call& call) {
  return run_recurrent({.call = call,
                        .default_activations = {"Sigmoid", "Tanh", "Tanh"},
                        .state_count = 2,
                        .peepholes = 7,
                        .gates = 4,
                        .cell = lstm_cell});
}

const Rule kRules[] = {{"GRU", run_gru}, {"LSTM", run_lstm}, {"RNN", run_rnn}};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRules; }

}  // namespace reel::imported
