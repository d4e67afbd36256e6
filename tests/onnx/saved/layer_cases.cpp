// Layers, optimisers and metrics that training_cases.cpp lacks, as models.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

struct Sizes {
  Dim batch{"batch", 3}, in{"in", 2}, hidden{"hidden", 4}, out{"out", 8};
  Dim time{"time", tensor({4, 1, 3}, {batch})};
};

void add_stacks(std::vector<SavedCase>& cases) {
  const Sizes at;
  manual_seed(51);
  const Tensor xs = random_normal({at.batch, at.time, at.in});
  auto stack = stack_cells(with_dropout(LstmCell::init(at.in, at.hidden), 0.5),
                           GruCell::init(at.hidden, at.in), RnnCell::init(at.in, at.hidden));
  set_training(stack, false);
  const auto last = [](const auto& cell, const Tensor& xs) {
    auto made = recur(cell, xs, xs.dim("time"));
    return std::pair{made.outputs, made.state};
  };
  cases.push_back(saved_case("a stack of cells of three kinds", last, std::tuple{stack, xs},
                             {.arguments = {"", "xs"}, .parameters = {0}}));
  std::vector<std::pair<GruCell, LstmCell>> layers{
      {GruCell::init(at.in, at.hidden), LstmCell::init(at.in, at.hidden)},
      {GruCell::init(at.out, at.hidden), LstmCell::init(at.out, at.hidden)}};
  cases.push_back(
      saved_case("a stack of two directions, and its gradient",
                 [](const std::vector<std::pair<GruCell, LstmCell>>& layers, const Tensor& xs) {
                   return value_and_grad([&](const auto& layers) {
                     return sum(square(bidirectional_stack(layers, xs, xs.dim("time")).outputs));
                   })(layers);
                 },
                 std::tuple{layers, xs}, {.arguments = {"layers", "xs"}}));
}

void add_tables(std::vector<SavedCase>& cases) {
  const Sizes at;
  const Dim symbols("symbols", 5), words("words", 2), letters("letters", 3);
  manual_seed(52);
  cases.push_back(saved_case(
      "a SparseEmbedding and its dense gradient",
      [](const SparseEmbedding& table, const Tensor& text) {
        return std::pair{table(text), with_dense_tables(grad([&](const SparseEmbedding& table) {
                           return sum(square(table(text)));
                         })(table))};
      },
      std::tuple{SparseEmbedding::init(symbols, at.in),
                 tensor({{0, 4, 2}, {1, 1, 3}}, {words, letters})}));
  cases.push_back(saved_case(
      "dropout that does not train",
      [](const Tensor& x) { return Dropout{.rate = 0.5, .training = false}(x)*2; },
      random_normal({at.batch, at.in})));
}

/// A causal block of a Transformer on ragged text.
struct Block {
  LayerNorm before, between;
  Linear query, key, value, out, wide, narrow;

  Tensor operator()(Tensor x) const {
    const Dim time = x.dim("time"), keys("keys", time.lengths());
    const Dim heads("heads", 2), head("head", 2), value_head("value_head", 2);
    const Tensor y = before(x), y_of_keys = rename(y, time, keys);
    const Tensor q = split_dim(query(y), query.out, {heads, head});
    const Tensor k = split_dim(key(y_of_keys), key.out, {heads, head});
    const Tensor v = split_dim(value(y_of_keys), value.out, {heads, value_head});
    const Tensor seen = attention(q, k, v, keys, head, {.causal = time, .block = 2});
    x += out(merge_dims(seen, {heads, value_head}, out.in));
    x += narrow(gelu(wide(between(x))));
    return x;
  }
};

struct Transformer {
  Embedding symbols, positions;
  Block block;
  Linear readout;

  Tensor operator()(const Tensor& text) const {
    return readout(block(symbols(text) + positions(range(text.dim("time")))));
  }
};

template <class Optimiser>
struct Training {
  Transformer model;
  Optimiser optimiser;
  Ema<Transformer> average;
};

