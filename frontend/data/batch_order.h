// frontend/data/batch_order.h — BatchOptions, and the order in which batches take rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Options of Batches.
struct BatchOptions {
  std::int64_t rows = 0;  ///< the largest number of rows of a batch; 0: as many as `tokens` allows
  /// The largest number of elements of a batch, padding included: its rows times the length of the
  /// longest one; 0: as many as `rows` allows.
  std::int64_t tokens = 0;
  /// A seed: every epoch takes the rows in another random order. Default: in their own order.
  std::optional<std::uint64_t> shuffle{};
  /// Groups rows of similar length: this number of consecutive rows of the order are sorted by
  /// length before they are cut into batches, and with `shuffle` the batches are put into random
  /// order. 0: not sorted. Rounded up to a multiple of `rows`.
  std::int64_t bucket = 0;
  bool drop_last = false;  ///< leaves out a batch with fewer than `rows` rows
  /// A loop over Batches ends when this number of epochs is over, counted from the first one. 0:
  /// each loop ends with its epoch, and the next loop runs over the next epoch. If no epoch has a
  /// batch, all of them are over at once.
  std::int64_t epochs = 0;
  int ahead = 2;  ///< batches that a thread makes ahead; 0: the caller makes each one
  /// The length of each row, for `tokens` and `bucket`. Default: its size, if it has one.
  std::vector<std::int64_t> lengths{};
};

namespace detail {

using RowNumbers = std::vector<std::int64_t>;

/// The batches of every epoch, which depend only on the seed, the options and the lengths: on any
/// machine they are the same.
class BatchOrder {
 public:
  /// Throws ArgumentError if options are out of range, or a row is longer than `tokens`.
  BatchOrder(std::int64_t rows, BatchOptions options);

  const BatchOptions& options() const { return options_; }
  /// Returns the rows of each batch of an epoch.
  std::vector<RowNumbers> batches(std::int64_t epoch) const;
  /// Returns true if no epoch has a batch: there are no rows, or drop_last leaves out every batch
  /// that any order of the rows gives.
  bool is_empty() const;
  /// Returns the seed of random numbers that are drawn while a batch is made.
  std::uint64_t seed_of(std::int64_t epoch, std::int64_t batch) const;
  /// Returns a number that differs, with high probability, for other rows or options that change
  /// the batches.
  std::int64_t fingerprint() const;

 private:
  RowNumbers order(std::int64_t epoch) const;
  std::vector<RowNumbers> cut(const RowNumbers& order) const;

  std::int64_t rows_;
  BatchOptions options_;
};

}  // namespace detail
}  // namespace reel
REEL_API_END
