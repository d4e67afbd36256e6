// swap_memory: what a loop saved lies in a file, and everything is the same.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "reel/tests/modes.h"
#include "reel/tests/own_folder.h"
#include "reel/trace/executors/spilled.h"

namespace reel {
namespace {

/// The window is small: two blocks of a MiB of each value.
Spill small(const std::string& folder = {}) { return {.folder = folder, .bytes_in_memory = 1}; }

struct Problem {
  Tensor w, x;
};
constexpr int kSteps = 1200;  // of 4 KiB of each saved value

auto loss(const SwapMemory& swap, bool reverse = false) {
  return [swap, reverse](const Problem& p) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(h, p.w) + x);
      return std::pair{sum(square(next)), next};
    };
    return sum(scan(Scan{.initial = zeros({16, 64}),
                         .xs = p.x,
                         .body = body,
                         .reverse = reverse,
                         .swap_memory = swap})
                   .ys);
  };
}
Problem problem() {
  manual_seed(9);
  return {random_normal({64, 64}) * 0.1, random_normal({kSteps, 1, 64})};
}

/// Of a file without a name that this program has open in a folder; -1 if there is none.
int file_in(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string to = std::filesystem::read_symlink(entry.path(), error).string();
    if (to.rfind(std::filesystem::canonical(folder).string(), 0) == 0 && to.ends_with("(deleted)"))
      return std::stoi(entry.path().filename().string());
  }
  return -1;
}

class SwapMemoryTest : public InEveryMode {};

TEST_P(SwapMemoryTest, GradientsAreTheSame) {
  const Problem p = problem();
  for (const bool reverse : {false, true}) {
    const auto expected = run(value_and_grad(loss(false, reverse)))(p);
    for (const SwapMemory& swap : {SwapMemory(true), SwapMemory(small())}) {
      const auto actual = run(value_and_grad(loss(swap, reverse)))(p);
      expect_same_bits(actual.first, expected.first);
      if (is_exact()) {
        expect_same_bits(actual.second.w, expected.second.w);
        expect_same_bits(actual.second.x, expected.second.x);
      } else {
        expect_all_close(actual.second.w, expected.second.w, 1e-3);
        expect_all_close(actual.second.x, expected.second.x, 1e-5);
      }
    }
  }
}

TEST_P(SwapMemoryTest, OfLoopsWhoseLengthNobodyKnows) {
  const auto f = [](const SwapMemory& swap) {
    return [swap](const Tensor& w) {
      const auto cond = [](const std::pair<Tensor, Tensor>& s) { return s.first < kSteps; };
      const auto body = [&](const std::pair<Tensor, Tensor>& s) {
        return std::pair{s.first + 1, tanh(matmul(s.second, w) + 0.1)};
      };
      return sum(
          while_loop(cond, body, std::pair{scalar(0, i32), zeros({16, 64})}, {.swap_memory = swap})
              .second);
    };
  };
  const Tensor w = problem().w;
  const auto expected = run(value_and_grad(f(false)))(w),
             actual = run(value_and_grad(f(small())))(w);
  expect_same_bits(actual.first, expected.first);
  expect_all_close(actual.second, expected.second, is_exact() ? 0 : 1e-4);
}

TEST_P(SwapMemoryTest, CheckpointsLieInAFileToo) {
  const Problem p = problem();
  const auto f = [](const Checkpoint& checkpoint, const SwapMemory& swap) {
    return [checkpoint, swap](const Problem& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(matmul(h, p.w) + x)};
      };
      return sum(square(scan(Scan{.initial = zeros({16, 64}),
                                  .xs = p.x,
                                  .body = body,
                                  .checkpoint = checkpoint,
                                  .swap_memory = swap})
                            .state));
    };
  };
  for (const Checkpoint& checkpoint : {Checkpoint::every(1), Checkpoint::budget(9 << 20)}) {
    const auto expected = run(value_and_grad(f(checkpoint, false)))(p),
               actual = run(value_and_grad(f(checkpoint, small())))(p);
    expect_same_bits(actual.first, expected.first);
    expect_same_bits(actual.second.w, expected.second.w);
    expect_same_bits(actual.second.x, expected.second.x);
  }
}

