#include "convolution.h"

#include <cstring>
#include <tuple>

#include "libtorch_models.h"
#include "reel/core/functions/convolutions.h"

namespace reel::bench {
namespace {

struct Arguments {
  Tensor x, filter;  // {batch, time, in}, {taps, in, out}
};

/// The arguments, the cotangent of the result, and the dims.
struct Problem {
  Arguments arguments;
  Tensor cotangent;
  Dim time = 0, in = 0;
  Convolution options;
};

Problem problem_of(const ConvolutionSizes& s) {
  manual_seed(1);
  const Dim batch("batch", s.batch), in("in", s.in), out("out", s.out), taps("taps", s.taps);
  const Dim time = sequences("time", batch, s.steps, s.least);
  const Tensor filter = s.is_depthwise ? random_normal({taps, in}) : random_normal({taps, in, out});
  Problem problem{{random_normal({batch, time, in}), filter}, {}, time, in, {}};
  problem.options.taps = {taps};
  if (!s.is_depthwise) problem.options.in = {in};
  problem.options.stride = s.stride;
  problem.options.padding = s.is_depthwise ? WindowPadding::causal : WindowPadding::same;
  problem.cotangent =
      random_normal(conv(problem.arguments.x, filter, time, problem.options).dims());
  return problem;
}

/// Copies as many bytes as a depthwise convolution and its gradients read and write, in three
/// passes: y of x, x̄ of ȳ, and the filter's gradient of both. Each pass has arrays of its own: a
/// copy within the cache would be no roof of a step, whose tensors leave the cache.
std::function<Step()> copy_of(const ConvolutionSizes& s) {
  return [=]() -> Step {
    using Bytes = std::vector<char>;
    const auto bytes =
        static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.steps * s.in) * 4;
    constexpr int kPasses = 3;
    const auto arrays = std::make_shared<std::vector<Bytes>>(2 * kPasses, Bytes(bytes, 'x'));
    return [=] {
      for (std::size_t i = 0; i < arrays->size(); i += 2)
        std::memcpy((*arrays)[i + 1].data(), (*arrays)[i].data(), bytes);
      return 0.0;
    };
  };
}

}  // namespace

Model convolution(const ConvolutionSizes& s) {
  const std::string name = s.is_depthwise ? str("conv depthwise channels=", s.in, " taps=", s.taps)
                                          : str("conv ", s.in, "->", s.out, " taps=", s.taps,
                                                " stride=", s.stride, s.least < 1 ? " ragged" : "");
  Model result{
      name, [=](bool is_traced) -> Step {
        const Problem problem = problem_of(s);
        const auto loss = [=](const Arguments& at) {
          return sum(conv(at.x, at.filter, problem.time, problem.options) * problem.cotangent);
        };
        const auto gradient = value_and_grad(loss);
        const auto step_of = [=](auto function) -> Step {
          return [=, at = problem.arguments] {
            return static_cast<double>(function(at).first.template item<float>());
          };
        };
        return is_traced ? step_of(jit(gradient, {.name = name})) : step_of(gradient);
      }};
  const int windows = s.batch * ((s.steps + s.stride - 1) / s.stride);
  if (s.is_depthwise) {
    result.other_name = "copy";
    result.other = copy_of(s);
    result.has_other_loss = true;
  } else {
    result.products = with_gradients({.m = windows, .n = s.out, .k = s.taps * s.in});
  }
  if (libtorch_models() && s.least == 1)
    result.libtorch = [=] {
      const Problem problem = problem_of(s);
      Numbers numbers = numbers_of_tree(problem.arguments);
      numbers["cotangent"] = problem.cotangent.to_vector<float>();
      return libtorch_models()->convolution(s, numbers);
    };
  result.threads = 1;
  return result;
}

}  // namespace reel::bench
