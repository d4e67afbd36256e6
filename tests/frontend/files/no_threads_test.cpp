// If no thread can be started, the caller does the work of helper threads.
#include <gtest/gtest.h>

#include <thread>

#include "reel/core/runtime/parallel.h"
#include "reel/frontend/files/sequence_reads.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/no_threads.h"
#include "reel/tests/own_folder.h"
#include "reel/trace/executors/spill/spill_file.h"

namespace reel {
namespace {

class NoThreadsTest : public InOwnFolder {
 protected:
  NoThreadsTest() : InOwnFolder("sequence.npy") {}
};

TEST_F(NoThreadsTest, StdHasNone) {
  const NoThreads none;
  EXPECT_THROW(std::thread([] {}), std::system_error);
}

TEST_F(NoThreadsTest, SequenceLosesNoWindow) {
  save_npy(path, range(Dim(9)));
  Sequence sequence(path);
  const SequenceReads before = sequence_reads();
  const auto next = [&] { return sequence.next(Dim(3)).to_vector<std::int32_t>(); };
  {
    const NoThreads none;
    EXPECT_EQ(next(), (std::vector<std::int32_t>{0, 1, 2}));
    EXPECT_EQ(sequence.position(), 3);
    EXPECT_EQ(next(), (std::vector<std::int32_t>{3, 4, 5}));
  }
  EXPECT_EQ(next(), (std::vector<std::int32_t>{6, 7, 8}));
  EXPECT_EQ(sequence_reads().ahead, before.ahead);
  EXPECT_EQ(sequence_reads().when_asked, before.when_asked + 3);
}

TEST_F(NoThreadsTest, ASpillFileIsWrittenAndReadByTheCaller) {
  const NoThreads none;
  SpillFile file(folder_.string(), "scan");
  const Tensor block = tensor({1.0, 2.0, 3.0});
  const std::int64_t place = file.take(block.type().bytes());
  file.wait(file.write(place, block));
  const Tensor back = zeros({3});
  file.wait(file.read(place, back, true));
  expect_values(back, {1, 2, 3});
  EXPECT_EQ(spill_traffic().pending, 0);
}

TEST_F(NoThreadsTest, ALoopThatSwapsHasItsGradient) {
  const auto gradient = [](const Tensor& x) {
    return grad([](const Tensor& x) {
      const auto body = [](const Tensor&, const Tensor& s) { return tanh(s * 1.5f); };
      return sum(fori_loop(0, 64, body, x, {.swap_memory = true}));
    })(x);
  };
  const Tensor x = full({256}, 0.25), expected = gradient(x);
  const NoThreads none;
  expect_same_bits(gradient(x), expected);
}

}  // namespace
}  // namespace reel
