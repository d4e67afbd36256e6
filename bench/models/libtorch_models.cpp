// The models in libtorch; see libtorch.cpp for the time that its headers take.
#include "libtorch_models.h"

#include <dlfcn.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace reel::bench {
namespace {

using Sizes = std::vector<std::int64_t>;

torch::Tensor array(const Numbers& numbers, const std::string& name, const Sizes& sizes) {
  return torch::tensor(numbers.at(name)).reshape(sizes);
}
torch::Tensor symbols(const Numbers& numbers, const std::string& name, const Sizes& sizes) {
  return array(numbers, name, sizes).to(torch::kInt64);
}
/// Sets a parameter of a layer.
void assign(torch::Tensor parameter, const torch::Tensor& value) {
  const torch::NoGradGuard no_gradient;
  parameter.copy_(value);
}

/// Sets layer `l` of a recurrent layer of libtorch's to the parameters of a cell.
template <class Layer>
void set_cell(Layer& layer, int l, const Numbers& numbers, const std::string& cell) {
  auto parameters = layer->named_parameters();
  const auto set_one = [&](const std::string& name, const torch::Tensor& value) {
    assign(parameters[str(name, "_l", l)], value);
  };
  const Sizes sizes = parameters[str("weight_ih_l", l)].sizes().vec();
  const std::int64_t hidden = parameters[str("weight_hh_l", l)].size(1);
  set_one("weight_ih", array(numbers, cell + ".input_weight", {sizes[1], sizes[0]}).t());
  set_one("weight_hh", array(numbers, cell + ".recurrent_weight", {hidden, sizes[0]}).t());
  set_one("bias_ih", array(numbers, cell + ".bias", {sizes[0]}));
  set_one("bias_hh", torch::zeros({sizes[0]}));
}

void set_linear(torch::nn::Linear& layer, const Numbers& numbers, const std::string& name) {
  const Sizes sizes = layer->weight.sizes().vec();
  assign(layer->weight, array(numbers, name + ".weight", {sizes[1], sizes[0]}).t());
  assign(layer->bias, array(numbers, name + ".bias", {sizes[0]}));
}

void set_embedding(torch::nn::Embedding& layer, const Numbers& numbers, const std::string& name) {
  assign(layer->weight, array(numbers, name + ".weight", layer->weight.sizes().vec()));
}

torch::Tensor lengths_of(int batch, int steps, double least) {
  const std::vector<int> lengths = spread_lengths(batch, steps, least);
  return torch::tensor(std::vector<std::int64_t>(lengths.begin(), lengths.end()));
}
/// Returns position < length: {batch, steps}.
torch::Tensor mask_of(const torch::Tensor& lengths, int steps) {
  return torch::arange(steps).unsqueeze(0) < lengths.unsqueeze(1);
}

/// The layers of a model, with a function that computes the loss.
struct Network : torch::nn::Module {
  std::function<torch::Tensor()> loss;