/// One step of an optimiser on a Transformer, with a schedule and an average of the parameters.
template <class Optimiser>
void add_step(std::vector<SavedCase>& cases, const std::string& name, const Transformer& model,
              const Optimiser& optimiser, const Tensor& text, const Tensor& next) {
  cases.push_back(saved_case(
      "a step of a Transformer with " + name,
      [](Training<Optimiser> training, const Tensor& text, const Tensor& next) {
        auto [loss, gradient] = value_and_grad([&](const Transformer& model) {
          return cross_entropy(model(text), next, model.readout.out);
        })(training.model);
        const auto [clipped, norm] = clip_by_global_norm(gradient, 0.5);
        const auto rate = Schedule::warm_up(0.01, 5).then(Schedule::cosine(0.01, 0.001, 100));
        training.optimiser.set_learning_rate(rate(training.optimiser.step()));
        training.optimiser.update(training.model, clip_by_value(clipped, -0.1, 0.1));
        training.average.update(training.model);
        return std::tuple{loss, norm, training};
      },
      std::tuple{Training<Optimiser>{model, optimiser, Ema(model)}, text, next},
      {.arguments = {"training", "text", "next"}, .results = {"loss", "norm", "training"}}));
}

/// The gradient of the keys' bias consists of rounding errors. A small epsilon would enlarge them.
constexpr double kEpsilon = 0.01;

void add_transformer(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), time("time", tensor({4, 1, 3}, {batch}));
  const Dim symbol("symbol", 5), position("position", 6), feature("feature", 4),
      all_heads("all_heads", 4), inner("inner", 6);
  manual_seed(53);
  const auto linear = [&](const Dim& in, const Dim& out) { return Linear::init(in, out); };
  const Block block{LayerNorm::init(feature),   LayerNorm::init(feature),
                    linear(feature, all_heads), linear(feature, all_heads),
                    linear(feature, all_heads), linear(all_heads, feature),
                    linear(feature, inner),     linear(inner, feature)};
  const Transformer model{Embedding::init(symbol, feature), Embedding::init(position, feature),
                          block, linear(feature, symbol)};
  const Tensor text = tensor({1, 2, 3, 4, 0, 0, 0, 0, 4, 4, 2, 0}, {batch, time}),
               next = tensor({2, 3, 4, 0, 1, 0, 0, 0, 4, 2, 1, 0}, {batch, time});
  cases.push_back(
      saved_case("a Transformer", [](const Transformer& m, const Tensor& text) { return m(text); },
                 std::tuple{model, text}, {.arguments = {"", "text"}, .parameters = {0}}));
  add_step(cases, "AdamW", model,
           AdamW(model, {.learning_rate = 0.01,
                         .epsilon = kEpsilon,
                         .groups = {{.contains = [](const std::string&,
                                                    const Tensor& x) { return x.rank() < 2; },
                                     .weight_decay = 0}},
                         .clip_norm = 1}),
           text, next);
  add_step(cases, "Sgd", model, Sgd(model, {.momentum = 0.9, .nesterov = true}), text, next);
  add_step(cases, "RmsProp", model,
           RmsProp(model, {.epsilon = kEpsilon, .momentum = 0.9, .centered = true}), text, next);
  add_step(cases, "Adagrad", model, Adagrad(model, {.epsilon = kEpsilon}), text, next);
}

void add_metrics(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), classes("classes", 4), time("time", tensor({2, 0, 3}, {batch}));
  manual_seed(54);
  cases.push_back(saved_case(
      "metrics",
      [=](const Tensor& logits, const Tensor& targets) {
        const Weighted loss = log_loss(logits, targets, classes, 2);
        return std::tuple{accuracy(logits, targets, classes), loss, perplexity(loss), loss.mean()};
      },
      std::tuple{random_normal({batch, time, classes}),
                 tensor({1, 2, 0, 0, 0, 0, 3, 3, 2}, {batch, time})}));
}

}  // namespace

std::vector<SavedCase> layer_cases() {
  std::vector<SavedCase> cases;
  add_stacks(cases);
  add_tables(cases);
  add_transformer(cases);
  add_metrics(cases);
  return cases;
}

}  // namespace reel
