#include "seq2seq.h"

#include "libtorch_models.h"

namespace reel::bench {
namespace {

struct Seq2Seq {
  Embedding source, target;
  GruCell encoder, decoder;  // the decoder reads symbol and context
  Linear out;
};

struct TwoTexts {
  Tensor source, target, next;
};

struct DecoderState {
  Tensor h, context;
};

Tensor loss_of(const Seq2Seq& model, const TwoTexts& texts) {
  const Dim source = texts.source.dim("source"), target = texts.target.dim("target");
  const Dim hidden = model.encoder.hidden, in = model.decoder.in;
  const auto [keys, last] = recur(model.encoder, model.source(texts.source), source);
  const auto step = [&, &keys = keys](const Tensor& x, const DecoderState& s) {
    const Tensor h = model.decoder(concat({x, s.context}, x.dims().back(), in), s.h).second;
    const Tensor weights = softmax(matmul(keys, h, hidden), source);
    const Tensor context = matmul(weights, keys, source);
    return std::pair{concat({h, context}, hidden, model.out.in), DecoderState{h, context}};
  };
  const auto decoded = scan(Scan{.spatial_dim = target,
                                 .initial = DecoderState{last, zeros_like(last)},
                                 .xs = model.target(texts.target),
                                 .body = step,
                                 .name = "decoder"});
  return cross_entropy(model.out(decoded.ys), texts.next, model.out.out);
}

Seq2Seq random_model(const Seq2SeqSizes& s) {
  const Dim symbol("symbol", s.symbols), feature("feature", s.embedding),
      hidden("hidden", s.hidden);
  const Dim in("in", s.embedding + s.hidden), both("both", 2 * s.hidden);
  return {Embedding::init(symbol, feature), Embedding::init(symbol, feature),
          GruCell::init(feature, hidden), GruCell::init(in, hidden), Linear::init(both, symbol)};
}

TwoTexts random_texts(const Dims& source, const Dims& target, int symbols) {
  return {random_symbols(source, symbols), random_symbols(target, symbols),
          random_symbols(target, symbols)};
}

/// Returns the products at full length.
std::vector<Products> products_of(const Seq2SeqSizes& s) {
  const int rows = s.batch * s.steps, gates = 3 * s.hidden;
  const Products attention{1, s.steps, s.hidden, s.batch, s.steps};
  return joined({with_gradients({rows, gates, s.embedding}),
                 recurrent(s.steps, s.batch, s.hidden, gates),
                 with_gradients({rows, gates, s.embedding}),
                 recurrent(s.steps, s.batch, s.hidden, gates),  // the context's part of the input
                 recurrent(s.steps, s.batch, s.hidden, gates),
                 with_gradients(attention),                                 // scores
                 with_gradients({1, s.hidden, s.steps, s.batch, s.steps}),  // contexts
                 with_gradients({rows, s.symbols, 2 * s.hidden})});
}

}  // namespace

Stream seq2seq_stream(const Seq2SeqSizes& s, const std::string& name,
                      const std::vector<Lengths>& lengths) {
  manual_seed(1);
  const Seq2Seq model = random_model(s);
  std::vector<TwoTexts> batches;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Lengths& targets = lengths[(i + 1) % lengths.size()];
    const Dim batch("batch", std::ssize(targets));
    batches.push_back(random_texts({batch, sequences("source", batch, lengths[i])},
                                   {batch, sequences("target", batch, targets)}, s.symbols));
  }
  return stream(name, model, std::move(batches), loss_of);
}

Model seq2seq(const Seq2SeqSizes& s) {
  manual_seed(1);
  const Seq2Seq model = random_model(s);
  const Dim batch("batch", s.batch);
  const TwoTexts texts =
      random_texts({batch, sequences("source", batch, s.steps, s.least)},
                   {batch, sequences("target", batch, s.steps, s.least)}, s.symbols);
  const std::string name = str("seq2seq ", s.is_ragged() ? "ragged" : "equal", " B=", s.batch,
                               " T=", s.steps, " H=", s.hidden);
  Model result{name, training(name, model, texts, loss_of), products_of(s)};
  if (libtorch_models())
    result.libtorch = [=] {
      return libtorch_models()->seq2seq(s, numbers_of_tree(model), numbers_of_tree(texts));
    };
  if (s.is_ragged()) {
    Seq2SeqSizes equal = s;
    equal.least = 1;
    result.other_name = "equal";
    result.has_other_loss = true;
    result.other = [=] { return seq2seq(equal).reel(true); };
  }
  return result;
}

}  // namespace reel::bench