  template <class Layer>
  Layer add(const std::string& name, const Layer& layer) {
    register_module(name, layer);
    return layer;
  }
};

/// Returns training steps with Adam.
Step training_steps(const std::shared_ptr<Network>& network) {
  const auto adam =
      std::make_shared<torch::optim::Adam>(network->parameters(), torch::optim::AdamOptions(1e-3));
  return [=] {
    adam->zero_grad();
    const torch::Tensor loss = network->loss();
    loss.backward();
    adam->step();
    return static_cast<double>(loss.item<float>());
  };
}

/// Returns the mean over the places where the mask is true.
torch::Tensor cross_entropy_where(const torch::Tensor& logits, const torch::Tensor& next,
                                  const torch::Tensor& mask) {
  constexpr std::int64_t kIgnored = -100;
  return torch::nn::functional::cross_entropy(
      logits.reshape({-1, logits.size(-1)}), next.masked_fill(~mask, kIgnored).reshape({-1}),
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(kIgnored));
}

class TheModels final : public LibtorchModels {
 public:
  void set_threads(int count) const override {
    at::set_num_threads(count);
    if (void* found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
      reinterpret_cast<void (*)(int)>(found)(count);
  }

  Step forecaster(const ForecasterSizes& s, const Numbers& parameters,
                  const Numbers& data) const override {
    const auto network = std::make_shared<Network>();
    auto gru = network->add(
        "gru",
        torch::nn::GRU(torch::nn::GRUOptions(s.in, s.hidden).num_layers(2).batch_first(true)));
    auto out = network->add("out", torch::nn::Linear(s.hidden, 1));
    for (const int l : {0, 1}) set_cell(gru, l, parameters, str("cells.cells.", l));
    set_linear(out, parameters, "out");
    const torch::Tensor x = array(data, "x", {s.batch, s.steps, s.in});
    const torch::Tensor y = array(data, "y", {s.batch, s.steps, 1});
    network->loss = [=]() mutable { return torch::mse_loss(out(std::get<0>(gru(x))), y); };
    return training_steps(network);
  }

  Step char_lstm(const CharLstmSizes& s, const Numbers& parameters,
                 const Numbers& data) const override {
    const auto network = std::make_shared<Network>();
    auto embedding = network->add("embedding", torch::nn::Embedding(s.symbols, s.embedding));
    auto lstm = network->add(
        "lstm", torch::nn::LSTM(
                    torch::nn::LSTMOptions(s.embedding, s.hidden).num_layers(2).batch_first(true)));
    auto out = network->add("out", torch::nn::Linear(s.hidden, s.symbols));
    set_embedding(embedding, parameters, "embedding");
    for (const int l : {0, 1}) set_cell(lstm, l, parameters, str("cells.cells.", l));
    set_linear(out, parameters, "out");
    const torch::Tensor text = symbols(data, "symbols", {s.batch, s.steps});
    const torch::Tensor next = symbols(data, "next", {s.batch, s.steps}).reshape({-1});
    network->loss = [=]() mutable {
      const torch::Tensor logits = out(std::get<0>(lstm(embedding(text))));
      return torch::nn::functional::cross_entropy(logits.reshape({-1, s.symbols}), next);
    };
    return training_steps(network);
  }

  Step seq2seq(const Seq2SeqSizes& s, const Numbers& parameters,
               const Numbers& data) const override {
    const auto network = std::make_shared<Network>();
    const auto embed = [&](const char* name) {
      auto layer = network->add(name, torch::nn::Embedding(s.symbols, s.embedding));
      set_embedding(layer, parameters, name);
      return layer;
    };
    auto of_source = embed("source"), of_target = embed("target");
    auto encoder = network->add(
        "encoder", torch::nn::GRU(torch::nn::GRUOptions(s.embedding, s.hidden).batch_first(true)));
    auto decoder = network->add("decoder", torch::nn::GRUCell(s.embedding + s.hidden, s.hidden));
    auto out = network->add("out", torch::nn::Linear(2 * s.hidden, s.symbols));
    set_cell(encoder, 0, parameters, "encoder");
    const std::int64_t gates = 3 * s.hidden;
    assign(decoder->weight_ih,
           array(parameters, "decoder.input_weight", {s.embedding + s.hidden, gates}).t());
    assign(decoder->weight_hh,
           array(parameters, "decoder.recurrent_weight", {s.hidden, gates}).t());
    assign(decoder->bias_ih, array(parameters, "decoder.bias", {gates}));
    assign(decoder->bias_hh, torch::zeros({gates}));
    set_linear(out, parameters, "out");
    const torch::Tensor source = symbols(data, "source", {s.batch, s.steps});
    const torch::Tensor target = symbols(data, "target", {s.batch, s.steps});
    const torch::Tensor next = symbols(data, "next", {s.batch, s.steps});
    const torch::Tensor lengths = lengths_of(s.batch, s.steps, s.least);
    const torch::Tensor mask = mask_of(lengths, s.steps);
    network->loss = [=]() mutable {
      namespace rnn = torch::nn::utils::rnn;
      const auto packed = rnn::pack_padded_sequence(of_source(source), lengths, true, false);
      const auto [hs, last] = encoder->forward_with_packed_input(packed);
      const torch::Tensor keys = std::get<0>(rnn::pad_packed_sequence(hs, true, 0, s.steps));
      torch::Tensor h = last[0], context = torch::zeros_like(h);
      std::vector<torch::Tensor> outputs;
      for (const torch::Tensor& x : of_target(target).unbind(1)) {
        h = decoder(torch::cat({x, context}, 1), h);
        const torch::Tensor scores = torch::bmm(keys, h.unsqueeze(2)).squeeze(2);
        const torch::Tensor weights = torch::softmax(scores.masked_fill(~mask, -1e9), 1);
        context = torch::bmm(weights.unsqueeze(1), keys).squeeze(1);
        outputs.push_back(torch::cat({h, context}, 1));
      }
      return cross_entropy_where(out(torch::stack(outputs, 1)), next, mask);
    };
    return training_steps(network);
  }

  Step transformer(const TransformerSizes& s, const Numbers& parameters,
                   const Numbers& data) const override {
    struct Layer {
      torch::nn::LayerNorm before_attention = nullptr, before_inner = nullptr;
      torch::nn::Linear query_key_value = nullptr, merge = nullptr, inner = nullptr, out = nullptr;
    };
    const auto network = std::make_shared<Network>();
    const auto linear = [&](const std::string& path, int in, int out) {
      std::string name = path;
      std::replace(name.begin(), name.end(), '.', '_');
      auto layer = network->add(name, torch::nn::Linear(in, out));
      set_linear(layer, parameters, path);
      return layer;
    };
    const auto norm_of = [&](const std::string& name) {
      return network->add(name, torch::nn::LayerNorm(torch::nn::LayerNormOptions({s.feature})));
    };
    auto embedding = network->add("embedding", torch::nn::Embedding(s.symbols, s.feature));
    set_embedding(embedding, parameters, "embedding");
    const torch::Tensor positions = network->register_parameter(
        "positions", array(parameters, "positions", {s.steps, s.feature}));
    std::vector<Layer> layers;
    for (int l = 0; l < s.layers; ++l) {
      const std::string path = str("layers.", l, ".");
      layers.push_back({norm_of(str("before_attention", l)), norm_of(str("before_inner", l)),
                        linear(path + "query_key_value", s.feature, 3 * s.feature),
                        linear(path + "merge", s.feature, s.feature),
                        linear(path + "inner", s.feature, s.inner),
                        linear(path + "out", s.inner, s.feature)});
    }
    auto norm = norm_of("norm");
    auto out = linear("out", s.feature, s.symbols);
    const torch::Tensor text = symbols(data, "symbols", {s.batch, s.steps});
    const torch::Tensor next = symbols(data, "next", {s.batch, s.steps});
    const torch::Tensor mask = mask_of(lengths_of(s.batch, s.steps, s.least), s.steps);
    const torch::Tensor causal = torch::ones({s.steps, s.steps}, torch::kBool).tril();
    const torch::Tensor hidden = ~(causal & mask.view({s.batch, 1, 1, s.steps}));
    network->loss = [=]() mutable {
      const auto heads = [&](const torch::Tensor& of) {
        return of.view({s.batch, s.steps, s.heads, -1}).transpose(1, 2);
      };
      torch::Tensor x = embedding(text) + positions;
      for (Layer& layer : layers) {
        const auto part = layer.query_key_value(layer.before_attention(x)).chunk(3, 2);
        const torch::Tensor scores = torch::matmul(heads(part[0]), heads(part[1]).transpose(2, 3)) *
                                     (1 / std::sqrt(1.0 * s.feature / s.heads));
        const torch::Tensor weights = torch::softmax(scores.masked_fill(hidden, -1e9), 3);
        const torch::Tensor values = torch::matmul(weights, heads(part[2])).transpose(1, 2);
        x = x + layer.merge(values.reshape({s.batch, s.steps, s.feature}));
        x = x + layer.out(torch::gelu(layer.inner(layer.before_inner(x))));
      }
      return cross_entropy_where(out(norm(x)), next, mask);
    };
    return training_steps(network);
  }

  Step crf(const CrfSizes& s, const Numbers& parameters, const Numbers& data) const override {
    const auto network = std::make_shared<Network>();
    auto gru = network->add(
        "gru", torch::nn::GRU(torch::nn::GRUOptions(s.in, s.hidden).batch_first(true)));
    auto emission = network->add("emission", torch::nn::Linear(s.hidden, s.tags));
    set_cell(gru, 0, parameters, "cell");
    set_linear(emission, parameters, "emission");
    const torch::Tensor transitions = network->register_parameter(
        "transitions", array(parameters, "transitions", {s.tags, s.tags}));
    const torch::Tensor words = array(data, "words", {s.batch, s.steps, s.in});
    const torch::Tensor tags = symbols(data, "tags", {s.batch, s.steps});
    const torch::Tensor mask = mask_of(lengths_of(s.batch, s.steps, s.least), s.steps);
    network->loss = [=]() mutable {
      // Padding is computed and not used: faster than packed sequences.
      const torch::Tensor emissions = emission(std::get<0>(gru(words)));
      torch::Tensor alpha = torch::zeros({s.batch, s.tags});
      for (int t = 0; t < s.steps; ++t) {
        const torch::Tensor next =
            torch::logsumexp(alpha.unsqueeze(2) + transitions.unsqueeze(0), 1) +
            emissions.select(1, t);
        alpha = torch::where(mask.select(1, t).unsqueeze(1), next, alpha);
      }
      const torch::Tensor before = tags.slice(1, 0, s.steps - 1), after = tags.slice(1, 1);
      const torch::Tensor moves = transitions.index({before, after}) * mask.slice(1, 1);
      const torch::Tensor here = emissions.gather(2, tags.unsqueeze(2)).squeeze(2) * mask;
      const torch::Tensor first = transitions.mean(0).index({tags.select(1, 0)});
      return (torch::logsumexp(alpha, 1).sum() - moves.sum() - here.sum() - first.sum()) / s.batch;
    };
    return training_steps(network);
  }

  Step convolution(const ConvolutionSizes& s, const Numbers& arguments) const override {
    // libtorch has channels before time: [N, C, T], and filters [out, in, taps].
    const int steps = (s.steps + s.stride - 1) / s.stride, out = s.is_depthwise ? s.in : s.out;
    const torch::Tensor x = array(arguments, "x", {s.batch, s.steps, s.in})
                                .transpose(1, 2)
                                .contiguous()
                                .requires_grad_(true);
    const torch::Tensor given = s.is_depthwise ? array(arguments, "filter", {s.taps, 1, s.in})
                                               : array(arguments, "filter", {s.taps, s.in, s.out});
    const torch::Tensor filter = given.permute({2, 1, 0}).contiguous().requires_grad_(true);
    const torch::Tensor cotangent =
        array(arguments, "cotangent", {s.batch, steps, out}).transpose(1, 2).contiguous();
    return [=] {
      const int before = s.is_depthwise ? s.taps - 1 : (s.taps - 1) / 2;
      const torch::Tensor padded = torch::constant_pad_nd(x, {before, s.taps - 1 - before});
      const torch::Tensor y = torch::nn::functional::conv1d(
          padded, filter,
          torch::nn::functional::Conv1dFuncOptions().stride(s.stride).groups(s.is_depthwise ? s.in
                                                                                            : 1));
      const torch::Tensor loss = (y * cotangent).sum();
      torch::autograd::grad({loss}, {x, filter});
      return static_cast<double>(loss.item<float>());
    };
  }

  Step state_space(const StateSpaceSizes& s, const Numbers& arguments) const override {
    const auto variable = [&](const std::string& name, const Sizes& sizes) {
      return array(arguments, name, sizes).requires_grad_(s.has_gradient);
    };
    const torch::Tensor a = variable("a", {s.channels}), b = variable("b", {s.channels});
    const torch::Tensor x = variable("x", {s.steps, s.channels});
    return [=] {
      torch::Tensor h = torch::zeros({s.channels});
      std::vector<torch::Tensor> all;
      for (const torch::Tensor& input : (b * x).unbind(0)) {
        h = a * h + input;
        all.push_back(h);
      }
      const torch::Tensor states = torch::stack(all);
      if (!s.has_gradient) return 0.0;
      const torch::Tensor loss = states.square().mean();
      torch::autograd::grad({loss}, {a, b, x});
      return static_cast<double>(loss.item<float>());
    };
  }
};

}  // namespace

const LibtorchModels* libtorch_models() {
  static const TheModels the_models;
  return &the_models;
}

}  // namespace reel::bench
