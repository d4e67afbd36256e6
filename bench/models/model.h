// bench/models/model.h — a model as a case: its training step in each mode, and its products.
#pragma once

#include <cstddef>
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
/// Runs a training step on batch `batch`, and returns the loss.
using BatchStep = std::function<double(std::size_t batch)>;

struct Model {
  std::string name;  ///< of the case, without the number of threads
  /// Returns a step that begins with the initial parameters.
  std::function<Step(bool is_traced)> reel;
  std::vector<Products> products = {};
  std::function<Step()> libtorch = {};  ///< empty in a build without libtorch
  /// Another form of the function: its name in metrics, and its traced step.
  std::string other_name = {};
  std::function<Step()> other = {};
  bool has_other_loss = false;  ///< the other form computes something else
  int threads = 2;              ///< the largest number of threads of the cases
};

/// A training step's parameters and optimiser.
template <class Parameters>
struct Learnt {
  Parameters model;
  Adam<Parameters> adam;
};

/// Returns training steps on these batches: loss and gradient, then Adam.
///
/// loss: (Parameters, Data) -> scalar.
template <class Parameters, class Data, class Loss>
std::function<BatchStep(bool is_traced)> training_on_batches(const std::string& name,
                                                             const Parameters& parameters,
                                                             std::vector<Data> batches, Loss loss) {
  const auto all = std::make_shared<const std::vector<Data>>(std::move(batches));
  return [=](bool is_traced) -> BatchStep {
    const auto step = [loss](Learnt<Parameters> learnt, const Data& data) {
      const auto [value, gradient] = value_and_grad(loss)(learnt.model, data);
      learnt.adam.update(learnt.model, gradient);
      return std::pair{learnt, value};
    };
    const auto learnt = std::make_shared<Learnt<Parameters>>(
        Learnt<Parameters>{parameters, Adam<Parameters>(parameters)});
    const auto run = [=](const auto& function, std::size_t batch) {
      auto [next, value] = function(std::move(*learnt), (*all)[batch]);
      *learnt = std::move(next);
      return static_cast<double>(value.template item<float>());
    };
    if (!is_traced) return [=](std::size_t batch) { return run(step, batch); };
    return
        [=, traced = jit(step, {.name = name})](std::size_t batch) { return run(traced, batch); };
  };
}

/// Returns training steps on one batch.
template <class Parameters, class Data, class Loss>
std::function<Step(bool is_traced)> training(const std::string& name, const Parameters& parameters,
                                             const Data& data, Loss loss) {
  const auto begin =
      training_on_batches(name, parameters, std::vector<Data>{data}, std::move(loss));
  return [begin](bool is_traced) -> Step { return [step = begin(is_traced)] { return step(0); }; };
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

/// A text's symbols, and the symbol after each.
struct Text {
  Tensor symbols, next;
};

/// Returns a text of random symbols below `symbols`.
Text random_text(const Dims& dims, int symbols);
/// Returns random symbols below `symbols`.
Tensor random_symbols(const Dims& dims, int symbols);

/// Returns lengths from `least` · steps to `steps`, evenly spread and shuffled.
std::vector<int> spread_lengths(int batch, int steps, double least);

/// Returns a ragged dim of these lengths; a static one if `least` is 1.
Dim sequences(const std::string& name, const Dim& batch, int steps, double least);

}  // namespace reel::bench
