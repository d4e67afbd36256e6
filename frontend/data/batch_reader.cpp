#include "reel/frontend/data/batch_reader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/held.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/core/runtime/random.h"
#include "reel/core/types/mode.h"

namespace reel::detail {
namespace {

constexpr const char* kBatchesName = "Batches";

/// A place between two batches.
struct Place {
  std::int64_t epoch = 0, batch = 0;
};

/// A batch; or, if both members are null, the end of an epoch.
struct Made {
  std::shared_ptr<void> batch;
  std::exception_ptr error;
};

/// Makes batches from a place on.
class Maker {
 public:
  Maker(const BatchOrder& order, const BatchReader::Make& make, Place place)
      : order_(order), make_(make), place_(place) {}

  bool is_at_end() const {
    return order_.options().epochs && place_.epoch >= order_.options().epochs;
  }
  /// Makes the next batch or reaches the end of the epoch. Never throws.
  Made make() noexcept try {
    if (!batches_) batches_ = order_.batches(place_.epoch);
    if (place_.batch >= static_cast<std::int64_t>(batches_->size())) {
      place_ = {place_.epoch + 1, 0};
      batches_.reset();
      return {};
    }
    const ModeScope plain({});  // batches belong to no trace
    const SeededStream stream(order_.seed_of(place_.epoch, place_.batch));
    Made made{make_((*batches_)[static_cast<std::size_t>(place_.batch)]), {}};
    ++place_.batch;
    return made;
  } catch (...) {
    return {{}, std::current_exception()};
  }

 private:
  const BatchOrder& order_;
  const BatchReader::Make& make_;
  Place place_;
  std::optional<std::vector<RowNumbers>> batches_;
};

}  // namespace

struct BatchReader::State {
  BatchOrder order;
  Make make;
  Place place{};  // of the next batch
  std::int64_t end_epoch = 0;
  mutable std::optional<std::pair<std::int64_t, std::int64_t>> size{};  // of an epoch

  std::optional<Maker> own_maker{};  // without a thread
  std::mutex mutex{};
  std::condition_variable_any changed{};
  std::deque<Made> made{};  // by the thread, in order
  std::jthread thread{};    // last: it uses the other members

  State(std::int64_t rows, BatchOptions options, Make make)
      : order(rows, std::move(options)), make(std::move(make)) {}
  ~State() { stop(); }

  /// Ends the thread, and drops the batches that it made.
  void stop() noexcept {
    if (thread.joinable()) {
      thread.request_stop();
      thread.join();
      thread = {};
    }
    made.clear();
    own_maker.reset();
  }
  /// Begins to make batches, on a thread if there is one.
  void start() {
    if (order.options().ahead > 0) try {
        thread = std::jthread([this, maker = Maker(order, make, place)](
                                  std::stop_token token) mutable { run(maker, token); });
        return;
      } catch (const std::system_error&) {  // no thread: the caller makes the batches
      }
    own_maker.emplace(order, make, place);
  }
  void run(Maker& maker, const std::stop_token& token) {
    const CancellationScope cancelled(token);  // ends loops in the function that makes a batch
    const auto most = static_cast<std::size_t>(order.options().ahead);
    while (!maker.is_at_end()) {
      {
        std::unique_lock lock(mutex);
        if (!changed.wait(lock, token, [&] { return made.size() < most; })) return;
      }
      Made next = maker.make();
      const bool failed = next.error != nullptr;
      const std::lock_guard lock(mutex);
      made.push_back(std::move(next));
      changed.notify_all();
      if (failed || token.stop_requested()) return;
    }
  }
  Made take() {
    if (own_maker) return own_maker->make();
    std::unique_lock lock(mutex);
    if (!changed.wait(lock, cancellation_token(), [&] { return !made.empty(); })) throw_cancelled();
    Made next = std::move(made.front());
    made.pop_front();
    changed.notify_all();
    return next;
  }
  /// Goes to the next epoch; if no epoch has a batch, to the end of the loop. Requires that all
  /// batches of the epoch were handed out.
  void end_epoch_of_place() {
    const bool skips_all = place.batch == 0 && place.epoch + 1 < end_epoch && order.is_empty();
    if (skips_all) stop();  // otherwise its epochs would differ from the place's
    place = {skips_all ? end_epoch : place.epoch + 1, 0};
  }
  std::int64_t size_of(std::int64_t epoch) const {
    if (!size || size->first != epoch)
      size = {epoch, static_cast<std::int64_t>(order.batches(epoch).size())};
    return size->second;
  }
};

BatchReader::BatchReader(std::int64_t rows, BatchOptions options, Make make)
    : state_(std::make_unique<State>(rows, std::move(options), std::move(make))) {}
BatchReader::~BatchReader() = default;
BatchReader::BatchReader(BatchReader&&) noexcept = default;
BatchReader& BatchReader::operator=(BatchReader&&) noexcept = default;

void BatchReader::begin_loop() {
  State& state = held(state_, kBatchesName);
  const std::int64_t epochs = state.order.options().epochs;
  state.end_epoch = epochs ? epochs : state.place.epoch + 1;
}

std::shared_ptr<void> BatchReader::next() {
  State& state = held(state_, kBatchesName);
  while (state.place.epoch < state.end_epoch) {
    check_cancellation();  // epochs without a batch may be many, and nothing else looks
    if (!state.thread.joinable() && !state.own_maker) state.start();
    Made next = state.take();
    if (next.error) {
      state.stop();
      std::rethrow_exception(next.error);
    }
    if (next.batch) {
      ++state.place.batch;
      return std::move(next.batch);
    }
    state.end_epoch_of_place();
  }
  return nullptr;
}

BatchPosition BatchReader::position() const {
  const State& state = held(state_, kBatchesName);
  const ModeScope plain({});
  return {scalar(state.place.epoch, i64), scalar(state.place.batch, i64),
          scalar(state.order.fingerprint(), i64)};
}

void BatchReader::seek(const BatchPosition& position) {
  State& state = held(state_, kBatchesName);
  const Place place{position.epoch.item<std::int64_t>(), position.batch.item<std::int64_t>()};
  const auto fingerprint = position.fingerprint.item<std::int64_t>();
  if (fingerprint ? fingerprint != state.order.fingerprint() : place.epoch || place.batch)
    throw ArgumentError(
        "Batches: the position is one in batches of other rows or of other options; continue with "
        "the same data, or begin anew with BatchPosition{}");
  if (place.epoch < 0 || place.batch < 0 || place.batch > state.size_of(place.epoch))
    throw IndexError(str("Batches: there is no batch ", place.batch, " of epoch ", place.epoch));
  state.stop();
  state.place = place;
}

std::int64_t BatchReader::epoch() const { return held(state_, kBatchesName).place.epoch; }
std::int64_t BatchReader::size() const {
  const State& state = held(state_, kBatchesName);
  return state.size_of(state.place.epoch);
}

}  // namespace reel::detail
