// The models of examples with functions inside of main() or of a class, written again: a
// classifier of pixels, adders of numbers, an unbroken text; and a beam search in one loop.
#include "reel/examples/beam_search/search.h"
#include "reel/examples/char_rnn/model.h"
#include "reel/examples/long_text/model.h"
#include "reel/examples/training/network.h"
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

/// As examples/pixel_rnn has it.
struct PixelModel {
  Network<LstmCell> network;
  Linear readout;

  Tensor operator()(const Tensor& pictures) const {
    const Dim time = pictures.dim("time");
    return readout(gather(recur(network, pictures, time).outputs, scalar(-1), time));
  }
};

void add_pixels(std::vector<SavedCase>& cases, int layers) {
  const Dim batch("batch", 2), time("time", 9), in("in", 4), classes("class", 10);
  manual_seed(31);
  const auto network = make_network<LstmCell>(in, 6, layers);
  const PixelModel model{network, Linear::init(network.out_dim(), classes)};
  const Tensor pictures = random_uniform({batch, time, in}), labels = tensor({3, 9}, {batch});
  cases.push_back(saved_case(
      str("pixel_rnn, ", layers, " layers"),
      [](const PixelModel& m, const Tensor& x) { return m(x); }, std::tuple{model, pictures},
      {.arguments = {"", "pictures"}, .results = {"logits"}, .parameters = {0}}));
  cases.push_back(saved_case(str("the gradient of pixel_rnn, ", layers, " layers"),
                             [=](const PixelModel& m, const Tensor& x, const Tensor& labels) {
                               return value_and_grad([&](const PixelModel& m) {
                                 return cross_entropy(m(x), labels, classes);
                               })(m);
                             },
                             std::tuple{model, pictures, labels},
                             {.arguments = {"model", "pictures", "labels"}}));
}

/// As examples/first_steps.cpp has it.
struct Rnn {
  Tensor input, recurrent;
};
void add_first_steps(std::vector<SavedCase>& cases) {
  manual_seed(33);
  const Dim batch("batch", 2), in("in", 3), hidden("hidden", 4), next("next", 4),
      time("time", tensor({5, 3}, {batch}));
  const auto loss = [=](const Rnn& rnn, const Tensor& x) {
    const Dim time = x.dim("time");
    const auto step = [&](const Tensor& x_t, const Tensor& h) {
      const Tensor h_next = tanh(matmul(x_t, rnn.input, in) + matmul(h, rnn.recurrent, hidden));
      const Tensor renamed = rename(h_next, next, hidden);
      return std::pair{renamed, renamed};
    };
    const auto made =
        scan(Scan{.spatial_dim = time, .initial = zeros({batch, hidden}), .xs = x, .body = step});
    return mean(square(made.ys), {batch, time, hidden});
  };
  cases.push_back(saved_case(
      "first_steps", [=](const Rnn& rnn, const Tensor& x) { return value_and_grad(loss)(rnn, x); },
      std::tuple{Rnn{random_normal({in, next}), random_normal({hidden, next})},
                 random_normal({batch, time, in})},
      {.arguments = {"rnn", "x"}}));
}

/// Returns a training step of Adam, as the examples have it.
template <class Loss>
auto step_of(const Loss& loss) {
  return [=](auto model, auto optimiser, const auto& data) {
    const auto [value, gradient] =
        value_and_grad([&](const auto& m) { return loss(m, data); })(model);
    optimiser.update(model, gradient);
    return std::pair{value, model};
  };
}
template <class Model, class Data, class Loss>
void add_step(std::vector<SavedCase>& cases, const std::string& name, const Model& model,
              const Data& data, const Loss& loss) {
  const Adam<Model> optimiser(model, {.learning_rate = 0.01, .epsilon = 0.01});
  cases.push_back(saved_case("a step of " + name, step_of(loss), std::tuple{model, optimiser, data},
                             {.arguments = {"model", "optimiser", "data"}}));
  cases.back().tolerance = 1e-4;
}

/// As examples/quickstart.cpp has it: an LSTM by hand.
struct Adder {
  Tensor input_weight, recurrent_weight, bias, readout;
};
void add_quickstart(std::vector<SavedCase>& cases) {
  manual_seed(34);
  const Dim batch("batch", 3), time("time", tensor({4, 1, 2}, {batch})), in("in", 1),
      hidden("hidden", 3), gate("gate", 12);
  const auto predict = [=](const Adder& m, const Tensor& x) {
    using State = std::pair<Tensor, Tensor>;
    const auto step = [&](const Tensor& x, const State& s) {
      const Tensor gates =
          matmul(x, m.input_weight, in) + matmul(s.first, m.recurrent_weight, hidden) + m.bias;
      const auto [i, f, g, o] = split<4>(gates, gate, hidden);
      const Tensor c = sigmoid(f) * s.second + sigmoid(i) * tanh(g), h = sigmoid(o) * tanh(c);
      return std::pair{h, State{h, c}};
    };
    const Dim batch = x.dim("batch");
    const auto made = scan(Scan{.spatial_dim = x.dim("time"),
                                .initial = State{zeros({batch, hidden}), zeros({batch, hidden})},
                                .xs = x,
                                .body = step});
    return matmul(made.state.first, m.readout, hidden);
  };
  const Adder model{random_normal({in, gate}), random_normal({hidden, gate}), zeros({gate}),
                    random_normal({hidden})};
  const Tensor x = random_uniform({batch, time, in}, -0.5, 0.5);
  cases.push_back(saved_case("quickstart", predict, std::tuple{model, x},
                             {.arguments = {"", "x"}, .parameters = {0}}));
  add_step(cases, "quickstart", model, x, [=](const Adder& m, const Tensor& x) {
    return mean(square(predict(m, x) - sum(x, {x.dim("time"), in})));
  });
}

