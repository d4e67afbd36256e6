// Layers, losses and whole training steps, as models.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

template <class Cell>
struct Classifier {
  Cell cell;
  Linear readout;
};

template <class Cell>
Classifier<Cell> make_classifier(const Dim& in) {
  const Dim hidden("hidden", 4), classes("classes", 3);
  manual_seed(7);
  return {Cell::init(in, hidden), Linear::init(hidden, classes)};
}

template <class Cell>
Tensor loss_of(const Classifier<Cell>& model, const Tensor& xs, const Tensor& labels) {
  auto [outputs, state] = recur(model.cell, xs, xs.dim("time"));
  const Tensor last = mean(outputs, xs.dim("time"));
  return cross_entropy(model.readout(last), labels, model.readout.out);
}

/// One step of training: the new model and optimiser, and the loss before the step.
template <class Cell>
struct Training {
  Classifier<Cell> model;
  Adam<Classifier<Cell>> optimiser;
};

template <class Cell>
void add_cell(std::vector<SavedCase>& cases, const std::string& name) {
  const Dim batch("batch", 3), in("in", 2), steps("time", 4);
  const Dim time("time", tensor({4, 2, 1}, {batch}));
  manual_seed(8);
  const Classifier<Cell> model = make_classifier<Cell>(in);
  const Tensor labels = tensor({0, 2, 1}, {batch});
  const Tensor even = random_normal({batch, steps, in}), ragged = random_normal({batch, time, in});
  const SaveOnnxOptions options{.arguments = {"model", "xs", "labels"}};
  cases.push_back(saved_case(name + ", forward",
                             [](const Classifier<Cell>& model, const Tensor& xs) {
                               return recur(model.cell, xs, xs.dim("time")).outputs;
                             },
                             std::tuple{model, even},
                             {.arguments = {"", "xs"}, .parameters = {0}}));
  for (const Tensor& xs : {even, ragged})
    cases.push_back(saved_case(
        str(name, ", loss and gradient", xs.type().is_ragged() ? ", ragged" : ""),
        [](const Classifier<Cell>& model, const Tensor& xs, const Tensor& labels) {
          return value_and_grad(
              [&](const Classifier<Cell>& model) { return loss_of(model, xs, labels); })(model);
        },
        std::tuple{model, xs, labels}, options));
  cases.push_back(saved_case(
      name + ", a step with Adam",
      [](Training<Cell> training, const Tensor& xs, const Tensor& labels) {
        auto [loss, gradient] = value_and_grad([&](const Classifier<Cell>& model) {
          return loss_of(model, xs, labels);
        })(training.model);
        training.optimiser.update(training.model, gradient);
        return std::pair{loss, training};
      },
      std::tuple{Training<Cell>{model, Adam(model, {.learning_rate = 0.01})}, even, labels},
      {.arguments = {"training", "xs", "labels"}, .results = {"loss", "next"}}));
}

void add_losses(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), classes("classes", 4);
  manual_seed(9);
  const Tensor logits = random_normal({batch, classes}), other = random_normal({batch, classes});
  const Tensor labels = tensor({0, 3, 1}, {batch});
  cases.push_back(saved_case(
      "losses",
      [=](const Tensor& x, const Tensor& y, const Tensor& labels) {
        return std::tuple{cross_entropy(x, labels, classes),
                          binary_cross_entropy(x, sigmoid(y)),
                          mean_squared_error(x, y),
                          mean_absolute_error(x, y),
                          huber_loss(x, y),
                          kl_divergence(x, y, classes)};
      },
      std::tuple{logits, other, labels}));
}

/// Losses over sequences of two lengths, and of labels with weights.
void add_sequence_losses(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), vocab("vocab", 4);
  const Dim frames("frames", tensor({5, 3, 1}, {batch})),
      letters("letters", tensor({2, 1, 0}, {batch}));
  manual_seed(11);
  cases.push_back(saved_case(
      "ctc_loss and its gradient",
      [=](const Tensor& logits, const Tensor& labels) {
        const CtcDims dims{logits.dim("frames"), labels.dim("letters"), vocab};
        return value_and_grad([&](const Tensor& x) { return ctc_loss(x, labels, dims); })(logits);
      },
      std::tuple{random_normal({batch, frames, vocab}),
                 tensor({2, 3, 1, 0, 0, 0}, {batch, letters})}));
  cases.push_back(saved_case(
      "cross_entropy with its options",
      [=](const Tensor& x, const Tensor& labels, const Tensor& weights) {
        const CrossEntropyOptions options{
            .label_smoothing = 0.1, .ignore = 2, .class_weights = weights};
        return value_and_grad(
            [&](const Tensor& x) { return cross_entropy(x, labels, vocab, options); })(x);
      },
      std::tuple{random_normal({batch, vocab}), tensor({1, 2, 3}, {batch}),
                 tensor({1., 2., 0.5, 1.5}, {vocab})}));
}

void add_directions(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), in("in", 2), hidden("hidden", 4);
  const Dim time("time", tensor({4, 2, 1}, {batch}));
  manual_seed(12);
  cases.push_back(saved_case(
      "two directions and their gradient",
      [](const std::pair<GruCell, GruCell>& cells, const Tensor& xs) {
        return value_and_grad([&](const std::pair<GruCell, GruCell>& cells) {
          const auto made = bidirectional(cells.first, cells.second, xs, xs.dim("time"));
          return sum(square(made.outputs)) + sum(made.backward);
        })(cells);
      },
      std::tuple{std::pair{GruCell::init(in, hidden), GruCell::init(in, hidden)},
                 random_normal({batch, time, in})}));
}

void add_layers(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 2), time("time", 3), keys("keys", 3), width("width", 4),
      symbols("symbols", 5);
  manual_seed(10);
  const Embedding embedding = Embedding::init(symbols, width);
  const LayerNorm norm = LayerNorm::init(width);
  cases.push_back(
      saved_case("embedding, layer norm and attention",
                 [=](const Embedding& embedding, const LayerNorm& norm, const Tensor& text) {
                   const Tensor x = norm(embedding(text));
                   const Tensor k = rename(x, time, keys);
                   return std::pair{x, attention(x, k, k, keys, width)};
                 },
                 std::tuple{embedding, norm, tensor({{0, 4, 2}, {1, 1, 3}}, {batch, time})},
                 {.arguments = {"embedding", "norm", "text"}}));
}

}  // namespace

std::vector<SavedCase> training_cases() {
  std::vector<SavedCase> cases;
  add_cell<RnnCell>(cases, "RnnCell");
  add_cell<GruCell>(cases, "GruCell");
  add_cell<LstmCell>(cases, "LstmCell");
  add_losses(cases);
  add_sequence_losses(cases);
  add_directions(cases);
  add_layers(cases);
  return cases;
}

}  // namespace reel
