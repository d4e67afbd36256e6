// Models of sequences as the examples have them: a tagger, a translator, a forecaster, a solver.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

// ---- A conditional random field -----------------------------------------------------------------

struct Field {
  Tensor transitions;  // {tag, next_tag}
};

/// Returns log Σ exp(score) over all tags of a text.
Tensor log_partition(const Field& field, const Tensor& scores, const Dim& tag,
                     const Dim& next_tag) {
  const auto body = [&](const Tensor& score, const Tensor& alpha) {
    const Tensor into = logsumexp(expand(alpha, next_tag) + field.transitions, tag);
    return std::pair{None{}, rename(into, next_tag, tag) + score};
  };
  const Dim time = scores.dim("time"), batch = scores.dim("batch");
  return logsumexp(
      scan(Scan{.spatial_dim = time, .initial = zeros({batch, tag}), .xs = scores, .body = body})
          .state,
      tag);
}

/// Returns the best tags, searched forwards and read backwards.
Tensor best_tags(const Field& field, const Tensor& scores, const Dim& tag, const Dim& next_tag) {
  const Dim time = scores.dim("time"), batch = scores.dim("batch");
  const auto body = [&](const Tensor& score, const Tensor& best) {
    const Tensor into = expand(best, next_tag) + field.transitions;
    const Tensor from = rename(argmax(into, tag), next_tag, tag);
    return std::pair{from, rename(max(into, tag), next_tag, tag) + score};
  };
  const auto [from, best, steps] =
      scan(Scan{.spatial_dim = time, .initial = zeros({batch, tag}), .xs = scores, .body = body});
  const auto back = [&](const Tensor& from, const Tensor& now) {
    return std::pair{now, gather(from, now, tag)};
  };
  return scan(Scan{.spatial_dim = time,
                   .initial = argmax(best, tag),
                   .xs = from,
                   .body = back,
                   .reverse = true})
      .ys;
}

void add_tagger(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), time("time", tensor({4, 1, 3}, {batch})), tag("tag", 3),
      next_tag("next_tag", 3);
  manual_seed(61);
  const Field field{random_normal({tag, next_tag})};
  const Tensor scores = random_normal({batch, time, tag});
  cases.push_back(saved_case(
      "a conditional random field and its gradient",
      [=](const Field& field, const Tensor& scores) {
        return value_and_grad([&](const Field& field) {
          return mean(log_partition(field, scores, tag, next_tag));
        })(field);
      },
      std::tuple{field, scores}));
  cases.push_back(saved_case(
      "the best tags",
      [=](const Field& field, const Tensor& scores) {
        return best_tags(field, scores, tag, next_tag);
      },
      std::tuple{field, scores}));
}

// ---- Sequence to sequence -----------------------------------------------------------------------

constexpr int kBegin = 0, kEnd = 1;

struct Translator {
  Embedding symbols;
  GruCell ahead, back;
  Linear keys;
  GruCell decoder;
  Linear readout;
};

struct Encoded {
  Tensor keys;
  Dim inputs;
};

Encoded encode(const Translator& m, const Tensor& text) {
  const Dim inputs = text.dim("inputs");
  return {
      m.keys(bidirectional(m.ahead, m.back, m.symbols(text), inputs, {.out = m.keys.in}).outputs),
      inputs};
}

std::pair<Tensor, Tensor> decode(const Translator& m, const Encoded& source, const Tensor& before,
                                 const Tensor& state) {
  const auto [y, next] = m.decoder(m.symbols(before), state);
  const Dim hidden = m.keys.out;
  const Tensor weights = softmax(matmul(source.keys, y, hidden), source.inputs);
  const Tensor seen = matmul(weights, source.keys, source.inputs);
  return {m.readout(tanh(concat({y, seen}, hidden, m.readout.in))), next};
}

