#include "transformer.h"

#include <algorithm>
#include <cmath>

#include "libtorch_models.h"

namespace reel::bench {
namespace {

struct Layer {
  LayerNorm before_attention, before_inner;
  Linear query_key_value, merge, inner, out;
};

struct Transformer {
  Embedding embedding;
  Tensor positions;  // {position, feature}
  std::vector<Layer> layers;
  LayerNorm norm;
  Linear out;
  Dim head = 0, per_head = 0;
};

Tensor attention(const Transformer& model, const Layer& layer, const Tensor& x, const Dim& time) {
  const Dim feature = layer.merge.in;
  const Dim keys("keys", time.lengths());
  const auto part = split<3>(layer.query_key_value(x), layer.query_key_value.out, feature);
  const auto heads = [&](const Tensor& of) {
    return split_dim(of, feature, {model.head, model.per_head});
  };
  const Tensor q = heads(part[0]);
  const Tensor k = rename(heads(part[1]), time, keys), v = rename(heads(part[2]), time, keys);
  const Tensor scores = matmul(q, k, model.per_head) / std::sqrt(1.0 * model.per_head.size());
  const Tensor causal = expand(range(keys), {time, keys}) <= expand(range(time), {time, keys});
  const Tensor weights = softmax(where(causal, scores, -1e9), keys);
  return layer.merge(merge_dims(matmul(weights, v, keys), {model.head, model.per_head}, feature));
}

Tensor loss_of(const Transformer& model, const Text& text) {
  const Dim time = text.symbols.dim("time");
  Tensor x = model.embedding(text.symbols) + gather(model.positions, range(time), 0);
  for (const Layer& layer : model.layers) {
    x = x + attention(model, layer, layer.before_attention(x), time);
    x = x + layer.out(gelu(layer.inner(layer.before_inner(x))));
  }
  return cross_entropy(model.out(model.norm(x)), text.next, model.out.out);
}

Transformer random_model(const TransformerSizes& s) {
  const Dim symbol("symbol", s.symbols), feature("feature", s.feature), inner("inner", s.inner);
  const Dim three("three", 3 * s.feature);
  Transformer model{Embedding::init(symbol, feature),
                    random_normal({Dim("position", s.steps), feature}),
                    {},
                    LayerNorm::init(feature),
                    Linear::init(feature, symbol),
                    Dim("head", s.heads),
                    Dim("per_head", s.feature / s.heads)};
  for (int i = 0; i < s.layers; ++i) {
    // A layer has one dim of features in and out; Linear::init requires two.
    Linear merge = Linear::init(feature, Dim("merged", s.feature));
    Linear out = Linear::init(inner, feature);
    merge.weight = rename(merge.weight, 0, Dim("merged_in", s.feature));
    merge.weight = rename(merge.weight, 1, feature);
    merge.bias = rename(*merge.bias, 0, feature);
    merge.in = merge.weight.dims()[0];
    merge.out = feature;
    model.layers.push_back({LayerNorm::init(feature), LayerNorm::init(feature),
                            Linear::init(feature, three), merge, Linear::init(feature, inner),
                            out});
  }
  return model;
}

/// Returns the products at full length.
std::vector<Products> products_of(const TransformerSizes& s) {
  const int rows = s.batch * s.steps, per_head = s.feature / s.heads;
  std::vector<std::vector<Products>> all{with_gradients({rows, s.symbols, s.feature})};
  for (int i = 0; i < s.layers; ++i)
    for (const Products& one :
         std::vector<Products>{{rows, 3 * s.feature, s.feature},
                               {s.steps, s.steps, per_head, s.batch * s.heads},
                               {s.steps, per_head, s.steps, s.batch * s.heads},
                               {rows, s.feature, s.feature},
                               {rows, s.inner, s.feature},
                               {rows, s.feature, s.inner}})
      all.push_back(with_gradients(one));
  return joined(all);
}

}  // namespace

Model transformer(const TransformerSizes& s) {
  manual_seed(1);
  const Transformer model = random_model(s);
  const Dim batch("batch", s.batch);
  const Dims dims{batch, sequences("time", batch, s.steps, s.least)};
  const Text text = random_text(dims, s.symbols);
  const std::string name = str("transformer B=", s.batch, " T=", s.steps, " D=", s.feature,
                               " heads=", s.heads, " layers=", s.layers);
  Model result{name, training(name, model, text, loss_of), products_of(s)};
  if (libtorch_models())
    result.libtorch = [=] {
      return libtorch_models()->transformer(s, numbers_of_tree(model), numbers_of_tree(text));
    };
  return result;
}

Stream transformer_stream(TransformerSizes s, const std::string& name,
                          const std::vector<Lengths>& lengths) {
  manual_seed(1);
  s.steps = 1;  // as many positions as the longest text has symbols
  for (const Lengths& of : lengths) s.steps = std::max(s.steps, *std::ranges::max_element(of));
  std::vector<Text> texts = random_texts(lengths, s.symbols);
  return stream(name, random_model(s), std::move(texts), loss_of);
}

}  // namespace reel::bench