TEST_P(SwapMemoryTest, OfLoopsInsideOfLoopsWhateverTheOuterOneKeeps) {
  const Problem p = problem();
  const auto f = [](const Checkpoint& checkpoint, const SwapMemory& outer,
                    const SwapMemory& inner) {
    return [=](const Problem& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const auto step = [&](const Tensor& k, const Tensor& h) {
          return std::pair{None{}, tanh(matmul(h, p.w) + x * k)};
        };
        const Tensor next =
            scan(Scan{.initial = h, .xs = ones({3}), .body = step, .swap_memory = inner}).state;
        return std::pair{sum(square(next)), next};
      };
      return sum(scan(Scan{.initial = zeros({16, 64}),
                           .xs = slice(p.x, 0, 0, 5),
                           .body = body,
                           .checkpoint = checkpoint,
                           .swap_memory = outer})
                     .ys);
    };
  };
  SmallSpillBlocks blocks;
  const auto expected = run(value_and_grad(f({}, false, false)))(p);
  EXPECT_EQ(blocks.written(), 0);
  for (const SwapMemory& outer : {SwapMemory(false), SwapMemory(small())})
    for (const Checkpoint& checkpoint : {Checkpoint(), Checkpoint::every(2)}) {
      const auto actual = run(value_and_grad(f(checkpoint, outer, small())))(p);
      expect_same_bits(actual.first, expected.first);
      expect_all_close(actual.second.w, expected.second.w, is_exact() ? 0 : 1e-3);
      if (outer.spill()) {
        EXPECT_GT(blocks.written(), 0);
      }
    }
}

// In chunks of the plan's own size too, of which there are several.
TEST_P(SwapMemoryTest, WhatARuleSpillsIsWritten) {
  const auto f = [](const SavingRule& rule) {
    return [policy = rule ? Checkpoint().where(rule) : Checkpoint()](const Problem& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(matmul(h, p.w) + x)};
      };
      return sum(
          scan(Scan{.initial = zeros({16, 64}), .xs = p.x, .body = body, .checkpoint = policy})
              .state);
    };
  };
  const Problem p = problem();
  SmallSpillBlocks blocks;
  const auto expected = run(value_and_grad(f({})))(p);
  run(value_and_grad(f([](const StepValue&) { return Saving::keep; })))(p);
  EXPECT_EQ(blocks.written(), 0);
  const auto actual = run(value_and_grad(f(
      [](const StepValue& v) { return v.op == "tanh" ? Saving::spill : Saving::by_default; })))(p);
  EXPECT_GT(blocks.written(), 0);
  expect_same_bits(actual.first, expected.first);
  expect_all_close(actual.second.w, expected.second.w, is_exact() ? 0 : 1e-3);
}

// A trace is recorded, and so is what a loop under a policy runs: the outermost loop alone writes
// there. Without one, eager mode goes step by step, and each run of a loop inside writes.
TEST_P(SwapMemoryTest, OfLoopsInsideOfWhatDoesNotSwap) {
  const Problem p = problem();
  const auto inner = [](const Problem& p, const Tensor& h, const SwapMemory& swap) {
    return fori_loop(0, 8, [&](const Tensor&, const Tensor& h) { return tanh(matmul(h, p.w)); }, h,
                     {.swap_memory = swap});
  };
  const auto in_loop = [&](const Checkpoint& checkpoint, const SwapMemory& swap) {
    return [=](const Problem& p) {
      return sum(fori_loop(0, 3, [&](const Tensor&, const Tensor& h) { return inner(p, h, swap); },
                           ones({16, 64}), {.checkpoint = checkpoint}));
    };
  };
  const auto in_branch = [&](const SwapMemory& swap) {
    return [=](const Problem& p) {
      return sum(cond(
          sum(p.w) < 1e9f,
          [&] {
            return inner(p, ones({16, 64}), swap);
          },
          [] {
            return ones({16, 64});
          }));
    };
  };
  SmallSpillBlocks blocks;
  const auto holds = [&](const auto& f, const auto& without, bool writes) {
    const auto expected = run(value_and_grad(without))(p);
    EXPECT_EQ(blocks.written(), 0);
    const auto actual = run(value_and_grad(f))(p);
    EXPECT_EQ(blocks.written() > 0, writes);
    expect_same_bits(actual.first, expected.first);
    expect_all_close(actual.second.w, expected.second.w, is_exact() ? 0 : 1e-3);
  };
  holds(in_loop({}, small()), in_loop({}, false), is_eager());
  holds(in_branch(small()), in_branch(false), is_eager());
  holds(in_loop(Checkpoint::every(2), small()), in_loop(Checkpoint::every(2), false), false);
}