/// As examples/adding_problem has it.
struct AddingModel {
  Network<GruCell> network;
  Tensor readout, bias;

  Tensor operator()(const Tensor& x) const {
    const Dim time = x.dim("time");
    const Tensor outputs = recur(network, x, time).outputs;
    return matmul(gather(outputs, scalar(-1), time), readout, network.out_dim()) + bias;
  }
};
void add_adding_problem(std::vector<SavedCase>& cases) {
  manual_seed(35);
  const Dim batch("batch", 3), time("time", tensor({4, 1, 2}, {batch})), in("in", 2);
  const auto network = make_network<GruCell>(in, 4, 2);
  const AddingModel model{network, random_normal({network.out_dim()}), zeros({})};
  using Data = std::pair<Tensor, Tensor>;
  const Data data{random_uniform({batch, time, in}), random_uniform({batch})};
  cases.push_back(
      saved_case("adding_problem", [](const AddingModel& m, const Tensor& x) { return m(x); },
                 std::tuple{model, data.first}, {.arguments = {"", "x"}, .parameters = {0}}));
  add_step(cases, "adding_problem", model, data, [](const AddingModel& m, const Data& data) {
    return mean_squared_error(m(data.first), data.second);
  });
}

/// Gradients over pieces of the text, and over all of it, with checkpoints.
void add_long_text(std::vector<SavedCase>& cases) {
  manual_seed(36);
  const auto model = LongTextModel::random(5, 4);
  const Dim batch("batch", 2), time("time", 6);
  using Texts = std::pair<Tensor, Tensor>;
  const Texts data{random_integers({time, batch}, 0, 5), random_integers({time, batch}, 0, 5)};
  const auto loss_with = [](const Reach& reach) {
    return [=](const LongTextModel& m, const Texts& data) {
      const auto start = m.cell.initial_state({data.first.dim("batch")});
      return long_text_loss(m, start, data.first, data.second, reach).first;
    };
  };
  add_step(cases, "long_text", model, data, loss_with({}));
  add_step(cases, "long_text with shorter gradients", model, data,
           loss_with({.truncate = 2, .checkpoint = {}}));
  add_step(cases, "long_text with checkpoints", model, data,
           loss_with({.checkpoint = Checkpoint::every(3)}));
}

/// As examples/greedy has it.
void add_greedy(std::vector<SavedCase>& cases) {
  manual_seed(37);
  const auto model = CharModel<LstmCell>::random(7, 5, 2);
  using State = CharModel<LstmCell>::State;
  cases.push_back(
      saved_case("greedy",
                 [](const CharModel<LstmCell>& m, const Tensor& symbol, const State& state) {
                   const auto [written, last, dim] =
                       scan(Scan{.spatial_dim = Dim("piece", 5),
                                 .initial = std::pair{symbol, state},
                                 .body = [&](const std::pair<Tensor, State>& s) {
                                   const auto [logits, next] = m(s.first, s.second);
                                   const Tensor likeliest = argmax(logits, m.readout.out);
                                   return std::pair{likeliest, std::pair{likeliest, next}};
                                 }});
                   return std::tuple{written, last.first, last.second};
                 },
                 std::tuple{model, scalar(3), model.network.initial_state({})},
                 {.arguments = {"", "symbol", "state"}, .parameters = {0}}));
}

/// A search from the end of ragged prompts: entries finish one by one, hypotheses too.
void add_beam_search(std::vector<SavedCase>& cases) {
  manual_seed(32);
  const auto model = CharModel<GruCell>::random(7, 5, 1);
  const Dim batch("batch", 3), time("time", tensor({4, 1, 2}, {batch}));
  const Tensor text = tensor({1, 2, 3, 4, 5, 0, 0, 0, 6, 1, 0, 0}, {batch, time});
  const BeamSearch how{Dim("beam", 3), 0, 1};
  cases.push_back(saved_case(
      "beam_search",
      [=](const CharModel<GruCell>& m, const Tensor& text, const Tensor& last,
          const Tensor& limits) {
        const auto read = recur(m.network, m.embedding(text), text.dim("time"));
        const auto step = [&](const Tensor& symbol, const CharModel<GruCell>::State& state) {
          auto [logits, next] = m(symbol, state);
          return std::pair{log_softmax(logits, m.readout.out), next};
        };
        const Hypotheses found = beam_search(step, last, read.state, limits, how);
        return std::tuple{found.labels, found.log_prob, found.score};
      },
      std::tuple{model, text, tensor({2, 5, 3}, {batch}), tensor({6, 3, 0}, {batch})},
      {.arguments = {"", "text", "last", "limits"}, .parameters = {0}}));
}

}  // namespace

std::vector<SavedCase> example_cases() {
  std::vector<SavedCase> cases;
  add_pixels(cases, 1);
  add_pixels(cases, 2);
  add_beam_search(cases);
  add_first_steps(cases);
  add_quickstart(cases);
  add_adding_problem(cases);
  add_long_text(cases);
  add_greedy(cases);
  return cases;
}

}  // namespace reel
