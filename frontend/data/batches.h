// frontend/data/batches.h — Batches, the batches of a training run: shuffled, grouped by length,
// made ahead on a thread, and resumed exactly.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/frontend/data/batch_reader.h"
#include "reel/frontend/files/sequence.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

template <class Make, class Row>
concept MakesBatch = std::invocable < const Make&,
        const std::vector<Row>
& > ;

/// Adds the sizes of rows as their lengths, if these are needed and not given.
template <class Row>
BatchOptions with_sizes(BatchOptions options, const std::vector<Row>& rows) {
  if constexpr (requires(const Row& row) { row.size(); })
    if ((options.tokens || options.bucket) && options.lengths.empty())
      for (const Row& row : rows) options.lengths.push_back(static_cast<std::int64_t>(row.size()));
  return options;
}

/// The rows of tensors along an axis.
class TensorRows {
 public:
  TensorRows(const Tensors& tensors, const Axis& axis);

  std::int64_t count() const { return count_; }
  /// Adds the lengths of the first ragged dim over the axis, if lengths are needed and not given.
  BatchOptions with_lengths(BatchOptions options) const;
  /// Returns the tensors with these rows; tensors without the axis are unchanged.
  Tensors take(const RowNumbers& rows, bool is_dynamic) const;

 private:
  Tensors tensors_;
  Axis axis_;
  std::int64_t count_ = 0;
};

/// Returns the dim of a batch, with like's name; dynamic if batches differ in their number of rows.
Dim batch_dim(const Dim& like, std::int64_t rows, bool is_dynamic);

}  // namespace detail

/// The batches of a data set, read by a range-based for loop.
///
///   Batches batches(load_lines("text.txt"), [](const std::vector<std::string>& lines) {
///     return ragged(lines, {Dim("batch"), Dim("time")});
///   }, {.rows = 32, .shuffle = 1, .bucket = 3200, .epochs = 10});
///   batches.seek(now.data);  // a BatchPosition from a checkpoint, or a new one
///   for (const Tensor& text : batches) {
///     std::tie(now.model, loss) = step(std::move(now.model), text);
///     now.data = batches.position();  // behind this batch, however many are made ahead
///   }
///
/// Order: the batches of each epoch depend only on the seed, the options and the lengths, so
/// they are the same on every machine. Random numbers that are drawn while a batch is made depend
/// only on the seed and the place of the batch.
///
/// Thread: up to `ahead` batches are made on one more thread, by a function that must therefore not
/// share data with the loop. Its exceptions are thrown in the loop, at the place of the batch; the
/// destructor cancels loops that it runs, and waits for its end. If no thread can be started, the
/// caller makes each batch. A CancellationScope of the loop ends it with CancelledError at the next
/// batch or epoch; a new loop continues there.
///
/// Traces: a jitted step has one trace for all lengths of ragged dims, but one for each number of
/// rows, unless the batch's dim is dynamic: {.dynamic = {Dim("batch")}}. Movable; not thread-safe.
template <class Batch>
class Batches {
 public:
  /// Makes batches of rows in memory. make: (const std::vector<Row>& rows) -> Batch.
  template <class Row, detail::MakesBatch<Row> Make>
  Batches(std::vector<Row> rows, Make make, const BatchOptions& options)
      : Batches(std::make_shared<const std::vector<Row>>(std::move(rows)), std::move(make),
                options) {}
  /// Makes batches of rows with the numbers 0 to count - 1. make: (const std::vector<std::int64_t>&
  /// rows) -> Batch.
  template <std::integral Count, class Make>
  Batches(Count count, Make make, BatchOptions options)
      : reader_(static_cast<std::int64_t>(count), std::move(options),
                [make = std::move(make)](const detail::RowNumbers& numbers) {
                  return std::static_pointer_cast<void>(std::make_shared<Batch>(make(numbers)));
                }) {}
  /// Makes batches of a tree of tensors with rows along an axis. The batch's dim has the axis's
  /// name; with `tokens` it is dynamic. Ragged dims get the lengths of the rows.
  Batches(const Batch& data, const Axis& axis, const BatchOptions& options)
      : Batches(data, detail::TensorRows(tensors_of(flatten(data)), axis), options) {}
  /// Makes batches of an array in a file: its time steps are the rows. batch: a dim that is only a
  /// name, or any size for plain dims.
  Batches(Sequence file, const Dim& batch,
          const BatchOptions& options) requires std::same_as<Batch, Tensor>
      : Batches(std::make_shared<const Sequence>(std::move(file)), batch, options) {}