// What the loop inside saved of each of its steps is a list of as many as it ran.
TEST_P(SwapMemoryTest, OfListsThatLoopsInsideSaved) {
  constexpr int kOuter = 60, kInner = 10;
  const auto f = [](const SwapMemory& swap) {
    return [swap](const Tensor& w) {
      const auto outer = [&](const Tensor& k, const Tensor& h) {
        const auto step = [&](const Tensor& i, const Tensor& h) {
          return std::tuple{i + 1, tanh(matmul(h, w) + 0.1)};
        };
        return std::get<1>(while_loop([&](const Tensor& i, const Tensor&) { return i < k % 3 + 8; },
                                      step, std::tuple{scalar(0), h}));
      };
      return sum(fori_loop(0, kOuter, outer, ones({16, 64}), {.swap_memory = swap}));
    };
  };
  SmallSpillBlocks blocks;
  const Tensor w = problem().w;
  const auto expected = run(value_and_grad(f(false)))(w);
  const auto in_mode = run(value_and_grad(f(small())));
  EXPECT_EQ(blocks.written(), 0);
  in_mode(w);
  EXPECT_GT(blocks.written(), kOuter * (kInner - 2) / 2);
  reset_peak_memory();
  const auto actual = in_mode(w);
  expect_same_bits(actual.first, expected.first);
  expect_all_close(actual.second, expected.second, is_exact() ? 0 : 1e-4);
  // A value of all steps takes 2.4 MB.
  EXPECT_LT(memory().saved.peak, 600'000);
}

TEST_P(SwapMemoryTest, OfStepsOfDifferentSizes) {
  const auto f = [](const SwapMemory& swap) {
    return [swap](const Tensor& x) {
      const auto body = [](const Tensor& x, const Tensor& h) {
        const Dim rows("rows", cast(mod(x * 7.0, 3.0), i32) + 1);
        const Tensor wide = sin(h * ones({rows}, f64) * x);
        return std::pair{None{}, sum(exp(wide * wide))};
      };
      return scan(Scan{.initial = scalar(0.3, f64), .xs = x, .body = body, .swap_memory = swap})
          .state;
    };
  };
  SmallSpillBlocks blocks;
  const Tensor x = tensor({0.1, 0.5, 0.9, 0.3, 0.7}, {}, f64);
  const auto expected = run(value_and_grad(f(false)))(x),
             actual = run(value_and_grad(f(small())))(x);
  EXPECT_GT(blocks.written(), 0);
  expect_same_bits(actual.first, expected.first);
  expect_all_close(actual.second, expected.second, is_exact() ? 0 : 1e-9);
}

// Products over all steps read what the loop reads step by step.
TEST_P(SwapMemoryTest, ProductsOfHessiansWithVectorsAndTangents) {
  const Tensor x = ones({11, 2, 4}, f64), w = random_normal({4, 4}, f64) * 0.2;
  const auto f = [&](const Checkpoint& checkpoint, const SwapMemory& swap) {
    return [&, checkpoint, swap](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(x + matmul(h, w))};
      };
      return sum(scan(Scan{.initial = ones({2, 4}, f64),
                           .xs = x,
                           .body = body,
                           .checkpoint = checkpoint,
                           .swap_memory = swap})
                     .state);
    };
  };
  SmallSpillBlocks blocks;
  const auto product = [](auto f) { return [f](const Tensor& w) { return hvp(f, w, w); }; };
  const auto tangent = [](auto f) { return [f](const Tensor& w) { return jvp(f, w, w).second; }; };
  const Tensor expected = run(product(f({}, false)))(w),
               expected_tangent = run(tangent(f({}, false)))(w);
  for (const Checkpoint& checkpoint :
       {Checkpoint(), Checkpoint::every(3), Checkpoint::budget(400)}) {
    expect_all_close(run(product(f(checkpoint, small())))(w), expected, 1e-11);
    if (GetParam() != RunMode::plan) {  // all steps in one chunk are a block
      EXPECT_GT(blocks.written(), 0);
    }
    expect_all_close(run(tangent(f(checkpoint, small())))(w), expected_tangent, 1e-11);
  }
}

