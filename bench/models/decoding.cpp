#include "decoding.h"

#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include "../../examples/beam_search/search.h"

namespace reel::bench {
namespace {

// ---- Greedy decoding ----------------------------------------------------------------------------

struct Layer {
  Tensor query, key, value, out, up, down;
};
struct Decoder {
  Tensor table;
  std::vector<Layer> layers;
  Tensor readout;
};
struct Cache {
  Tensor keys, values;
};

struct Axes {
  Dim feature, inner, heads, head, value_head, place, symbol;
  explicit Axes(const DecodingSizes& s)
      : feature("feature", s.width),
        inner("inner", 4 * s.width),
        heads("heads", s.width / s.head),
        head("head", s.head),
        value_head("value_head", s.head),
        place("place", s.tokens),
        symbol("symbol", s.symbols) {}
};

Decoder random_decoder(const DecodingSizes& s, const Axes& axes) {
  const auto weight = [&](const Dims& dims) {
    return random_normal(dims) * (1 / std::sqrt(static_cast<double>(s.width)));
  };
  Decoder result{random_normal({axes.symbol, axes.feature}), {}, {}};
  for (int i = 0; i < s.layers; ++i)
    result.layers.push_back({weight({axes.feature, axes.heads, axes.head}),
                             weight({axes.feature, axes.heads, axes.head}),
                             weight({axes.feature, axes.heads, axes.value_head}),
                             weight({axes.heads, axes.value_head, axes.feature}),
                             weight({axes.feature, axes.inner}),
                             weight({axes.inner, axes.feature}) * 0.5f});
  result.readout = weight({axes.feature, axes.symbol});
  return result;
}

Tensor normalised(const Tensor& x, const Dim& feature) {
  return x / sqrt(mean(square(x), feature) + 1e-5);
}

/// Returns the next symbol and the caches with the place of this one.
std::pair<Tensor, std::vector<Cache>> write_symbol(const Axes& axes, const Decoder& decoder,
                                                   std::vector<Cache> caches, const Tensor& symbol,
                                                   const Tensor& place) {
  const Tensor is_written = range(axes.place) <= place;
  Tensor x = gather(decoder.table, symbol, axes.symbol);
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const Layer& layer = decoder.layers[i];
    auto& [keys, values] = caches[i];
    const Tensor y = normalised(x, axes.feature);
    keys = set_at(std::move(keys), place, matmul(y, layer.key, axes.feature), axes.place);
    values = set_at(std::move(values), place, matmul(y, layer.value, axes.feature), axes.place);
    const Tensor scores = matmul(matmul(y, layer.query, axes.feature), keys, axes.head) *
                          (1 / std::sqrt(static_cast<double>(axes.head.size())));
    const Tensor seen = where(expand(is_written, scores.dims()), scores, full({}, -1e30, f32));
    const Tensor read = matmul(softmax(seen, axes.place), values, axes.place);
    x = x + matmul(read, layer.out, {axes.heads, axes.value_head});
    const Tensor inner = relu(matmul(normalised(x, axes.feature), layer.up, axes.feature));
    x = x + matmul(inner, layer.down, axes.inner);
  }
  return {argmax(matmul(normalised(x, axes.feature), decoder.readout, axes.feature), axes.symbol),
          std::move(caches)};
}

/// Adds up a tensor, in as many chains as the processor needs.
float sum_of(const Tensor& x) {
  constexpr std::int64_t kChains = 32;
  std::array<float, kChains> sums{};
  const float* const data = x.data<float>();
  for (std::int64_t i = 0; i + kChains <= x.type().numel(); i += kChains)
    for (std::int64_t k = 0; k < kChains; ++k) sums[static_cast<std::size_t>(k)] += data[i + k];
  return std::accumulate(sums.begin(), sums.end(), 0.f);
}

}  // namespace

Model decoding(const DecodingSizes& s) {
  manual_seed(1);
  const Axes axes(s);
  const Decoder decoder = random_decoder(s, axes);
  const auto write = [=](const Decoder& decoder, std::vector<Cache> caches, const Tensor& symbol,
                         const Tensor& place) {
    return write_symbol(axes, decoder, std::move(caches), symbol, place);
  };
  const auto all_tokens = [=](const auto& step) {
    std::vector<Cache> caches;
    for (int i = 0; i < s.layers; ++i)
      caches.push_back({zeros({axes.place, axes.heads, axes.head}),
                        zeros({axes.place, axes.heads, axes.value_head})});
    Tensor symbol = scalar(0);
    double sum = 0;
    for (int i = 0; i < s.tokens; ++i) {
      std::tie(symbol, caches) = step(decoder, std::move(caches), symbol, scalar(i));
      sum += symbol.item<int>();
    }
    return sum;
  };
  Model result{str("decoding of ", s.tokens, " tokens, ", s.layers, " layers of ", s.width),
               [=](bool is_traced) -> Step {
                 if (!is_traced) return [=] { return all_tokens(write); };
                 return [=, traced = jit(write)] { return all_tokens(traced); };
               }};
  result.other_name = "weights";
  result.has_other_loss = true;
  result.other = [=]() -> Step {
    return [=] {
      double sum = 0;
      for (int i = 0; i < s.tokens; ++i)
        for (const Tensor& x : tensors_of(flatten(std::pair{decoder.layers, decoder.readout})))
          sum += static_cast<double>(sum_of(x));
      return sum;
    };
  };
  result.threads = 1;
  return result;
}

// ---- Beam search --------------------------------------------------------------------------------

Model beam_search_of_lstm(const BeamSizes& s) {
  manual_seed(1);
  struct Labeller {
    Embedding symbols;
    LstmCell cell;
    Linear readout;
  };
  const Dim batch("batch", s.batch), in("in", 64), hidden("hidden", s.hidden),
      symbol("symbol", s.symbols), beam("beam", s.beam);
  const Labeller labeller{Embedding::init(symbol, in), LstmCell::init(in, hidden),
                          Linear::init(hidden, symbol)};
  const Tensor start = zeros({batch}, i32), limits = full({batch}, s.steps, i32);
  const auto search = [=](const Labeller& labeller, const Tensor& start, const Tensor& limits) {
    const auto step = [&](const Tensor& label, const LstmCell::State& state) {
      const auto [y, next] = labeller.cell(labeller.symbols(label), state);
      return std::pair{log_softmax(labeller.readout(y), symbol), next};
    };
    return beam_search(step, start, labeller.cell.initial_state({batch}), limits,
                       {.beam = beam, .end = s.symbols - 1})
        .score;
  };
  const auto score_of = [=](const auto& search) {
    return static_cast<double>(mean(search(labeller, start, limits)).template item<float>());
  };
  Model result{str("beam search B=", s.batch, " K=", s.beam, " V=", s.symbols),
               [=](bool is_traced) -> Step {
                 if (!is_traced) return [=] { return score_of(search); };
                 return [=, traced = jit(search)] { return score_of(traced); };
               }};
  result.products = {{s.batch * s.beam, s.symbols, s.hidden, 1, s.steps}};
  return result;
}

}  // namespace reel::bench
