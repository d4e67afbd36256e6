// Sequence: pieces of an array in a file, and gradients piece by piece.
#include "reel/frontend/files/sequence.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "reel/frontend/files/sequence_reads.h"
#include "reel/reel.h"
#include "reel/tests/modes.h"
#include "reel/tests/own_folder.h"
#include "reel/tests/peaks.h"

namespace reel {
namespace {

class SequenceTest : public InOwnFolder {
 protected:
  SequenceTest() : InOwnFolder("sequence.npy") {}
};

TEST_F(SequenceTest, GivesWindowsInOrderFromAnyPosition) {
  const Tensor all = random_normal({10, 3}, f64);
  save_npy(path, all);
  const Dim in("in", 3);
  Sequence sequence(path, {in});
  EXPECT_EQ(sequence.steps(), 10);
  const auto window = [&](std::int64_t first, std::int64_t count) {
    const std::vector<double> values = all.to_vector<double>();
    return std::vector<double>(values.begin() + first * 3, values.begin() + (first + count) * 3);
  };
  const Dim time("time", 4);
  const Tensor first = sequence.next(time);
  EXPECT_EQ(first.dims(), (Dims{time, in}));
  EXPECT_EQ(first.to_vector<double>(), window(0, 4));
  EXPECT_EQ(sequence.next(Dim("time", 4)).to_vector<double>(), window(4, 4));
  EXPECT_EQ(sequence.left(), 2);
  EXPECT_EQ(sequence.next(Dim("time", 2)).to_vector<double>(), window(8, 2));
  EXPECT_EQ(sequence.left(), 0);
  sequence.seek(5);
  EXPECT_EQ(sequence.next(Dim("time", 3)).to_vector<double>(), window(5, 3));
  EXPECT_EQ(sequence.next(Dim("time", 1)).to_vector<double>(), window(8, 1));  // not as read ahead
}

TEST_F(SequenceTest, PlainOnesAndOtherTypes) {
  save_npy(path, tensor({1, 2, 3, 4, 5}));
  Sequence sequence(path);
  EXPECT_EQ(sequence.next(Dim(2)).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(sequence.next(Dim(3)).to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, 4, 5}));
  EXPECT_EQ(sequence.next(Dim(0)).numel(), 0);
}

TEST_F(SequenceTest, ReadsAhead) {
  save_npy(path, range(Dim(100)));
  Sequence sequence(path);
  // Expects the numbers of pieces that were read ahead, and that were read when requested.
  const auto expect_reads = [before = sequence_reads()](std::int64_t ahead, std::int64_t asked) {
    const SequenceReads now = sequence_reads();
    EXPECT_EQ(now.ahead - before.ahead, ahead);
    EXPECT_EQ(now.when_asked - before.when_asked, asked);
  };
  while (sequence.left()) sequence.next(Dim(10));
  expect_reads(9, 1);
  sequence.seek(0);
  sequence.next(Dim(10));
  expect_reads(9, 2);
  sequence.next(Dim(5));  // ten were read ahead
  expect_reads(9, 3);
  EXPECT_EQ(sequence.next(Dim(5)).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{15, 16, 17, 18, 19}));
  expect_reads(10, 3);
  sequence.seek(60);
  sequence.next(Dim(30));
  sequence.next(Dim(10));  // the whole rest, as read ahead
  expect_reads(11, 4);
}

class SequenceGradientsTest : public SequenceTest, public ::testing::WithParamInterface<RunMode> {};

TEST_P(SequenceGradientsTest, WindowsHaveTheGradientsOfATruncatedScan) {
  const Tensor all = random_normal({12, 2}, f64);
  save_npy(path, all);
  const auto loss = [](const Tensor& w, const Tensor& x, const Tensor& h, std::int64_t truncate) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(h * w + x);
      return std::pair{next, next};
    };
    const auto made = scan(Scan{.initial = h, .xs = x, .body = body, .truncate = truncate});
    return std::pair{sum(square(made.ys)), made.state};
  };
  const Tensor w = tensor({0.5, -0.3}, {}, f64), h = zeros({2}, f64);
  Tensor total = zeros({2}, f64), state = h;
  Sequence sequence(path);
  const InMode step(value_and_grad([&](const Tensor& w, const Tensor& x, const Tensor& h) {
                      return loss(w, x, h, 0);
                    }),
                    GetParam());
  while (sequence.left()) {
    const auto [value, gradient] = step(w, sequence.next(Dim(4)), state);
    state = value.second;
    total = total + gradient;
  }
  EXPECT_EQ(step.trace_count(), 1);
  const auto whole =
      InMode(value_and_grad([&](const Tensor& w) { return loss(w, all, h, 4); }), GetParam())(w);
  expect_all_close(total, whole.second, 1e-12);
  expect_all_close(state, whole.first.second, 1e-12);
}
REEL_IN_EVERY_MODE(SequenceGradientsTest);

// At most three pieces are in memory: the present one, the one read ahead, and the next one before
// the first is freed.
TEST_F(SequenceTest, AtMostThreeWindowsAreInMemory) {
  constexpr std::int64_t kSteps = 64, kWindowBytes = 256 * 1024;
  save_npy(path, ones({kSteps, kWindowBytes / 8}, f64));
  const Memory most = peaks_of([&] {
    Sequence sequence(path);
    while (sequence.left()) EXPECT_EQ(sequence.next(Dim(1)).numel(), kWindowBytes / 8);
  });
  EXPECT_GE(most.all.peak, kWindowBytes);
  EXPECT_LE(most.all.peak, 3 * kWindowBytes + (1 << 16));
}

TEST_F(SequenceTest, FailedReadAheadFailsOnlyItsWindow) {
  save_npy(path, range(Dim(40)));
  Sequence sequence(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 15 * 4);
  sequence.next(Dim(10));
  sequence.next(Dim(10));  // the next ten are missing in the file
  sequence.seek(0);
  EXPECT_EQ(sequence.next(Dim(10)).to_vector<std::int32_t>()[9], 9);
  sequence.seek(20);
  EXPECT_THROW(sequence.next(Dim(10)), IoError);
  sequence.seek(15);
  EXPECT_EQ(sequence.next(Dim(10)).to_vector<std::int32_t>()[9], 24);
  sequence.seek(40);
  EXPECT_EQ(sequence.next(Dim(0)).numel(), 0);
}

TEST_F(SequenceTest, AFileThatIsCutWhileItIsReadIsAnError) {
  save_npy(path, ones({100, 1000}, f64));
  Sequence sequence(path);
  sequence.next(Dim(10));
  std::filesystem::resize_file(path, 100'000);
  EXPECT_THROW(
      {
        while (sequence.left()) sequence.next(Dim(10));
      },
      IoError);
}

TEST_F(SequenceTest, RefusesStepsBeyondTheEndAndScalars) {
  save_npy(path, ones({5, 2}));
  Sequence sequence(path);
  EXPECT_EQ(message_of<IndexError>([&] { return sequence.next(Dim(6)); }),
            str("Sequence: ", path, ": 6 steps are asked for, and 5 are left of 5"));
  EXPECT_EQ(message_of<IndexError>([&] {
              sequence.seek(6);
              return 0;
            }),
            str("Sequence: ", path, ": there is no step 6 of 5"));
  save_npy(path, scalar(1.0));
  EXPECT_EQ(message_of<ShapeError>([&] { return Sequence(path).steps(); }),
            str("Sequence: ", path, " holds a scalar, which has no steps"));
  message_of<IoError>([&] { return Sequence(path + ".not").steps(); });
}

}  // namespace
}  // namespace reel