TEST_P(SwapMemoryTest, AFolderThatTakesNoFileAndADiskThatIsFullAreErrors) {
  const Problem p = problem();
  const auto take = [&](const Spill& spill) { return run(value_and_grad(loss(spill)))(p); };
  EXPECT_EQ(message_of<IoError>([&] { return take(small("/no/such/folder")); }),
            "swap_memory: cannot make a file in /no/such/folder: No such file or directory");
  EXPECT_EQ(message_of<IoError>([&] { return take(small("/dev/null")); }),
            "swap_memory: cannot make a file in /dev/null: Not a directory");
  const std::int64_t saved = memory().saved.current;
  // No room behind the second MiB of any file.
  const auto again = run(value_and_grad(loss(small("/tmp"))));
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit most{};
  getrlimit(RLIMIT_FSIZE, &most);
  const rlimit little{2 << 20, most.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  const std::string message = message_of<IoError>([&] { return again(p); });
  setrlimit(RLIMIT_FSIZE, &most);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(message, "swap_memory: cannot write to a file in /tmp: File too large");
  // Nothing is left behind.
  EXPECT_EQ(file_in("/tmp"), -1);
  EXPECT_EQ(memory().saved.current, saved);
  EXPECT_EQ(memory().checkpoints.current, 0);
  // The library goes on, and so does the function.
  const auto expected = run(value_and_grad(loss(false)))(p);
  for (const auto& actual : {take(small()), again(p)}) {
    expect_same_bits(actual.first, expected.first);
    expect_all_close(actual.second.w, expected.second.w, is_exact() ? 0 : 1e-3);
  }
}

TEST_P(SwapMemoryTest, SecondGradientsAreTheSame) {
  const Dim batch("batch", 3), time("time", tensor({2, 7, 4}, {batch}));
  const Tensor x = random_normal({time, batch}, f64), w = scalar(0.6, f64);
  const SavingRule to_file = [](const StepValue& v) {
    return v.op == "sin" || v.op == "tanh" ? Saving::spill : Saving::by_default;
  };
  struct Policy {
    Checkpoint checkpoint;
    SwapMemory swap;
  };
  const Policy policies[] = {{{}, small()},
                             {Checkpoint::every(2), small()},
                             {Checkpoint::budget(100), small()},
                             {Checkpoint().where(to_file), false},
                             {Checkpoint::every(3).where(to_file), small()}};
  // Ragged, and until a condition ends it.
  const auto ragged = [&](const Policy& policy) {
    return [&, policy](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = tanh(sin(h * w) + x);
        return std::pair{next, next};
      };
      return sum(square(scan(Scan{.spatial_dim = time,
                                  .initial = zeros({batch}, f64),
                                  .xs = x,
                                  .body = body,
                                  .checkpoint = policy.checkpoint,
                                  .swap_memory = policy.swap})
                            .ys));
    };
  };
  const auto of_unknown_length = [](const Policy& policy) {
    return [policy](const Tensor& w) {
      return while_loop([](const Tensor& s) { return s < 20.0; },
                        [&](const Tensor& s) { return s + sin(s * w) * 0.5 + tanh(w) + 1.0; },
                        w * 2.0, {.checkpoint = policy.checkpoint, .swap_memory = policy.swap});
    };
  };
  const auto second = [](auto f) {
    return grad([f](const Tensor& w) { return square(grad(f)(w)); });
  };
  const Tensor expected = run(second(ragged({})))(w),
               expected_unknown = run(second(of_unknown_length({})))(w);
  SmallSpillBlocks blocks;
  for (const Policy& policy : policies) {
    // Of few checkpoints a window has all.
    const bool has_few = policy.checkpoint.bytes() || policy.checkpoint.steps() > 2;
    const std::int64_t least = has_few ? 0 : 1;
    expect_all_close(run(second(ragged(policy)))(w), expected, 1e-11);
    if (GetParam() != RunMode::plan) {  // all steps in one chunk are a block
      EXPECT_GE(blocks.written(), least);
    }
    expect_all_close(run(second(of_unknown_length(policy)))(w), expected_unknown, 1e-10);
    EXPECT_GE(blocks.written(), least);
  }
}

