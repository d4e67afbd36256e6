// A Transformer on ragged text: a causal character model of sentences in which the verb agrees with
// the first noun, however many nouns lie between.
#include <reel/reel.h>

#include <iostream>
#include <random>

using namespace reel;

const Dim symbol("symbol", 128), position("position", 64), feature("feature", 32);

struct Model {
  Embedding symbols = Embedding::init(symbol, feature),
            positions = Embedding::init(position, feature);
  std::vector<TransformerDecoderBlock> blocks = {block(), block()};
  LayerNorm last = LayerNorm::init(feature);
  Linear readout = Linear::init(feature, symbol);

  /// Returns the logits of the next character at each position: {batch, time, symbol}.
  Tensor operator()(const Tensor& text) const {
    Tensor x = symbols(text) + positions(range(text.dim("time")));
    for (const TransformerDecoderBlock& block : blocks) x = block(x, text.dim("time"));
    return readout(last(x));
  }
  /// Each position sees itself and those before it.
  static TransformerDecoderBlock block() {
    return TransformerDecoderBlock::init(feature,
                                         {.heads = 4, .inner = Dim("inner", 64), .dropout = 0});
  }
};

/// "the birds near the dog sing": 0 to 2 nouns between, and an s at either the first noun or the
/// verb.
std::string draw_sentence(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<const char*> words) {
    return std::string(words.begin()[random() % words.size()]);
  };
  const auto noun = [&] { return " the " + one_of({"dog", "cat", "bird", "fox"}); };
  const bool is_plural = random() % 2;
  std::string text = noun() + (is_plural ? "s" : "");
  for (auto between = random() % 3; between > 0; --between)
    text += one_of({" near", " behind"}) + noun() + one_of({"", "s"});
  return text + one_of({" run", " sing", " sleep"}) + (is_plural ? "" : "s") + '.';
}

struct Batch {
  Tensor text, next;  // i32 {batch, time}: characters, and those behind them
  Tensor endings;     // the character behind the verb, which tells the number; -1 elsewhere
};

Batch batch_of(const std::vector<std::string>& sentences) {
  std::vector<std::string> text, next;
  std::vector<std::vector<int>> endings;
  for (const std::string& s : sentences) {
    text.push_back(s.substr(0, s.size() - 1));
    next.push_back(s.substr(1));
    const bool has_s = next.back()[next.back().size() - 2] == 's';
    endings.emplace_back(text.back().size(), -1);
    *(endings.back().rbegin() + has_s) = has_s ? 's' : '.';
  }
  const Tensor x = ragged(text, {Dim("batch"), Dim("time")});
  return {x, ragged(next, x.dims()), ragged(endings, x.dims())};
}

Tensor loss_of(const Model& model, const Batch& data) {
  return cross_entropy(model(data.text), data.next, symbol);
}

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::stoi(arguments[1]) : 600;
  manual_seed(1);
  std::mt19937 random(1);
  std::vector<std::string> sentences, others;
  for (int i = 0; i < 4000; ++i) sentences.push_back(draw_sentence(random));
  for (int i = 0; i < 500; ++i) others.push_back(draw_sentence(random));

  const auto step = jit([](Model model, AdamW<Model> optimiser, const Batch& data) {
    const auto [loss, gradient] = value_and_grad(loss_of)(model, data);
    optimiser.update(model, gradient);
    return std::tuple{model, optimiser, loss};
  });
  Model model;
  const ParameterGroup vectors{
      .contains = [](const std::string&, const Tensor& parameter) { return parameter.rank() < 2; },
      .weight_decay = 0};  // biases and norms do not decay
  AdamW<Model> optimiser(model, {.learning_rate = 0.003, .groups = {vectors}, .clip_norm = 1});
  Batches batches(sentences, batch_of, {.rows = 32, .shuffle = 1, .bucket = 320, .epochs = 1000});
  int i = 0;
  for (const Batch& data : batches) {
    Tensor loss;
    std::tie(model, optimiser, loss) = step(std::move(model), std::move(optimiser), data);
    if (i % (steps / 3) == 0) std::cout << "step " << i << ": loss " << loss.item<float>() << '\n';
    if (i++ == steps) break;
  }
  const Batch data = batch_of(others);
  const Tensor logits = model(data.text);
  std::cout << "new sentences: perplexity "
            << perplexity(log_loss(logits, data.next, symbol)).item<float>()
            << ", verbs that agree: "
            << accuracy(logits, data.endings, symbol, -1).mean().item<float>() << '\n';
}
