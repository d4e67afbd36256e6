// bench/models/model.h — a model as a case: its training step in each mode, and its products.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../rnn.h"
#include "products.h"
#include "reel/reel.h"

namespace reel::bench {

/// Runs a training step, or forward only, and returns the loss.
using Step = std::function<double()>;

struct Model {
  std::string name;  ///< of the case, without the number of threads
  /// Returns a step that begins with the initial parameters.
  std::function<Step(bool is_traced)> reel;
  std::vector<Products> products = {};
  std::function<Step()> libtorch = {};  ///< empty in a build without libtorch
  /// The same function in another form: its name in metrics, and its traced step.
  std::string other_name = {};
  std::function<Step()> other = {};
  int threads = 2;  ///< the largest number of threads of the cases
};

/// A training step's parameters and optimiser.
template <class Parameters>
struct Learnt {
  Parameters model;
  Adam<Parameters> adam;
};

/// Returns training steps: loss and gradient, then Adam. loss: (Parameters, Data) -> scalar.
template <class Parameters, class Data, class Loss>
std::function<Step(bool)> training(const std::string& name, const Parameters& parameters,
                                   const Data& data, Loss loss) {
  return [=](bool is_traced) -> Step {
    const auto step = [loss](Learnt<Parameters> learnt, const Data& data) {
      const auto [value, gradient] = value_and_grad(loss)(learnt.model, data);
      learnt.adam.update(learnt.model, gradient);
      return std::pair{learnt, value};
    };
    const auto learnt = std::make_shared<Learnt<Parameters>>(
        Learnt<Parameters>{parameters, Adam<Parameters>(parameters)});
    const auto run = [=](const auto& function) {
      auto [next, value] = function(std::move(*learnt), data);
      *learnt = std::move(next);
      return static_cast<double>(value.template item<float>());
    };
    if (!is_traced) return [=] { return run(step); };
    return [=, traced = jit(step, {.name = name})] { return run(traced); };
  };
}

/// Returns the tensors of a tree as floats, by their paths.
template <class Tree>
Numbers numbers_of_tree(const Tree& tree) {
  Numbers numbers;
  const TreeLeaves leaves = flatten(tree);
  const std::vector<std::string> paths = leaf_paths(tree);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].kind == TreeLeaf::Kind::tensor)
      numbers[paths[i]] = cast(leaves[i].tensor, f32).to_vector<float>();
  return numbers;
}

/// Returns random symbols below `symbols`.
Tensor random_symbols(const Dims& dims, int symbols);

/// Returns lengths from `least` · steps to `steps`, evenly spread and shuffled.
std::vector<int> spread_lengths(int batch, int steps, double least);

/// Returns a ragged dim of these lengths; a static one if `least` is 1.
Dim sequences(const std::string& name, const Dim& batch, int steps, double least);

}  // namespace reel::bench
