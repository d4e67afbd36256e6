// bench/models/stream.h — a model that is trained on a stream of batches, each with other lengths.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model.h"

namespace reel::bench {

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

/// Returns random texts of these lengths, one for each batch.
std::vector<Text> random_texts(const std::vector<Lengths>& lengths, int symbols);

/// Returns a stream of training steps. loss: (Parameters, Data) -> scalar.
template <class Parameters, class Data, class Loss>
Stream stream(const std::string& name, const Parameters& parameters, std::vector<Data> batches,
              Loss loss) {
  const std::size_t count = batches.size();
  return {name, count, training_on_batches(name, parameters, std::move(batches), std::move(loss))};
}

}  // namespace reel::bench