  /// Returns the place behind the last batch that was handed out: a tree, for the checkpoint.
  BatchPosition position() const { return reader_.position(); }
  /// Continues at a position. Throws ArgumentError if it belongs to other data or other options.
  void seek(const BatchPosition& position) { reader_.seek(position); }
  /// Returns the number of epochs that are over.
  std::int64_t epoch() const { return reader_.epoch(); }
  /// Returns the number of batches of the present epoch.
  std::int64_t size() const { return reader_.size(); }

  /// An input iterator over batches.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    explicit Iterator(detail::BatchReader& reader) : reader_(&reader) { ++*this; }
    Batch& operator*() const { return *static_cast<Batch*>(batch_.get()); }
    Batch* operator->() const { return &**this; }
    Iterator& operator++() {
      batch_.reset();  // freed before the next one is awaited
      batch_ = reader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    detail::BatchReader* reader_;
    std::shared_ptr<void> batch_;
  };
  /// Begins a loop at the position: to the end of the epoch, or of all `epochs`.
  Iterator begin() {
    reader_.begin_loop();
    return Iterator(reader_);
  }
  /// Returns the end of a loop.
  std::default_sentinel_t end() const { return {}; }

 private:
  template <class Row, class Make>
  Batches(std::shared_ptr<const std::vector<Row>> rows, Make make, const BatchOptions& options)
      : reader_(static_cast<std::int64_t>(rows->size()), detail::with_sizes(options, *rows),
                [rows, make = std::move(make)](const detail::RowNumbers& numbers) {
                  std::vector<Row> own;
                  own.reserve(numbers.size());
                  for (const std::int64_t i : numbers)
                    own.push_back((*rows)[static_cast<std::size_t>(i)]);
                  return std::static_pointer_cast<void>(
                      std::make_shared<Batch>(make(std::as_const(own))));
                }) {}
  Batches(const Batch& data, const detail::TensorRows& rows, const BatchOptions& options)
      : reader_(rows.count(), rows.with_lengths(options),
                [data, rows, is_dynamic = options.tokens > 0](const detail::RowNumbers& numbers) {
                  return std::static_pointer_cast<void>(std::make_shared<Batch>(unflatten(
                      data, with_tensors(flatten(data), rows.take(numbers, is_dynamic)))));
                }) {}
  Batches(std::shared_ptr<const Sequence> file, const Dim& batch, const BatchOptions& options)
      : reader_(file->steps(), options, [file, batch](const detail::RowNumbers& numbers) {
          const auto rows = static_cast<std::int64_t>(numbers.size());
          return std::static_pointer_cast<void>(
              std::make_shared<Tensor>(file->take(numbers, detail::batch_dim(batch, rows, false))));
        }) {}

  detail::BatchReader reader_;
};

template <class Row, detail::MakesBatch<Row> Make>
Batches(std::vector<Row>, Make, BatchOptions)
    -> Batches<std::decay_t<std::invoke_result_t<const Make&, const std::vector<Row>&>>>;
template <std::integral Count, class Make>
Batches(Count, Make, BatchOptions)
    -> Batches<std::decay_t<std::invoke_result_t<const Make&, const std::vector<std::int64_t>&>>>;
template <class Tree>
Batches(Tree, Dim, BatchOptions) -> Batches<Tree>;
template <class Tree>
Batches(Tree, int, BatchOptions) -> Batches<Tree>;
Batches(Sequence, Dim, BatchOptions)->Batches<Tensor>;
Batches(Sequence, int, BatchOptions)->Batches<Tensor>;

}  // namespace reel
REEL_API_END
