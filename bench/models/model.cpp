#include "model.h"

#include <algorithm>
#include <cmath>

namespace reel::bench {

Text random_text(const Dims& dims, int symbols) {
  return {random_symbols(dims, symbols), random_symbols(dims, symbols)};
}

Tensor random_symbols(const Dims& dims, int symbols) {
  return cast(floor(random_uniform(dims, 0, 1, f64) * static_cast<double>(symbols)), i32);
}

Dim sequences(const std::string& name, const Dim& batch, int steps, double least) {
  if (least == 1) return Dim(name, steps);
  return Dim(name, tensor(spread_lengths(static_cast<int>(batch.size()), steps, least), {batch}));
}

std::vector<int> spread_lengths(int batch, int steps, double least) {
  std::vector<int> lengths;
  for (int i = 0; i < batch; ++i) {
    const double share = 1 - (1 - least) * i / std::max(1, batch - 1);
    lengths.push_back(std::max(1, static_cast<int>(std::lround(share * steps))));
  }
  std::shuffle(lengths.begin(), lengths.end(), std::mt19937(1));
  return lengths;
}

}  // namespace reel::bench
