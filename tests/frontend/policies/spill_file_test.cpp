// Spill files: the blocks that are written and read, and the behaviour after failures.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "reel/tests/check.h"
#include "reel/tests/frontend/policies/swapping.h"
#include "reel/tests/own_folder.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

class SpillFileTest : public InOwnFolder {
 protected:
  SpillFileTest() : InOwnFolder("file") {}
  std::filesystem::path folder() const {
    return std::filesystem::absolute(std::filesystem::path(path).parent_path());
  }
};

TEST_F(SpillFileTest, ReadsWrittenBytesAndLeavesNoFile) {
  SpillFile file(folder().string(), "scan \"a\"");
  const Tensor a = random_normal({100}), b = random_normal({100});
  file.wait(file.write(file.take(400), a));
  file.wait(file.write(file.take(400), b));
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
  Tensor c(allocate_block(a.type()));
  file.wait(file.read(400, c));
  expect_same_bits(c, b);
  file.wait(file.read(0, c));
  expect_same_bits(c, a);
  EXPECT_GE(file_in(folder()), 0);
}

// Switches this thread's file-system user, because root may write anywhere.
class AsNobody {
 public:
  AsNobody() : before_(setfsuid(65534)) {}
  ~AsNobody() { setfsuid(static_cast<uid_t>(before_)); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  int before_;
};

// A thread that other work delays has the job after it is done. Memory of a block of a MiB too many
// would break a budget then.
TEST_F(SpillFileTest, AJobThatWasWaitedForHoldsNoBlock) {
  SpillFile file("", "a test");
  const auto written = file.write(0, ones({100}));
  EXPECT_EQ(file.wait(written).type(), TensorType(f32, {100}));
  EXPECT_FALSE(written->block.is_defined());
  const auto read = file.read(0, zeros({100}));
  expect_same_bits(file.wait(read), ones({100}));
  EXPECT_FALSE(read->block.is_defined());
}

TEST_F(SpillFileTest, AFolderThatOneMayNotWriteToIsAnErrorAndTheNextRunIsNot) {
  const SwappingProblem p = problem();
  const auto f = vjp(loss(false), p);
  namespace fs = std::filesystem;
  fs::permissions(folder(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                fs::perms::others_exec);
  const std::string message = [&] {
    const AsNobody nobody;
    return message_of<IoError>([&] { return vjp(loss(small(folder().string())), p).first; });
  }();
  fs::permissions(folder(), fs::perms::owner_all);
  EXPECT_EQ(message, str("scan \"scan\": swap_memory: cannot make a file in ", folder().string(),
                         ": Permission denied"));
  expect_same_bits(vjp(loss(small(folder().string())), p).second(scalar(1.0)).w,
                   f.second(scalar(1.0)).w);
}

// The residuals in the file are lost before the gradient reads them.
TEST_F(SpillFileTest, ShortReadByTheGradientFailsAndTheNextRunWorks) {
  const SwappingProblem p = problem();
  const auto expected = vjp(loss(false), p).second(scalar(1.0));
  {
    const auto [value, pullback] = vjp(loss(small(folder().string())), p);
    // A pending write behind the cut would make the file longer again.
    while (spill_traffic().pending) std::this_thread::yield();
    ASSERT_EQ(ftruncate(file_in(folder()), 100), 0);
    const std::string message = message_of<IoError>([&] { return pullback(scalar(1.0)); });
    EXPECT_EQ(message.find(str("scan \"scan\": swap_memory: a file in ", folder().string(),
                               " has 100 bytes")),
              0u)
        << message;
  }
  EXPECT_EQ(file_in(folder()), -1);
  expect_same_bits(vjp(loss(small(folder().string())), p).second(scalar(1.0)).w, expected.w);
}

TEST_F(SpillFileTest, BlocksAreOfAMiBAndReadAheadOfTheLoop) {
  const SwappingProblem p = problem();
  const SpillTraffic before = spill_traffic();
  const auto pullback = vjp(loss(small()), p).second;
  const SpillTraffic written = spill_traffic();
  EXPECT_GE(written.writes - before.writes, 2);
  EXPECT_GE(written.bytes_written - before.bytes_written, (written.writes - before.writes) << 20);
  EXPECT_EQ(written.reads, before.reads);
  pullback(scalar(1.0));
  const SpillTraffic after = spill_traffic();
  EXPECT_GE(after.reads - before.reads, 2);
  EXPECT_LE(after.reads - before.reads, written.writes - before.writes);
  EXPECT_EQ(after.reads_ahead - before.reads_ahead, after.reads - before.reads);
}

TEST(SpillTest, AWindowIsNotNegative) {
  EXPECT_EQ(message_of<ArgumentError>([] { return SwapMemory(Spill{.bytes_in_memory = -5}); }),
            "Spill: bytes_in_memory is -5; give 0 or more");
}

TEST_F(SpillFileTest, AFileThatHasBecomeShorterIsAnError) {
  SpillFile file(folder().string(), "scan \"a\"");
  const Tensor a = random_normal({100});
  file.wait(file.write(file.take(400), a));
  ASSERT_EQ(ftruncate(file_in(folder()), 100), 0);
  const Tensor c(allocate_block(a.type()));
  EXPECT_EQ(message_of<IoError>([&] {
              file.wait(file.read(0, c));
              return 0;
            }),
            str("scan \"a\": swap_memory: a file in ", folder().string(),
                " has 100 bytes, fewer than were written to it"));
}

TEST(SwapMemoryOfSmallLoopsTest, MemoryIsThatOfTheIterations) {
  const auto f = [](const Tensor& w, bool in_while) {
    const SwapMemory swap = true;
    const auto body = [&](const Tensor& h) { return tanh(h * w); };
    Tensor h = ones({4}, f64);
    for (int i = 0; i < 20; ++i)
      h = in_while ? std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 4; },
                                            [&](const Tensor& i, const Tensor& h) {
                                              return std::tuple{i + 1, body(h)};
                                            },
                                            std::tuple{scalar(0), h}, {.swap_memory = swap}))
                   : fori_loop(0, 4, [&](const Tensor&, const Tensor& h) { return body(h); }, h,
                               {.swap_memory = swap});
    return sum(h);
  };
  for (const bool in_while : {false, true}) {
    reset_peak_memory();
    grad([&](const Tensor& w) { return f(w, in_while); })(ones({4}, f64));
    // Each value of each loop once took a MiB.
    EXPECT_LT(memory().saved.peak, 20 * 4 * 4 * 8 * 8) << in_while;
  }
}

}  // namespace
}  // namespace reel
