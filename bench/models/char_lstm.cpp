#include "char_lstm.h"

#include "libtorch_models.h"

namespace reel::bench {
namespace {

struct CharLstm {
  using State = StackedCells<std::vector<LstmCell>>::State;

  Embedding embedding;
  StackedCells<std::vector<LstmCell>> cells;
  Linear out;
};

Tensor loss_of(const CharLstm& model, const Text& text) {
  const Tensor x = model.embedding(text.symbols);
  const auto [hs, state] = recur(model.cells, x, text.symbols.dim("time"));
  return cross_entropy(model.out(hs), text.next, model.out.out);
}

CharLstm random_model(const CharLstmSizes& s) {
  const Dim symbol("symbol", s.symbols), feature("feature", s.embedding);
  const Dim lower("hidden", s.hidden), upper("hidden", s.hidden);
  return {Embedding::init(symbol, feature),
          stack_cells(std::vector{LstmCell::init(feature, lower), LstmCell::init(lower, upper)}),
          Linear::init(upper, symbol)};
}

std::string sizes_of(const CharLstmSizes& s) {
  return str(" B=", s.batch, " T=", s.steps, " H=", s.hidden, " layers=2");
}

/// The logits of the next character, and the state.
using Next = std::pair<Tensor, CharLstm::State>;

Next next_of(const CharLstm& model, const Tensor& symbol, const CharLstm::State& state) {
  const auto [h, next] = model.cells(model.embedding(symbol), state);
  return {model.out(h), next};
}

}  // namespace

Model char_lstm(const CharLstmSizes& s) {
  manual_seed(1);
  const CharLstm model = random_model(s);
  const Text text = random_text({Dim("batch", s.batch), Dim("time", s.steps)}, s.symbols);
  const std::string name = "char lstm" + sizes_of(s);
  Model result{name, training(name, model, text, loss_of)};
  const int rows = s.batch * s.steps, gates = 4 * s.hidden;
  result.products = joined(
      {with_gradients({rows, gates, s.embedding}), with_gradients({rows, gates, s.hidden}),
       recurrent(s.steps, s.batch, s.hidden, gates), recurrent(s.steps, s.batch, s.hidden, gates),
       with_gradients({rows, s.symbols, s.hidden})});
  if (libtorch_models())
    result.libtorch = [=] {
      return libtorch_models()->char_lstm(s, numbers_of_tree(model), numbers_of_tree(text));
    };
  return result;
}

Stream char_lstm_stream(const CharLstmSizes& s, const std::string& name,
                        const std::vector<Lengths>& lengths) {
  manual_seed(1);
  std::vector<Text> texts = random_texts(lengths, s.symbols);
  return stream(name, random_model(s), std::move(texts), loss_of);
}

Model char_lstm_step_by_step(const CharLstmSizes& s) {
  manual_seed(1);
  const CharLstm model = random_model(s);
  const Text text = random_text({Dim("batch", s.batch), Dim("time", s.steps)}, s.symbols);
  const std::string name = "char lstm step by step" + sizes_of(s);
  const Tensors symbols = unstack(text.symbols, 1);
  const Dims batch{text.symbols.dims()[0]};
  const auto all_steps = [=](const auto& step) {
    Next next{Tensor(), model.cells.initial_state(batch)};
    for (const Tensor& symbol : symbols) next = step(model, symbol, std::move(next.second));
    return static_cast<double>(mean(next.first).template item<float>());
  };
  Model result{name, [=](bool is_traced) -> Step {
                 if (!is_traced) return [=] { return all_steps(next_of); };
                 return [=, traced = jit(next_of, {.name = name})] { return all_steps(traced); };
               }};
  const int gates = 4 * s.hidden;
  result.products = {{s.batch, gates, s.embedding, 1, s.steps},
                     {s.batch, gates, s.hidden, 1, 3 * s.steps},
                     {s.batch, s.symbols, s.hidden, 1, s.steps}};
  return result;
}

}  // namespace reel::bench