void add_translator(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), inputs("inputs", tensor({3, 1, 2}, {batch}));
  const Dim symbol("symbol", 6), feature("feature", 3), hidden("hidden", 4), both("both", 8);
  manual_seed(62);
  const Translator model{Embedding::init(symbol, feature), GruCell::init(feature, hidden),
                         GruCell::init(feature, hidden),   Linear::init(both, hidden),
                         GruCell::init(feature, hidden),   Linear::init(both, symbol)};
  const Tensor text = tensor({2, 3, 4, 5, 0, 0, 4, 2, 0}, {batch, inputs});
  cases.push_back(saved_case("the loss of a translator, and its gradient",
                             [=](const Translator& m, const Tensor& text) {
                               const auto loss = [&](const Translator& m) {
                                 const Encoded source = encode(m, text);
                                 const Dim outputs = source.inputs + 1;
                                 const Tensor target = pad(reverse(text, source.inputs),
                                                           source.inputs, 0, 1, kEnd, outputs);
                                 const auto body = [&](const Tensor& before, const Tensor& state) {
                                   return decode(m, source, before, state);
                                 };
                                 const Tensor logits =
                                     scan(Scan{.spatial_dim = outputs,
                                               .initial = zeros({text.dim("batch"), m.keys.out}),
                                               .xs = shift(target, outputs, 1, kBegin),
                                               .body = body})
                                         .ys;
                                 return cross_entropy(logits, target, m.readout.out);
                               };
                               return value_and_grad(loss)(m);
                             },
                             std::tuple{model, text}, {.arguments = {"model", "text"}}));
  cases.push_back(saved_case(
      "what a translator writes",
      [=](const Translator& m, const Tensor& text) {
        const Encoded source = encode(m, text);
        const auto body = [&](const std::pair<Tensor, Tensor>& s) {
          const auto [logits, state] = decode(m, source, s.first, s.second);
          const Tensor next = argmax(logits, m.readout.out);
          return std::pair{next, std::pair{next, state}};
        };
        const Dim batch = text.dim("batch");
        const auto [ys, last, written] =
            scan(Scan{.spatial_dim = Dim("written"),
                      .cond_dims = {batch},
                      .initial = std::pair{full({batch}, kBegin, i32), zeros({batch, m.keys.out})},
                      .cond = [](const std::pair<Tensor, Tensor>& s) { return s.first != kEnd; },
                      .body = body,
                      .max_seq_len = 6});
        return std::pair{transpose(ys, {batch, written}), written};
      },
      std::tuple{model, text}, {.arguments = {"", "text"}, .parameters = {0}}));
}

// ---- A forecaster and a solver ------------------------------------------------------------------

struct Forecaster {
  Linear in;
  Tensor decay;
  Linear out;
};

void add_forecaster(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 3), time("time", tensor({5, 2, 4}, {batch})), one("one", 1),
      state("state", 4);
  manual_seed(63);
  const Forecaster model{Linear::init(one, state), random_uniform({state}, -3, 3),
                         Linear::init(state, one)};
  cases.push_back(saved_case(
      "the error of a forecaster, and its gradient",
      [](const Forecaster& model, const Tensor& x) {
        const Dim time = x.dim("time");
        return value_and_grad([&](const Forecaster& m) {
          const Tensor h = linear_scan(sigmoid(m.decay), m.in(x), time);
          return mean_squared_error(slice(m.out(gelu(h)), time, 0, -1, time - 1),
                                    slice(x, time, 1, {}, time - 1));
        })(model);
      },
      std::tuple{model, random_normal({batch, time, one})}, {.arguments = {"model", "x"}}));
}

/// Steps of different sizes, until the end of the interval: a while_loop with a gradient.
Tensor solve(const Tensor& rates, const Tensor& start, double duration) {
  struct State {
    Tensor time, step, at;
  };
  const auto try_step = [&](const State& s) {
    const Tensor h = stop_gradient(minimum(s.step, duration - s.time));
    const Tensor slope = rates * s.at, middle = s.at + h * slope / 2;
    const Tensor next = s.at + h * rates * middle;
    const Tensor error = max(abs(next - s.at - h * slope));
    const Tensor accepted = error < 1e-1;
    return State{where(accepted, s.time + h, s.time),
                 stop_gradient(h * where(accepted, scalar(1.5), scalar(0.5))),
                 where(accepted, next, s.at)};
  };
  const auto is_running = [&](const State& s) { return s.time < duration - 1e-6; };
  return while_loop(is_running, try_step, State{scalar(0.), scalar(0.7), start},
                    {.maximum_iterations = 100})
      .at;
}

void add_solver(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "a solver with steps of different sizes, and its gradient",
      [](const Tensor& rates, const Tensor& start) {
        return value_and_grad(
            [&](const Tensor& rates) { return sum(square(solve(rates, start, 2))); })(rates);
      },
      std::tuple{tensor({0.5, -0.75}), tensor({1., 2.})}));
}

}  // namespace

std::vector<SavedCase> sequence_cases() {
  std::vector<SavedCase> cases;
  add_tagger(cases);
  add_translator(cases);
  add_forecaster(cases);
  add_solver(cases);
  return cases;
}

}  // namespace reel