REEL_IN_EVERY_MODE(SwapMemoryTest);

class SpillFileTest : public InOwnFolder {
 protected:
  SpillFileTest() : InOwnFolder("file") {}
  std::filesystem::path folder() const {
    return std::filesystem::absolute(std::filesystem::path(path).parent_path());
  }
};

TEST_F(SpillFileTest, GivesBackWhatWasWrittenAndLeavesNothingBehind) {
  SpillFile file(folder().string());
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

// The user of this thread for files: root may write anywhere.
class AsNobody {
 public:
  AsNobody() : before_(setfsuid(65534)) {}
  ~AsNobody() { setfsuid(static_cast<uid_t>(before_)); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  int before_;
};

TEST_F(SpillFileTest, AFolderThatOneMayNotWriteToIsAnErrorAndTheNextRunIsNot) {
  const Problem p = problem();
  const auto f = vjp(loss(false), p);
  namespace fs = std::filesystem;
  fs::permissions(folder(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                fs::perms::others_exec);
  const std::string message = [&] {
    const AsNobody nobody;
    return message_of<IoError>([&] { return vjp(loss(small(folder().string())), p).first; });
  }();
  fs::permissions(folder(), fs::perms::owner_all);
  EXPECT_EQ(message,
            str("swap_memory: cannot make a file in ", folder().string(), ": Permission denied"));
  expect_same_bits(vjp(loss(small(folder().string())), p).second(scalar(1.0)).w,
                   f.second(scalar(1.0)).w);
}

// What the first run wrote is gone when the gradient asks for it.
TEST_F(SpillFileTest, AShortReadOnTheWayBackIsAnErrorAndTheNextRunIsNot) {
  const Problem p = problem();
  const auto expected = vjp(loss(false), p).second(scalar(1.0));
  {
    const auto [value, pullback] = vjp(loss(small(folder().string())), p);
    // What is written behind the cut would make the file longer again.
    while (spill_traffic().pending) std::this_thread::yield();
    ASSERT_EQ(ftruncate(file_in(folder()), 100), 0);
    const std::string message = message_of<IoError>([&] { return pullback(scalar(1.0)); });
    EXPECT_EQ(message.find(str("swap_memory: a file in ", folder().string(), " has 100 bytes")), 0u)
        << message;
  }
  EXPECT_EQ(file_in(folder()), -1);
  expect_same_bits(vjp(loss(small(folder().string())), p).second(scalar(1.0)).w, expected.w);
}

TEST_F(SpillFileTest, BlocksAreOfAMiBAndReadAheadOfTheLoop) {
  const Problem p = problem();
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
  SpillFile file(folder().string());
  const Tensor a = random_normal({100});
  file.wait(file.write(file.take(400), a));
  ASSERT_EQ(ftruncate(file_in(folder()), 100), 0);
  const Tensor c(allocate_block(a.type()));
  EXPECT_EQ(message_of<IoError>([&] {
              file.wait(file.read(0, c));
              return 0;
            }),
            str("swap_memory: a file in ", folder().string(),
                " has 100 bytes, fewer than were written to it"));
}

TEST(SwapMemoryOfSmallLoopsTest, TakesWhatTheirStepsTake) {
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
    // A MiB for each value of each loop before.
    EXPECT_LT(memory().saved.peak, 20 * 4 * 4 * 8 * 8) << in_while;
  }
}

}  // namespace
}  // namespace reel
