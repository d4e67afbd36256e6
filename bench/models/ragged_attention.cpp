#include "ragged_attention.h"

#include <algorithm>
#include <cmath>

namespace reel::bench {
namespace {

struct Arguments {
  Tensor weight;  // {hidden, next}
  Tensor keys;    // {batch, source, hidden}
  Tensor xs;      // {time, batch, hidden}
};

/// The state after attention with these scores.
Tensor next_of(const Arguments& at, const Tensor& x, const Tensor& h, const Tensor& scores) {
  const Dim source = at.keys.dim("source"), hidden = at.keys.dim("hidden");
  const Tensor context = matmul(softmax(scores, source), at.keys, source);
  return tanh(x + context + rename(matmul(h, at.weight, hidden), at.weight.dims()[1], hidden));
}

Tensor start_of(const Arguments& at) {
  return zeros({at.keys.dim("batch"), at.keys.dim("hidden")});
}

Tensor ragged_loss(const Arguments& at) {
  const Dim hidden = at.keys.dim("hidden");
  const auto step = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = next_of(at, x, h, matmul(at.keys, h, hidden));
    return std::pair{next, next};
  };
  return sum(square(scan(Scan{.spatial_dim = at.xs.dim("time"),
                              .initial = start_of(at),
                              .xs = at.xs,
                              .body = step})
                        .ys));
}

/// Masks of padded sequences: true for elements of the sequence.
struct Masks {
  Tensor time;    // {time, batch}
  Tensor source;  // {batch, source}
};

Tensor padded_loss(const Arguments& at, const Masks& masks) {
  const Dim hidden = at.keys.dim("hidden");
  const auto step = [&](const std::pair<Tensor, Tensor>& x, const Tensor& h) {
    const Tensor scores = where(masks.source, matmul(at.keys, h, hidden), -1e9);
    const Tensor next = next_of(at, x.first, h, scores);
    const Tensor is_running = expand(x.second, h.dims());
    return std::pair{where(is_running, next, 0), where(is_running, next, h)};
  };
  return sum(square(scan(Scan{.spatial_dim = at.xs.dim("time"),
                              .initial = start_of(at),
                              .xs = std::pair{at.xs, masks.time},
                              .body = step})
                        .ys));
}

std::vector<int> lengths_of(const RaggedAttentionSizes& s) {
  std::vector<int> lengths = spread_lengths(s.batch, s.steps, 1.0 / s.steps);
  if (s.order == Order::shortest_first) std::sort(lengths.begin(), lengths.end());
  if (s.order == Order::longest_first) std::sort(lengths.rbegin(), lengths.rend());
  return lengths;
}

/// Returns the same values for ragged and for padded dims.
Arguments random_arguments(const RaggedAttentionSizes& s, const Dim& batch, const Dim& time,
                           const Dim& source) {
  manual_seed(1);
  const Dim hidden("hidden", s.hidden), next("next", s.hidden);
  const auto random = [](const Dims& dims, double scale) {
    Dims plain;
    for (const Dim& dim : dims) plain.push_back(dim.size());
    return tensor((random_normal(plain) * scale).to_vector<float>(), dims);
  };
  const double scale = 1 / std::sqrt(1.0 * s.hidden);
  return {random({hidden, next}, scale), random({batch, source, hidden}, scale),
          random({time, batch, hidden}, 1)};
}

template <class Function, class... Data>
Step step_of(const Function& function, const Data&... data) {
  return [=] { return static_cast<double>(function(data...).first.template item<float>()); };
}

const char* words_of(Order order) {
  return order == Order::mixed            ? ""
         : order == Order::shortest_first ? " order=shortest_first"
                                          : " order=longest_first";
}

/// Returns the products at full length.
std::vector<Products> products_of(const RaggedAttentionSizes& s) {
  return joined({with_gradients({s.steps, 1, s.hidden, s.batch, s.steps}),
                 with_gradients({1, s.hidden, s.steps, s.batch, s.steps}),
                 recurrent(s.steps, s.batch, s.hidden, s.hidden)});
}

}  // namespace

Model ragged_attention(const RaggedAttentionSizes& s) {
  const std::string name =
      str("ragged attention B=", s.batch, " T=", s.steps, " H=", s.hidden, words_of(s.order));
  const Dim batch("batch", s.batch);
  const Tensor lengths = tensor(lengths_of(s), {batch});
  const auto reel = [=](bool is_traced) {
    const Arguments at = random_arguments(s, batch, Dim("time", lengths), Dim("source", lengths));
    const auto gradient = value_and_grad(ragged_loss);
    return is_traced ? step_of(jit(gradient, {.name = name}), at) : step_of(gradient, at);
  };
  const auto padded = [=] {
    const Dim time("time", s.steps), source("source", s.steps);
    const Arguments at = random_arguments(s, batch, time, source);
    const auto is_inside = [&](const Dims& dims, const Dim& of) {
      return expand(range(of), dims) < expand(lengths, dims);
    };
    const Masks masks{is_inside({time, batch}, time), is_inside({batch, source}, source)};
    return step_of(jit(value_and_grad(padded_loss), {.name = name + " padded"}), at, masks);
  };
  return {.name = name,
          .reel = reel,
          .products = products_of(s),
          .other_name = "padded",
          .other = padded,
          .threads = 1};
}

}  // namespace reel::bench
