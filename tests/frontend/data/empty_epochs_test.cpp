// Batches: epochs without a batch, and cancelled loops.
#include <set>
#include <stop_token>
#include <thread>

#include "reel/tests/check.h"
#include "reel/tests/frontend/data/batches_of_numbers.h"

namespace reel {
namespace {

/// The options of batches that no epoch has.
std::vector<std::pair<std::int64_t, BatchOptions>> options_without_batches() {
  const BatchOptions full{.rows = 4, .drop_last = true},
      few{.rows = 3, .tokens = 10, .drop_last = true};
  std::vector<std::pair<std::int64_t, BatchOptions>> result{{0, {.rows = 2}}, {3, full}};
  // The longest of the three shortest rows has four elements.
  for (const Numbers& lengths : {Numbers{9, 4, 4, 0}, Numbers{4, 4, 4, 4}})
    for (const std::int64_t bucket : {0, 4}) {
      result.emplace_back(4, few);
      result.back().second.bucket = bucket;
      result.back().second.lengths = lengths;
    }
  for (std::size_t i = 0, count = result.size(); i < count; ++i) {
    result.push_back(result[i]);
    result.back().second.shuffle = 7;
  }
  return result;
}

TEST(EmptyEpochsTest, EpochsWithoutABatchAreOverAtOnce) {
  constexpr std::int64_t kEpochs = 1'000'000'000;  // hours, one by one
  for (auto [rows, options] : options_without_batches())
    for (const int ahead : {0, 1, 3}) {
      options.ahead = ahead;
      options.epochs = 0;
      Batches each = numbers(rows, options);
      EXPECT_EQ(all_of(each), BatchesOfNumbers{});
      EXPECT_EQ(each.epoch(), 1);
      options.epochs = kEpochs;
      Batches batches = numbers(rows, options);
      EXPECT_EQ(all_of(batches), BatchesOfNumbers{});
      EXPECT_EQ(batches.epoch(), kEpochs);
      EXPECT_EQ(batches.size(), 0);
      EXPECT_EQ(all_of(batches), BatchesOfNumbers{});
      const BatchPosition position = batches.position();
      EXPECT_EQ(position.epoch.item<std::int64_t>(), kEpochs);
      EXPECT_EQ(position.batch.item<std::int64_t>(), 0);
      batches.seek(BatchPosition{});
      EXPECT_EQ(batches.epoch(), 0);
      EXPECT_EQ(all_of(batches), BatchesOfNumbers{});
      EXPECT_EQ(batches.epoch(), kEpochs);
    }
}

TEST(EmptyEpochsTest, AnEpochWithoutABatchMayComeBeforeOneThatHasSome) {
  // Two rows of two elements are a batch if no longer row comes between them.
  const BatchOptions options{.rows = 2,
                             .tokens = 4,
                             .shuffle = 3,
                             .drop_last = true,
                             .epochs = 40,
                             .lengths = {2, 3, 2, 3}};
  for (const int ahead : {0, 2}) {
    BatchOptions of = options;
    of.ahead = ahead;
    Batches batches = numbers(4, of);
    std::set<std::int64_t> epochs;
    for (const Numbers& batch : batches) {
      EXPECT_EQ(sorted(batch), (Numbers{0, 2}));
      epochs.insert(batches.epoch());
    }
    EXPECT_GT(epochs.size(), 10u);
    EXPECT_LT(epochs.size(), 30u);
    EXPECT_EQ(batches.epoch(), 40);
  }
}

TEST(EmptyEpochsTest, EpochsWithoutABatchCanBeCancelled) {
  // Only an order in which the short rows follow one another has a batch: none will come.
  Numbers lengths(300, 4);
  std::fill(lengths.begin(), lengths.begin() + 50, 1);
  for (const int ahead : {0, 2}) {
    Batches batches = numbers(300, {.rows = 50,
                                    .tokens = 50,
                                    .shuffle = 1,
                                    .drop_last = true,
                                    .epochs = 1'000'000'000,
                                    .ahead = ahead,
                                    .lengths = lengths});
    std::stop_source source;
    const std::jthread canceller([&] { source.request_stop(); });
    const CancellationScope scope(source.get_token());
    EXPECT_THROW(batches.begin(), CancelledError);
    EXPECT_LT(batches.epoch(), 1'000'000'000);
  }
}

TEST(EmptyEpochsTest, ACancelledLoopKeepsItsPlace) {
  for (const int ahead : {0, 2}) {
    Batches batches = numbers(6, {.rows = 2, .ahead = ahead});
    std::stop_source source;
    {
      const CancellationScope scope(source.get_token());
      auto batch = batches.begin();
      EXPECT_EQ(*batch, (Numbers{0, 1}));
      source.request_stop();
      EXPECT_THROW(++batch, CancelledError);
    }
    EXPECT_EQ(joined(all_of(batches)), (Numbers{2, 3, 4, 5}));
  }
}

}  // namespace
}  // namespace reel
