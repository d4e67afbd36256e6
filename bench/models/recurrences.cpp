#include "recurrences.h"

#include <memory>
#include <utility>

#include "loops_by_hand.h"

namespace reel::bench {
namespace {

/// Returns a run of value and gradient of a loss, or of the loss alone.
template <class Arguments, class Loss>
Step run_of(const std::string& name, const Arguments& at, const Loss& loss, bool has_gradient,
            bool is_traced) {
  const auto value_of = [](const auto& results) {
    if constexpr (requires { results.first; })
      return static_cast<double>(results.first.template item<float>());
    else
      return static_cast<double>(results.template item<float>());
  };
  const auto step_of = [=](auto function) -> Step {
    return [=] { return value_of(function(at)); };
  };
  const JitOptions options{.name = name};
  const auto gradient = value_and_grad(loss);
  if (has_gradient) return is_traced ? step_of(jit(gradient, options)) : step_of(gradient);
  return is_traced ? step_of(jit(loss, options)) : step_of(loss);
}

// ---- Selective scan -----------------------------------------------------------------------------

struct Selective {
  Tensor step, x;  // {batch, time, channel}
  Tensor decay;    // {channel, state}
  Tensor in, out;  // {batch, time, state}
};
struct OneStep {
  Tensor step, x, in, out;
};

Tensor selective_loss(const Selective& at, bool by_scan) {
  const Dim batch = at.step.dim("batch"), time = at.step.dim("time");
  const Dim channel = at.decay.dim("channel"), state = at.decay.dim("state");
  const auto decay_of = [&](const Tensor& step, const Dims& dims) {
    return exp(-(expand(step, dims) * at.decay));
  };
  if (!by_scan) {
    const Dims full{batch, time, channel, state};
    const Tensor h = linear_scan(decay_of(at.step, full), expand(at.step * at.x, full), time,
                                 {.input = expand(at.in, full)});
    return mean(square(matmul(h, at.out, state)));
  }
  const Dims dims{batch, channel, state};
  const auto body = [&](const OneStep& now, const Tensor& h) {
    const Tensor next =
        decay_of(now.step, dims) * h + expand(now.step * now.x, dims) * expand(now.in, dims);
    return std::pair{matmul(next, now.out, state), next};
  };
  return mean(square(scan(Scan{.spatial_dim = time,
                               .initial = zeros(dims),
                               .xs = OneStep{at.step, at.x, at.in, at.out},
                               .body = body})
                         .ys));
}

// ---- minGRU -------------------------------------------------------------------------------------

struct MinGru {
  Tensor gate, gate_bias, candidate, candidate_bias, x;
};

Tensor mingru_loss(const MinGru& at, bool by_scan) {
  const Dim in = at.x.dim("in"), time = at.x.dim("time");
  const Tensor z = sigmoid(matmul(at.x, at.gate, in) + at.gate_bias);
  const Tensor next = matmul(at.x, at.candidate, in) + at.candidate_bias;
  if (!by_scan) return mean(square(linear_scan(1. - z, z, time, {.input = next})));
  const auto body = [](const std::pair<Tensor, Tensor>& now, const Tensor& h) {
    const Tensor after = (1. - now.first) * h + now.first * now.second;
    return std::pair{after, after};
  };
  return mean(square(scan(Scan{.spatial_dim = time,
                               .initial = zeros({at.x.dim("batch"), at.gate.dim("hidden")}),
                               .xs = std::pair{z, next},
                               .body = body})
                         .ys));
}

// ---- Neural ODE ---------------------------------------------------------------------------------

struct Ode {
  Tensor into, bias, out, start;  // {state, hidden}, {hidden}, {hidden, state}, {state}
};

constexpr int kOdeSteps = 10'000;
constexpr double kOdeStep = 0.001;

Tensor ode_loss(const Ode& at) {
  const Dim state = at.start.dims()[0], hidden = at.bias.dims()[0];
  const auto slope = [&](const Tensor& y) {
    return matmul(tanh(matmul(y, at.into, state) + at.bias), at.out, hidden);
  };
  const auto step = [&](const Tensor& y) {
    const Tensor k1 = slope(y), k2 = slope(y + kOdeStep / 2 * k1);
    const Tensor k3 = slope(y + kOdeStep / 2 * k2), k4 = slope(y + kOdeStep * k3);
    const Tensor next = y + kOdeStep / 6 * (k1 + 2. * k2 + 2. * k3 + k4);
    return std::pair{next, next};
  };
  const Dim time("time", kOdeSteps);
  return mean(square(scan(Scan{.spatial_dim = time, .initial = at.start, .body = step}).ys));
}

}  // namespace

Model selective_scan(bool by_scan) {
  const std::string name =
      str("selective scan", by_scan ? " by scan" : "", " T=256 B=4 channels=128 states=16");
  const auto arguments = [] {
    manual_seed(1);
    const Dim batch("batch", 4), time("time", 256), channel("channel", 128), state("state", 16);
    return Selective{random_uniform({batch, time, channel}, 0.01, 0.3),
                     random_normal({batch, time, channel}),
                     random_uniform({channel, state}, 0.5, 16.),
                     random_normal({batch, time, state}), random_normal({batch, time, state})};
  };
  Model result{name, [=](bool is_traced) {
                 const auto loss = [by_scan](const Selective& at) {
                   return selective_loss(at, by_scan);
                 };
                 return run_of(name, arguments(), loss, true, is_traced);
               }};
  result.other_name = "loop_by_hand";
  result.other = [=]() -> Step {
    const Selective at = arguments();
    const auto floats = [](const Tensor& x) { return x.to_vector<float>(); };
    const auto loop =
        std::make_shared<SelectiveScanByHand>(4, 256, 128, floats(at.step), floats(at.x),
                                              floats(at.decay), floats(at.in), floats(at.out));
    return [loop] { return loop->run(); };
  };
  return result;
}

Model mingru() {
  const std::string name = "minGRU T=512 B=16 H=128";
  const auto arguments = [] {
    manual_seed(1);
    const Dim batch("batch", 16), time("time", 512), in("in", 128), hidden("hidden", 128);
    return MinGru{random_normal({in, hidden}) * 0.09, zeros({hidden}),
                  random_normal({in, hidden}) * 0.09, zeros({hidden}),
                  random_normal({batch, time, in})};
  };
  const auto step = [=](bool by_scan, bool is_traced) {
    const auto loss = [by_scan](const MinGru& at) { return mingru_loss(at, by_scan); };
    return run_of(name, arguments(), loss, true, is_traced);
  };
  Model result{name, [=](bool is_traced) { return step(false, is_traced); }};
  result.other_name = "scan";
  result.other = [=] { return step(true, true); };
  return result;
}

Model neural_ode(bool has_gradient) {
  const std::string name =
      str("neural ODE", has_gradient ? "" : " forward", " T=", kOdeSteps, " states=2 H=16");
  const auto arguments = [] {
    manual_seed(1);
    const Dim state("state", 2), hidden("hidden", 16);
    return Ode{random_normal({state, hidden}) * 0.3, random_normal({hidden}) * 0.1,
               random_normal({hidden, state}) * 0.3, random_normal({state})};
  };
  Model result{name, [=](bool is_traced) {
                 return run_of(name, arguments(), ode_loss, has_gradient, is_traced);
               }};
  result.threads = 1;
  result.other_name = "loop_by_hand";
  result.other = [=]() -> Step {
    const Ode at = arguments();
    const auto floats = [](const Tensor& x) { return x.to_vector<float>(); };
    const auto loop =
        std::make_shared<NeuralOdeByHand>(kOdeSteps, static_cast<float>(kOdeStep), floats(at.into),
                                          floats(at.bias), floats(at.out), floats(at.start));
    return [=] {
      const double loss = loop->forward();
      if (has_gradient) loop->backward();
      return loss;
    };
  };
  return result;
}

Model vocabulary() {
  constexpr int kPositions = 512, kWords = 30'000, kWidth = 128;
  struct Readout {
    Tensor x, words, targets;  // {position, width}, {width, word}, {position}
  };
  const std::string name = str("vocabulary N=", kPositions, " words=", kWords, " H=", kWidth);
  const auto loss = [](const std::pair<Tensor, Tensor>& at, const Tensor& targets) {
    const Dim width = at.first.dims()[1], word = at.second.dims()[1];
    return cross_entropy(matmul(at.first, at.second, width), targets, word);
  };
  Model result{
      name, [=](bool is_traced) -> Step {
        manual_seed(1);
        const Dim position("position", kPositions), width("width", kWidth);
        const Dim word("word", kWords);
        const std::pair at{random_normal({position, width}), random_normal({width, word}) * 0.05};
        const Tensor targets = random_symbols({position}, kWords);
        const auto run = [=](const auto& function) -> Step {
          return [=] {
            return static_cast<double>(function(at, targets).first.template item<float>());
          };
        };
        const auto gradient = value_and_grad(loss);
        return is_traced ? run(jit(gradient, {.name = name})) : run(gradient);
      }};
  result.products = with_gradients({kPositions, kWords, kWidth});
  return result;
}

}  // namespace reel::bench
