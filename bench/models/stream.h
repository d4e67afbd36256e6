// bench/models/stream.h — a model that is trained on a stream of batches, each with other lengths.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model.h"

namespace reel::bench {

/// Runs a training step on a batch, given by its number, and returns the loss.
using BatchStep = std::function<double(std::size_t batch)>;

struct Stream {
  std::string name;  ///< of the case, without the number of threads
  std::size_t batches = 0;
  /// Returns steps that begin with the initial parameters.
  std::function<BatchStep(bool is_traced)> reel;
};

/// The lengths of one batch's entries.
using Lengths = std::vector<int>;

/// Returns the lengths of `count` batches of `rows` entries each, as Batches draws them: the words
/// of the sentences of a license, or their letters.
///
/// is_sorted: sentences of similar length are in one batch.
std::vector<Lengths> lengths_of_text(std::size_t count, int rows, bool is_sorted, bool in_letters);

/// Returns a dim of these lengths.
Dim sequences(const std::string& name, const Dim& batch, const Lengths& lengths);

/// Returns a stream of training steps: loss and gradient, then Adam. loss: (Parameters, Data) ->
/// scalar.
template <class Parameters, class Data, class Loss>
Stream stream(const std::string& name, const Parameters& parameters, std::vector<Data> batches,
              Loss loss) {
  const auto all = std::make_shared<const std::vector<Data>>(std::move(batches));
  const auto begin = [=](bool is_traced) -> BatchStep {
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
  return {name, all->size(), begin};
}

}  // namespace reel::bench
