// Batches: order, sizes, resuming, reading ahead, errors.
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "reel/tests/frontend/data/batches_of_numbers.h"
#include "reel/tests/modes.h"
#include "reel/tests/no_threads.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

Numbers up_to(std::int64_t count) {
  Numbers all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}
/// Lengths between 0 and 19 without an order.
Numbers some_lengths(std::int64_t count) {
  Numbers lengths;
  for (std::int64_t i = 0; i < count; ++i) lengths.push_back(i * 7919 % 20);
  return lengths;
}

TEST(BatchesTest, RowsInTheirOrder) {
  EXPECT_EQ(all_of(5, {.rows = 2}), (BatchesOfNumbers{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(all_of(5, {.rows = 2, .drop_last = true}), (BatchesOfNumbers{{0, 1}, {2, 3}}));
  EXPECT_EQ(all_of(5, {.rows = 9}), (BatchesOfNumbers{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(all_of(0, {.rows = 2}), BatchesOfNumbers{});
  EXPECT_EQ(all_of(1, {.rows = 2, .drop_last = true, .epochs = 3}), BatchesOfNumbers{});
}

/// The numbers stand here so that another machine, compiler or library is seen to agree.
TEST(BatchesTest, ASeedHasOneOrderEverywhere) {
  Batches batches = numbers(7, {.rows = 3, .shuffle = 42});
  const BatchesOfNumbers first = all_of(batches), second = all_of(batches);
  EXPECT_EQ(sorted(joined(first)), up_to(7));
  EXPECT_EQ(sorted(joined(second)), up_to(7));
  EXPECT_NE(first, second);
  EXPECT_EQ(all_of(7, {.rows = 3, .shuffle = 42}), first);
  EXPECT_NE(all_of(7, {.rows = 3, .shuffle = 43}), first);
  EXPECT_EQ(joined(first), (Numbers{4, 5, 1, 2, 0, 6, 3}));
}

TEST(BatchesTest, EveryOrderOfFourRowsOccurs) {
  std::set<Numbers> orders;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    orders.insert(joined(all_of(4, {.rows = 4, .shuffle = seed, .ahead = 0})));
  EXPECT_EQ(orders.size(), 24u);
}

TEST(BatchesTest, TokensCountPadding) {
  const Numbers lengths{3, 1, 5, 2, 0, 6};
  EXPECT_EQ(all_of(6, {.tokens = 6, .lengths = lengths}),
            (BatchesOfNumbers{{0, 1}, {2}, {3, 4}, {5}}));
  EXPECT_EQ(all_of(6, {.tokens = 6, .bucket = 6, .lengths = lengths}),
            (BatchesOfNumbers{{4, 1, 3}, {0}, {2}, {5}}));
  EXPECT_EQ(all_of(6, {.rows = 2, .tokens = 100, .lengths = lengths}),
            (BatchesOfNumbers{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(all_of(3, {.tokens = 2, .lengths = {0, 0, 0}}), (BatchesOfNumbers{{0, 1, 2}}));
  for (const std::int64_t bucket : {0, 10, 100, 1000})
    for (const Numbers& batch : all_of(
             200, {.tokens = 40, .shuffle = 3, .bucket = bucket, .lengths = some_lengths(200)})) {
      std::int64_t longest = 0;
      for (const std::int64_t row : batch)
        longest = std::max(longest, some_lengths(200)[static_cast<std::size_t>(row)]);
      EXPECT_LE(longest * static_cast<std::int64_t>(batch.size()), 40);
    }
}

/// Returns the padded elements of all batches.
std::int64_t padded(const BatchesOfNumbers& batches, const Numbers& lengths) {
  std::int64_t sum = 0;
  for (const Numbers& batch : batches) {
    std::int64_t longest = 0;
    for (const std::int64_t row : batch)
      longest = std::max(longest, lengths[static_cast<std::size_t>(row)]);
    sum += longest * static_cast<std::int64_t>(batch.size());
  }
  return sum;
}

TEST(BatchesTest, BucketsHaveRowsOfSimilarLength) {
  const Numbers lengths = some_lengths(400);
  const std::int64_t elements = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const auto with_bucket = [&](std::int64_t bucket) {
    return all_of(400, {.rows = 8, .shuffle = 1, .bucket = bucket, .lengths = lengths});
  };
  EXPECT_GT(padded(with_bucket(0), lengths), elements * 3 / 2);
  EXPECT_LT(padded(with_bucket(200), lengths), elements * 5 / 4);
  EXPECT_LT(padded(with_bucket(400), lengths), padded(with_bucket(80), lengths));
  EXPECT_EQ(sorted(joined(with_bucket(100))), up_to(400));
  // All batches but one are full: a bucket has as many rows as whole batches.
  int partial = 0;
  for (const Numbers& batch :
       all_of(403, {.rows = 8, .shuffle = 1, .bucket = 100, .lengths = some_lengths(403)}))
    partial += batch.size() != 8;
  EXPECT_EQ(partial, 1);
  // Batches of one length do not follow one another.
  const BatchesOfNumbers batches = with_bucket(400);
  const auto length_of = [&](const Numbers& batch) {
    return lengths[static_cast<std::size_t>(batch[0])];
  };
  EXPECT_FALSE(std::is_sorted(batches.begin(), batches.end(), [&](const auto& a, const auto& b) {
    return length_of(a) < length_of(b);
  }));
}

TEST(BatchesTest, ALoopEndsWithItsEpochOrAfterAll) {
  Batches each = numbers(3, {.rows = 2});
  EXPECT_EQ(all_of(each).size(), 2u);
  EXPECT_EQ(each.epoch(), 1);
  EXPECT_EQ(all_of(each).size(), 2u);
  EXPECT_EQ(each.epoch(), 2);
  Batches three = numbers(3, {.rows = 2, .epochs = 3});
  EXPECT_EQ(all_of(three).size(), 6u);
  EXPECT_EQ(three.epoch(), 3);
  EXPECT_EQ(all_of(three).size(), 0u);
  EXPECT_EQ(three.size(), 2);
}

TEST(BatchesTest, ABrokenLoopGoesOnBehindItsLastBatch) {
  Batches batches = numbers(6, {.rows = 1});
  for (const Numbers& batch : batches)
    if (batch[0] == 2) break;
  EXPECT_EQ(joined(all_of(batches)), (Numbers{3, 4, 5}));
}

/// The position counts batches that were handed out, however many are made ahead.
TEST(BatchesTest, ResumesExactlyFromEveryPosition) {
  for (const int ahead : {0, 1, 3, 50}) {
    const BatchOptions options{.tokens = 30,
                               .shuffle = 9,
                               .bucket = 16,
                               .epochs = 3,
                               .ahead = ahead,
                               .lengths = some_lengths(40)};
    const BatchesOfNumbers whole = all_of(40, options);
    Batches batches = numbers(40, options);
    std::vector<BatchPosition> positions{batches.position()};
    for ([[maybe_unused]] const Numbers& batch : batches) positions.push_back(batches.position());
    ASSERT_EQ(positions.size(), whole.size() + 1);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      Batches resumed = numbers(40, options);
      resumed.seek(positions[i]);
      EXPECT_EQ(all_of(resumed),
                BatchesOfNumbers(whole.begin() + static_cast<std::ptrdiff_t>(i), whole.end()));
      batches.seek(positions[i]);  // also backwards, in batches that were read ahead
      EXPECT_EQ(
          joined(all_of(batches)).size(),
          joined(BatchesOfNumbers(whole.begin() + static_cast<std::ptrdiff_t>(i), whole.end()))
              .size());
    }
  }
}

TEST(BatchesTest, RandomNumbersInABatchBelongToItsPlace) {
  const auto draw = [](const Numbers& rows) {
    return random_uniform({static_cast<std::int64_t>(rows.size())});
  };
  const auto drawn = [&](int ahead, std::int64_t skipped) {
    Batches batches(6, draw, {.rows = 2, .shuffle = 5, .ahead = ahead});
    BatchPosition position = batches.position();
    position.batch = scalar(skipped, i64);
    if (skipped) batches.seek(position);
    std::vector<double> all;
    for (const Tensor& batch : batches)
      for (const double value : values_of(batch)) all.push_back(value);
    return all;
  };
  manual_seed(1);
  const Tensor before = random_state();
  const std::vector<double> all = drawn(2, 0);
  EXPECT_EQ(drawn(0, 0), all);
  EXPECT_EQ(drawn(2, 1), std::vector<double>(all.begin() + 2, all.end()));
  EXPECT_NE(all[0], all[2]);
  expect_same_bits(random_state(), before);  // the caller's stream is untouched
}

TEST(BatchesTest, AnExceptionComesAtItsPlaceAndTheNextLoopTriesAgain) {
  for (const int ahead : {0, 1, 4}) {
    std::atomic<bool> is_broken = true;
    Batches batches(4,
                    [&](const Numbers& rows) {
                      if (rows[0] == 2 && is_broken) throw IoError("row 2 cannot be read");
                      return rows;
                    },
                    {.rows = 1, .ahead = ahead});
    Numbers seen;
    EXPECT_EQ(message_of<IoError>([&] {
                for (const Numbers& batch : batches) seen.push_back(batch[0]);
              }),
              "row 2 cannot be read");
    EXPECT_EQ(seen, (Numbers{0, 1}));
    EXPECT_EQ(batches.position().batch.item<int>(), 2);
    is_broken = false;
    EXPECT_EQ(joined(all_of(batches)), (Numbers{2, 3}));
  }
}

TEST(BatchesTest, ThreadsEndWithTheirBatches) {
  for (const int ahead : {1, 2, 7}) {
    { const Batches unused = numbers(10, {.rows = 1, .ahead = ahead}); }
    {
      Batches begun = numbers(1000, {.rows = 1, .epochs = 1000, .ahead = ahead});
      for ([[maybe_unused]] const Numbers& batch : begun) break;
    }
    {
      Batches moved = numbers(3, {.rows = 1, .ahead = ahead});
      Batches other = std::move(moved);
      EXPECT_EQ(all_of(other).size(), 3u);
    }
  }
}

/// The destructor cancels a loop that the thread runs.
TEST(BatchesTest, AnEndlessLoopInTheThreadIsCancelled) {
  std::atomic<bool> has_begun = false;
  Batches batches(2,
                  [&](const Numbers& rows) {
                    if (rows[0] == 1) {
                      has_begun = true;
                      while_loop([](const Tensor& s) { return s < 1.0; },
                                 [](const Tensor& s) { return s * 1.0; }, scalar(0.0));
                    }
                    return rows;
                  },
                  {.rows = 1});
  for ([[maybe_unused]] const Numbers& batch : batches) break;
  while (!has_begun) std::this_thread::yield();
}

TEST(BatchesTest, AWaitingLoopCanBeCancelled) {
  std::atomic<bool> may_end = false;
  Batches batches(1,
                  [&](const Numbers& rows) {
                    while (!may_end) std::this_thread::yield();
                    return rows;
                  },
                  {.rows = 1});
  std::stop_source source;
  source.request_stop();
  {
    const CancellationScope scope(source.get_token());
    EXPECT_THROW(batches.begin(), CancelledError);
  }
  may_end = true;
  EXPECT_EQ(all_of(batches).size(), 1u);
}

TEST(BatchesTest, WithoutThreadsTheCallerMakesThem) {
  const NoThreads none;
  EXPECT_EQ(all_of(5, {.rows = 2, .shuffle = 1}), all_of(5, {.rows = 2, .shuffle = 1, .ahead = 0}));
}

TEST(BatchesTest, OptionAheadBoundsTheBatchesThatAreMade) {
  std::atomic<int> made = 0;
  Batches batches(100,
                  [&](const Numbers& rows) {
                    ++made;
                    return rows;
                  },
                  {.rows = 1, .ahead = 3});
  auto batch = batches.begin();
  ++batch;
  while (made < 5) std::this_thread::yield();
  EXPECT_LE(made, 6);  // two handed out, three ahead, one in the making
}

struct Example {
  std::vector<int> letters;
  float target;
  std::size_t size() const { return letters.size(); }
};
struct Batch {
  Tensor letters, targets;
};
Batch pack_examples(const std::vector<Example>& rows) {
  std::vector<std::vector<int>> letters;
  std::vector<float> targets;
  for (const Example& row : rows) {
    letters.push_back(row.letters);
    targets.push_back(row.target);
  }
  const Dim batch("batch", scalar(static_cast<std::int64_t>(rows.size())));
  return {ragged(letters, {batch, Dim("time")}), tensor(targets, {batch})};
}

class BatchesInModesTest : public InEveryMode {};
TEST_P(BatchesInModesTest, OneTraceServesBatchesOfTokens) {
  std::vector<Example> rows;
  for (int i = 0; i < 30; ++i)
    rows.push_back({std::vector<int>(static_cast<std::size_t>(i * 7 % 10), i), i * 0.5f});
  Batches batches(rows, pack_examples, {.tokens = 40, .shuffle = 2, .bucket = 10});
  const auto step = run([](const Batch& batch) {
    return sum(cast(sum(batch.letters, batch.letters.dim("time")), f32) + batch.targets);
  });
  double total = 0, expected = 0;
  for (const Batch& batch : batches) total += step(batch).item<double>();
  for (const Example& row : rows)
    expected += row.target + row.letters.size() * (row.letters.empty() ? 0 : row.letters[0]);
  EXPECT_DOUBLE_EQ(total, expected);
  EXPECT_EQ(step.trace_count(), 1);
}
REEL_IN_EVERY_MODE(BatchesInModesTest);

TEST(BatchesTest, TensorTreesGiveBatchesOfTheirRows) {
  const Dim examples("examples", 4), feature("feature", 2);
  const Dim time("time", tensor({2, 0, 3, 1}, {examples}));
  struct Data {
    Tensor x, y, shared;
  };
  const Data data{
      tensor({{1., 2., NAN}, {NAN, NAN, NAN}, {3., 4., 5.}, {6., NAN, NAN}}, {examples, time}),
      tensor({{0., 1.}, {2., 3.}, {4., 5.}, {6., 7.}}, {examples, feature}), ones({feature})};
  Batches batches(data, examples, {.rows = 3});
  std::vector<std::vector<float>> rows;
  std::vector<double> ys;
  for (const Data& batch : batches) {
    EXPECT_EQ(batch.x.dim(0).name(), "examples");
    EXPECT_EQ(batch.shared.dims(), Dims{feature});
    for (const auto& row : rows_of(batch.x)) rows.push_back(row);
    for (const double y : values_of(batch.y)) ys.push_back(y);
  }
  EXPECT_EQ(rows, (std::vector<std::vector<float>>{{1, 2}, {}, {3, 4, 5}, {6}}));
  EXPECT_EQ(ys, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
  // By length: the dim knows it. A batch is as long as its longest row.
  Batches by_length(data, examples, {.tokens = 3, .bucket = 4});
  std::vector<std::int64_t> extents;
  for (const Data& batch : by_length) extents.push_back(batch.x.dim("time").size());
  EXPECT_EQ(extents, (std::vector<std::int64_t>{1, 2, 3}));
  Batches plain(tensor({{1., 2.}, {3., 4.}, {5., 6.}}), 0, {.rows = 2});
  std::vector<std::int64_t> sizes;
  for (const Tensor& batch : plain) sizes.push_back(batch.shape()[0]);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{2, 1}));
}

class BatchesOfFilesTest : public InOwnFolder {
 protected:
  BatchesOfFilesTest() : InOwnFolder("data.npy") {}
};

TEST_F(BatchesOfFilesTest, ArraysAreReadRowByRow) {
  const Dim rows("rows", 10), feature("feature", 3);
  const Tensor x = reshape(range(Dim(30)), Dims{rows, feature});
  save_npy(path, x);
  Batches batches(Sequence(path, {feature}), Dim("batch"), {.rows = 4, .shuffle = 1});
  Numbers seen;
  for (const Tensor& batch : batches) {
    EXPECT_EQ(batch.dims()[1], feature);
    for (std::int64_t i = 0; i < batch.shape()[0]; ++i) {
      const std::int64_t row = batch.at(i, 0).item<std::int64_t>() / 3;
      expect_values(batch[i], values_of(x[row]));
      seen.push_back(row);
    }
  }
  EXPECT_EQ(sorted(seen), up_to(10));
  Batches in_order(Sequence(path), 0, {.rows = 4});
  expect_values(*in_order.begin(), values_of(slice(x, rows, 0, 4)));
}

TEST_F(BatchesOfFilesTest, PositionsAreSavedInCheckpoints) {
  struct Training {
    Tensor model = zeros({1}, f64);
    BatchPosition data;
  };
  const auto train = [&](std::size_t stop) {
    Training now;
    Batches batches = numbers(20, {.rows = 3, .shuffle = 1, .epochs = 2});
    if (std::filesystem::exists(path)) load_checkpoint(path, now);
    batches.seek(now.data);
    std::size_t steps = 0;
    for (const Numbers& batch : batches) {
      for (const std::int64_t row : batch) now.model = now.model * 0.9 + static_cast<double>(row);
      now.data = batches.position();
      save_checkpoint(path, now);
      if (++steps == stop) break;
    }
    return now.model;
  };
  const Tensor whole = train(99);
  std::filesystem::remove(path);
  train(4);
  train(5);
  expect_same_bits(train(99), whole);
  expect_same_bits(train(99), whole);  // nothing is left to do
}

TEST(BatchesTest, ThePositionOfANamedAxisStandsForItsDim) {
  const Dim batch("batch", 3), time("time", tensor({1, 3, 2}, {batch}));
  const Tensor x = ones({batch, time});
  std::vector<std::string> types;
  for (const Tensor& part : Batches(x, 0, {.tokens = 3, .bucket = 3, .ahead = 0}))
    types.push_back(str(part.type()));
  EXPECT_EQ(types,
            (std::vector<std::string>{"f32[batch=1,time[batch=1]]", "f32[batch=1,time[batch=1]]",
                                      "f32[batch=1,time[batch=1]]"}));
}

TEST(BatchesErrorsTest, NoGradientReachesTheData) {
  const auto loss = [](const Tensor& x) {
    Tensor total = scalar(0.0);
    for (const Tensor& rows : Batches(x, 0, {.rows = 2})) total += sum(square(rows));
    return total;
  };
  expect_values(loss(ones({3})), {3});
  EXPECT_EQ(message_of<ArgumentError>([&] { grad(loss)(ones({3})); }),
            "Batches: no gradient reaches f32[3] through batches; make them outside of the "
            "gradient, or take the rows with gather");
  // A gradient with respect to something else does not matter.
  expect_values(grad([&](const Tensor& w) { return w * loss(ones({3})); })(scalar(2.0)), {3});
}

TEST(BatchesErrorsTest, ErrorsNameTheOptionToChange) {
  EXPECT_EQ(message_of<ArgumentError>([] { numbers(3, {}); }),
            "Batches: give the size of a batch: {.rows = 32}, or {.tokens = 4096}");
  EXPECT_EQ(message_of<ArgumentError>([] { numbers(3, {.rows = -1}); }),
            "Batches: rows must not be negative, got -1");
  EXPECT_EQ(message_of<ArgumentError>([] { numbers(3, {.tokens = 5}); }),
            "Batches: tokens and bucket need the length of each row: there are 3 rows, and 0 "
            "lengths; give them as .lengths");
  EXPECT_EQ(message_of<ArgumentError>([] {
              numbers(2, {.tokens = 5, .lengths = {1, 6}});
            }),
            "Batches: row 1 has 6 elements, more than a batch may have (tokens = 5); leave it out, "
            "or cut it");
  EXPECT_EQ(message_of<ArgumentError>([] {
              numbers(2, {.tokens = 5, .drop_last = true, .lengths = {1, 1}});
            }),
            "Batches: drop_last leaves out batches of fewer than `rows` rows; give it");
  const std::string other =
      "Batches: the position is one in batches of other rows or of other options; continue with "
      "the same data, or begin anew with BatchPosition{}";
  const BatchPosition position = numbers(3, {.rows = 1}).position();
  for (const BatchOptions& options : std::vector<BatchOptions>{
           {.rows = 2}, {.rows = 1, .shuffle = 0}, {.rows = 1, .drop_last = true}})
    EXPECT_EQ(message_of<ArgumentError>([&] { numbers(3, options).seek(position); }), other);
  EXPECT_EQ(message_of<ArgumentError>([&] { numbers(4, {.rows = 1}).seek(position); }), other);
  numbers(3, {.rows = 1, .ahead = 7}).seek(position);  // reading ahead changes no batch
  BatchPosition beyond = position;
  beyond.batch = scalar(4, i64);
  EXPECT_EQ(message_of<IndexError>([&] { numbers(3, {.rows = 1}).seek(beyond); }),
            "Batches: there is no batch 4 of epoch 0");
  const Dim batch("batch", 2);
  EXPECT_EQ(message_of<ShapeError>(
                [&] { return Batches(ones({batch}), Dim("other", 2), {.rows = 1}).size(); }),
            "Batches: no tensor has the dim of the rows, other=2; the first one is f32[batch=2]");
  EXPECT_EQ(message_of<ShapeError>(
                [&] { return Batches(ones({batch}), Dim("batch", 2), {.rows = 1}).size(); }),
            "Batches: no tensor has the dim of the rows, batch=2; one is f32[batch=2]; the two "
            "called batch are not one Dim: use one Dim for both, as x.dim(\"batch\") gives it");
  EXPECT_EQ(message_of<ShapeError>([] {
              return Batches(std::pair{ones({2}), ones({3})}, 0, {.rows = 1}).size();
            }),
            "Batches: the tensors have different numbers of rows, 2 and 3, the latter in f32[3]");
}

}  // namespace
}  // namespace reel
