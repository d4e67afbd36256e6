// frontend/data/batch_reader.h — BatchReader, which makes batches in their order, ahead of the
// caller.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/creation.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/data/batch_order.h"

REEL_API_BEGIN
namespace reel {

/// The place of Batches, a tree for checkpoints. A new one is the beginning.
struct BatchPosition {
  Tensor epoch = scalar(0, i64);        ///< the number of epochs that are over
  Tensor batch = scalar(0, i64);        ///< the number of batches of the epoch that were handed out
  Tensor fingerprint = scalar(0, i64);  ///< of the rows and the options; 0 for a new position
};

namespace detail {

/// Hands out one batch after the other. A thread makes the next ones meanwhile.
class BatchReader {
 public:
  /// Makes a batch of rows; runs on the thread.
  using Make = std::function<std::shared_ptr<void>(const RowNumbers& rows)>;

  /// Throws as BatchOrder does.
  BatchReader(std::int64_t rows, BatchOptions options, Make make);
  ~BatchReader();
  BatchReader(BatchReader&&) noexcept;
  BatchReader& operator=(BatchReader&&) noexcept;

  /// Begins a loop, which ends with this epoch, or after `epochs`.
  void begin_loop();
  /// Returns the next batch, or null at the end of the loop. Throws the exception that making it
  /// threw; the position is then unchanged. Throws CancelledError if this thread is cancelled.
  std::shared_ptr<void> next();

  BatchPosition position() const;
  /// Throws ArgumentError for a position of other rows or options, IndexError if there is no such
  /// place.
  void seek(const BatchPosition& position);
  std::int64_t epoch() const;
  /// Returns the number of batches of this epoch.
  std::int64_t size() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail
}  // namespace reel
REEL_API_END
