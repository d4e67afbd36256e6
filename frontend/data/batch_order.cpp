#include "reel/frontend/data/batch_order.h"

#include <algorithm>
#include <numeric>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/random.h"
#include "reel/core/runtime/random.h"
#include "reel/core/types/mode.h"

namespace reel::detail {
namespace {

/// Mixes a number into a hash. Source: splitmix64, Steele, Lea & Flood (2014).
std::uint64_t mix(std::uint64_t hash, std::uint64_t number) {
  std::uint64_t z = hash + 0x9e3779b97f4a7c15 + number * 0xd1342543de82ef95;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
std::uint64_t mix(std::uint64_t hash, std::int64_t number) {
  return mix(hash, static_cast<std::uint64_t>(number));
}

// Numbers of the random streams of an epoch.
constexpr std::uint64_t kRowOrder = 1, kBatchOrder = 2, kInBatch = 3;

/// Returns 0, 1, ... count - 1 in an order that only the seed determines.
std::vector<std::int32_t> permuted(std::int64_t count, std::uint64_t seed) {
  const ModeScope plain({});
  const SeededStream stream(seed);
  return permutation(Dim(count)).to_vector<std::int32_t>();
}

void check_not_negative(const char* option, std::int64_t value) {
  if (value < 0)
    throw ArgumentError(str("Batches: ", option, " must not be negative, got ", value));
}

}  // namespace

BatchOrder::BatchOrder(std::int64_t rows, BatchOptions options)
    : rows_(rows), options_(std::move(options)) {
  check_not_negative("rows", options_.rows);
  check_not_negative("tokens", options_.tokens);
  check_not_negative("bucket", options_.bucket);
  check_not_negative("epochs", options_.epochs);
  check_not_negative("ahead", options_.ahead);
  if (!options_.rows && !options_.tokens)
    throw ArgumentError("Batches: give the size of a batch: {.rows = 32}, or {.tokens = 4096}");
  if (options_.drop_last && !options_.rows)
    throw ArgumentError("Batches: drop_last leaves out batches of fewer than `rows` rows; give it");
  if (!options_.tokens && !options_.bucket) return;
  const auto given = static_cast<std::int64_t>(options_.lengths.size());
  if (given != rows)
    throw ArgumentError(str("Batches: tokens and bucket need the length of each row: there are ",
                            rows, " rows, and ", given, " lengths; give them as .lengths"));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = options_.lengths[static_cast<std::size_t>(row)];
    if (length < 0)
      throw ArgumentError(str("Batches: row ", row, " has the negative length ", length));
    if (options_.tokens && length > options_.tokens)
      throw ArgumentError(str("Batches: row ", row, " has ", length,
                              " elements, more than a batch may have (tokens = ", options_.tokens,
                              "); leave it out, or cut it"));
  }
}

RowNumbers BatchOrder::order(std::int64_t epoch) const {
  RowNumbers order(static_cast<std::size_t>(rows_));
  if (!options_.shuffle) {
    std::iota(order.begin(), order.end(), 0);
  } else {
    const auto shuffled = permuted(rows_, mix(mix(*options_.shuffle, epoch), kRowOrder));
    std::copy(shuffled.begin(), shuffled.end(), order.begin());
  }
  if (!options_.bucket) return order;
  const std::int64_t whole = std::max<std::int64_t>(options_.rows, 1);
  const std::int64_t bucket =
      std::min((std::min(options_.bucket, rows_) + whole - 1) / whole * whole, rows_);
  for (std::int64_t begin = 0; begin < rows_; begin += bucket)
    std::stable_sort(order.begin() + begin, order.begin() + std::min(begin + bucket, rows_),
                     [&](std::int64_t a, std::int64_t b) {
                       return options_.lengths[static_cast<std::size_t>(a)] <
                              options_.lengths[static_cast<std::size_t>(b)];
                     });
  return order;
}

std::vector<RowNumbers> BatchOrder::cut(const RowNumbers& order) const {
  std::vector<RowNumbers> batches;
  std::int64_t longest = 0;
  for (const std::int64_t row : order) {
    const std::int64_t length =
        options_.tokens ? options_.lengths[static_cast<std::size_t>(row)] : 0;
    const auto fits = [&](const RowNumbers& batch) {
      const auto count = static_cast<std::int64_t>(batch.size()) + 1;
      if (options_.rows && count > options_.rows) return false;
      const std::int64_t elements = std::max(longest, length);
      return !options_.tokens || elements == 0 || count <= options_.tokens / elements;
    };
    if (batches.empty() || !fits(batches.back())) {
      batches.emplace_back();
      longest = 0;
    }
    batches.back().push_back(row);
    longest = std::max(longest, length);
  }
  if (options_.drop_last)
    std::erase_if(batches, [&](const RowNumbers& batch) {
      return static_cast<std::int64_t>(batch.size()) < options_.rows;
    });
  return batches;
}

std::vector<RowNumbers> BatchOrder::batches(std::int64_t epoch) const {
  std::vector<RowNumbers> batches = cut(order(epoch));
  if (!options_.shuffle || !options_.bucket) return batches;
  std::vector<RowNumbers> shuffled;
  shuffled.reserve(batches.size());
  for (const std::int32_t i : permuted(static_cast<std::int64_t>(batches.size()),
                                       mix(mix(*options_.shuffle, epoch), kBatchOrder)))
    shuffled.push_back(std::move(batches[static_cast<std::size_t>(i)]));
  return shuffled;
}

bool BatchOrder::is_empty() const {
  if (!options_.shuffle) return batches(0).empty();  // every epoch has the same order
  if (!rows_ || !options_.drop_last) return !rows_;
  if (rows_ < options_.rows) return true;
  if (!options_.tokens) return false;
  // In some order the shortest rows come first. If they are no full batch, no rows are.
  RowNumbers lengths = options_.lengths;
  const auto longest = lengths.begin() + (options_.rows - 1);
  std::nth_element(lengths.begin(), longest, lengths.end());
  return *longest && options_.rows > options_.tokens / *longest;
}

std::uint64_t BatchOrder::seed_of(std::int64_t epoch, std::int64_t batch) const {
  return mix(mix(mix(options_.shuffle.value_or(0), epoch), kInBatch), batch);
}

std::int64_t BatchOrder::fingerprint() const {
  std::uint64_t hash = mix(0, rows_);
  for (const std::int64_t number : {options_.rows, options_.tokens, options_.bucket,
                                    static_cast<std::int64_t>(options_.drop_last),
                                    static_cast<std::int64_t>(options_.shuffle.has_value()),
                                    static_cast<std::int64_t>(options_.shuffle.value_or(0))})
    hash = mix(hash, number);
  if (options_.tokens || options_.bucket)
    for (const std::int64_t length : options_.lengths) hash = mix(hash, length);
  return static_cast<std::int64_t>(hash | 1);  // never 0, the fingerprint of a new position
}

}  // namespace reel::detail
