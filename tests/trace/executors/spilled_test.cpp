// Residuals of a loop in a spill file: the blocks that are written and read, and the state after
// failures.
#include "reel/trace/executors/spill/spilled.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/short_files.h"
#include "reel/trace/executors/checkpoints/stack_list.h"

namespace reel {
namespace {

// SwapMemory must not convert from a folder's name or a number of bytes, which would be taken for
// true.
static_assert(std::is_convertible_v<bool, SwapMemory>);
static_assert(std::is_convertible_v<Spill, SwapMemory>);
static_assert(!std::is_convertible_v<const char*, SwapMemory>);
static_assert(!std::is_convertible_v<int, SwapMemory>);

constexpr std::int64_t kStepsOfBlock = 16;
/// Returns a value that takes a sixteenth of a block.
Tensor step(std::int64_t number) {
  return full({(1 << 20) / kStepsOfBlock / 4}, static_cast<float>(number));
}
Ref<Spilled> two_blocks_in_memory() {
  return Ref<Spilled>(new Spilled(std::make_shared<SpillFile>("", "scan \"a\""), 0, 1, std::nullopt,
                                  MemoryClass::saved, true));
}

class SpilledTest : public ::testing::Test {
 protected:
  SpillTraffic traffic() const {
    SpillTraffic now = spill_traffic();
    while (now.pending) now = spill_traffic();
    return {now.writes - before_.writes, now.bytes_written - before_.bytes_written,
            now.reads - before_.reads, now.bytes_read - before_.bytes_read,
            now.reads_ahead - before_.reads_ahead};
  }

 private:
  SpillTraffic before_ = spill_traffic();
};

// A budget drops many checkpoints over a million steps. Later checkpoints are appended instead of
// reusing their places, which would read and rewrite a block for each.
TEST_F(SpilledTest, CheckpointsAreWrittenOnceAndReadAhead) {
  StackList list(false, MemoryClass::checkpoints);
  list.spill_to(two_blocks_in_memory());
  std::vector<std::int64_t> kept;
  std::int64_t put = 0;
  CheckpointSchedule steps(0, 128);
  for (std::int64_t k = 0; k < 4000; ++k) {
    const CheckpointSchedule::Decision now = steps.before(k);
    for (int i = 0; i < now.drops; ++i) {
      list.thin();
      thin(kept);
    }
    if (!now.takes) continue;
    list.keep(step(k));
    kept.push_back(k);
    ++put;
  }
  ASSERT_GT(put, 4 * std::ssize(kept));
  const SpillTraffic written = traffic();
  EXPECT_LE(written.bytes_written, put * step(0).type().bytes());
  EXPECT_GT(written.bytes_written, 0);
  EXPECT_EQ(written.reads, 0);
  const Ref<ResidualSource> back = list.in_file();
  for (std::int64_t i = std::ssize(kept) - 1; i >= 0; --i) {
    back->need(i, 1);
    expect_same_bits(back->tensor(0, i), step(kept[static_cast<std::size_t>(i)]));
  }
  const SpillTraffic read = traffic();
  EXPECT_LE(read.reads, written.writes);
  EXPECT_GT(read.reads, 0);
  EXPECT_GE(read.reads_ahead, read.reads - 1);
}

// If the state grows, checkpoints of other sizes stay in memory and are freed when they are
// dropped.
TEST_F(SpilledTest, DroppedCheckpointsOfOtherSizesGo) {
  StackList list(false, MemoryClass::checkpoints);
  list.spill_to(two_blocks_in_memory());
  list.keep(step(0));
  const std::int64_t before = memory().saved.current;
  for (int k = 1; k < 5; ++k) list.keep(full({k}, 1.0f));
  EXPECT_EQ(memory().saved.current - before, (1 + 2 + 3 + 4) * 4);
  list.thin();
  EXPECT_EQ(memory().saved.current - before, (2 + 4) * 4);
}

// If the size is known to be small, no more memory is reserved, although values are put one by one.
TEST_F(SpilledTest, TakesMemoryForItsIterationsOnly) {
  const std::int64_t step_bytes = step(0).type().bytes();
  for (const std::int64_t steps : {1, 5, 16, 20}) {
    reset_peak_memory();
    const std::int64_t before = memory().saved.current;
    const Ref<Spilled> all(new Spilled(std::make_shared<SpillFile>("", "scan \"a\""), 0, 1, steps,
                                       MemoryClass::saved, true));
    for (std::int64_t k = 0; k < steps; ++k) all->put(k, step(k));
    EXPECT_EQ(memory().saved.peak - before, steps * step_bytes) << steps;
  }
}

// Reading waits for the blocks that are still being written and throws their errors. A second read
// finds the values in memory.
TEST_F(SpilledTest, UnwrittenBlocksStayInMemory) {
  const Ref<Spilled> all = two_blocks_in_memory();
  constexpr std::int64_t kSteps = 4 * kStepsOfBlock;
  {
    const ShortFiles nothing(0);
    for (std::int64_t k = 0; k < kSteps; ++k) all->put(k, step(k));
    ASSERT_EQ(traffic().writes, 2);
  }
  EXPECT_EQ(message_of<IoError>([&] {
              all->need(0, 1);
              return 0;
            }),
            "scan \"a\": swap_memory: cannot write to a file in /tmp: File too large");
  for (std::int64_t k = kSteps - 1; k >= 0; --k) {
    SCOPED_TRACE(k);
    try {
      all->need(k, 1);
    } catch (const IoError&) {  // the error of the other block
      all->need(k, 1);
    }
    expect_same_bits(all->tensor(0, k), step(k));
  }
}

}  // namespace
}  // namespace reel
