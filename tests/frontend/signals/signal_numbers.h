// tests/frontend/signals/signal_numbers.h — signals for tests: drawn samples, ragged batches with
// junk in their padding.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "reel/core/ops.h"
#include "reel/core/types/tensor.h"

namespace reel {

inline std::vector<double> drawn_signal(std::int64_t size, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x;
  for (std::int64_t i = 0; i < size; ++i) x.push_back(normal(engine));
  return x;
}

/// A ragged batch of signals, and each of them alone with a static dim.
struct RaggedSignals {
  Dim batch, time;
  Tensor all;  ///< f64 [batch, time], NaN in the padding
  std::vector<Tensor> alone;
};
inline RaggedSignals ragged_signals(const std::vector<int>& lengths) {
  const auto count = static_cast<std::int64_t>(lengths.size());
  RaggedSignals made{.batch = Dim("batch", count), .time = {}, .all = {}, .alone = {}};
  made.time = Dim("time", tensor(lengths, Dims{made.batch}));
  const std::int64_t longest = made.time.size();
  std::vector<double> values;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::vector<double> x = drawn_signal(lengths[b], static_cast<unsigned>(b) + 1);
    values.insert(values.end(), x.begin(), x.end());
    values.resize((b + 1) * static_cast<std::size_t>(longest),
                  std::numeric_limits<double>::quiet_NaN());
    made.alone.push_back(tensor(x, Dims{Dim("time", lengths[b])}, f64));
  }
  made.all = tensor(values, Dims{made.batch, made.time}, f64);
  return made;
}

/// Returns the elements of entry b along the axis behind the batch, without padding: as values.
inline std::vector<double> entry_values(const Tensor& x, std::int64_t b, std::int64_t length) {
  const std::vector<double> all = cast(x, f64).to_vector<double>();
  std::int64_t row = 1;
  for (int axis = 2; axis < x.rank(); ++axis) row *= x.dim(axis).size();
  const std::int64_t begin = b * x.dim(1).size() * row;
  return {all.begin() + begin, all.begin() + begin + length * row};
}

}  // namespace reel
