// tests/frontend/data/batches_of_numbers.h — batches of the numbers of rows, for tests of Batches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reel/reel.h"

namespace reel {

using Numbers = std::vector<std::int64_t>;
using BatchesOfNumbers = std::vector<Numbers>;

/// Batches of the numbers of rows.
inline Batches<Numbers> numbers(std::int64_t count, BatchOptions options) {
  return Batches(
      count, [](const Numbers& rows) { return rows; }, std::move(options));
}
inline BatchesOfNumbers all_of(Batches<Numbers>& batches) {
  BatchesOfNumbers result;
  for (const Numbers& batch : batches) result.push_back(batch);
  return result;
}
inline BatchesOfNumbers all_of(std::int64_t count, BatchOptions options) {
  Batches batches = numbers(count, std::move(options));
  return all_of(batches);
}
inline Numbers joined(const BatchesOfNumbers& batches) {
  Numbers all;
  for (const Numbers& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}
inline Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace reel
