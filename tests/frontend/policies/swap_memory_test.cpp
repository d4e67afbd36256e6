// swap_memory: residuals lie in a file, and all results stay the same.
#include <filesystem>
#include <fstream>

#include "reel/tests/frontend/policies/swapping.h"
#include "reel/tests/modes.h"
#include "reel/tests/short_files.h"
#include "reel/tests/small_disk.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

class SwapMemoryTest : public InEveryMode {};

TEST_P(SwapMemoryTest, GradientsAreTheSame) {
  const SwappingProblem p = problem();
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

TEST_P(SwapMemoryTest, LoopsOfUnknownLengthHaveTheSameBits) {
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
  expect_same_bits(actual.second, expected.second);
}

TEST_P(SwapMemoryTest, CheckpointsLieInAFileToo) {
  const SwappingProblem p = problem();
  const auto f = [](const Checkpoint& checkpoint, const SwapMemory& swap) {
    return [checkpoint, swap](const SwappingProblem& p) {
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
  for (const Checkpoint& checkpoint : {Checkpoint::every(1), Checkpoint::budget(16 << 20)}) {
    const auto expected = run(value_and_grad(f(checkpoint, false)))(p),
               actual = run(value_and_grad(f(checkpoint, small())))(p);
    expect_same_bits(actual.first, expected.first);
    expect_same_bits(actual.second.w, expected.second.w);
    expect_same_bits(actual.second.x, expected.second.x);
  }
}

TEST_P(SwapMemoryTest, NestedLoopsHaveTheSameBitsUnderAnyOuterPolicy) {
  const SwappingProblem p = problem();
  const auto f = [](const Checkpoint& checkpoint, const SwapMemory& outer,
                    const SwapMemory& inner) {
    return [=](const SwappingProblem& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const auto step = [&](const Tensor& k, const Tensor& h) {
          return std::pair{None{}, tanh(matmul(h, p.w) + x * k)};
        };
        const Tensor next =
            scan(Scan{.initial = h, .xs = ones({3}), .body = step, .swap_memory = inner}).state;
        return std::pair{sum(square(next)), next};
      };
      return sum(scan(Scan{.initial = zeros({16, 64}),
                           .xs = p.x,
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
      expect_same_bits(actual.second.w, expected.second.w);
      if (outer.spill()) {
        EXPECT_GT(blocks.written(), 0);
      }
    }
}

// Also in several chunks of the plan's own size.
TEST_P(SwapMemoryTest, ResidualsThatARuleSpillsAreWritten) {
  const auto f = [](const SavingRule& rule) {
    return [policy = rule ? Checkpoint().where(rule) : Checkpoint()](const SwappingProblem& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(matmul(h, p.w) + x)};
      };
      return sum(
          scan(Scan{.initial = zeros({16, 64}), .xs = p.x, .body = body, .checkpoint = policy})
              .state);
    };
  };
  const SwappingProblem p = problem();
  SmallSpillBlocks blocks;
  const auto expected = run(value_and_grad(f({})))(p);
  run(value_and_grad(f([](const StepValue&) { return Saving::keep; })))(p);
  EXPECT_EQ(blocks.written(), 0);
  const auto actual = run(value_and_grad(f(
      [](const StepValue& v) { return v.op == "tanh" ? Saving::spill : Saving::by_default; })))(p);
  EXPECT_GT(blocks.written(), 0);
  expect_same_bits(actual.first, expected.first);
  expect_same_bits(actual.second.w, expected.second.w);
}

// In a trace, and in the recorded loop of a policy, only the outermost loop writes to a file. In
// eager mode without a policy, every run of an inner loop writes.
TEST_P(SwapMemoryTest, InnerLoopsSpillOnlyInEagerModeWithoutAPolicy) {
  const SwappingProblem p = problem();
  const auto inner = [](const SwappingProblem& p, const Tensor& h, const SwapMemory& swap) {
    return fori_loop(0, 8, [&](const Tensor&, const Tensor& h) { return tanh(matmul(h, p.w)); }, h,
                     {.swap_memory = swap});
  };
  const auto in_loop = [&](const Checkpoint& checkpoint, const SwapMemory& swap) {
    return [=](const SwappingProblem& p) {
      return sum(fori_loop(0, 3, [&](const Tensor&, const Tensor& h) { return inner(p, h, swap); },
                           ones({16, 64}), {.checkpoint = checkpoint}));
    };
  };
  const auto in_branch = [&](const SwapMemory& swap) {
    return [=](const SwappingProblem& p) {
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
    expect_same_bits(actual.second.w, expected.second.w);
  };
  holds(in_loop({}, small()), in_loop({}, false), is_eager());
  holds(in_branch(small()), in_branch(false), is_eager());
  holds(in_loop(Checkpoint::every(2), small()), in_loop(Checkpoint::every(2), false), false);
}

// The residuals of the inner loop are lists with an element for each inner iteration.
TEST_P(SwapMemoryTest, ResidualListsOfInnerLoopsAreSpilled) {
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
  expect_same_bits(actual.second, expected.second);
  // A value of all iterations takes 2.4 MB.
  EXPECT_LT(memory().saved.peak, 600'000);
}

TEST_P(SwapMemoryTest, IterationsOfDifferentSizesHaveTheSameBits) {
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
  if (GetParam() != RunMode::plan) {  // there, one block holds the chunk of all steps
    EXPECT_GT(blocks.written(), 0);
  }
  expect_same_bits(actual.first, expected.first);
  expect_same_bits(actual.second, expected.second);
}

// Products batched across iterations read the values that the loop reads one by one.
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
    if (GetParam() != RunMode::plan) {  // there, one block holds the chunk of all steps
      EXPECT_GT(blocks.written(), 0);
    }
    expect_all_close(run(tangent(f(checkpoint, small())))(w), expected_tangent, 1e-11);
  }
}

TEST_P(SwapMemoryTest, AFolderThatTakesNoFileAndADiskThatIsFullAreErrors) {
  const SwappingProblem p = problem();
  const auto take = [&](const Spill& spill) { return run(value_and_grad(loss(spill)))(p); };
  EXPECT_EQ(message_of<IoError>([&] { return take(small("/no/such/folder")); }),
            "scan \"scan\": swap_memory: cannot make a file in /no/such/folder: No such file or "
            "directory");
  EXPECT_EQ(message_of<IoError>([&] { return take(small("/dev/null")); }),
            "scan \"scan\": swap_memory: cannot make a file in /dev/null: Not a directory");
  const std::int64_t saved = memory().saved.current;
  // No file can grow beyond its second MiB.
  const auto again = run(value_and_grad(loss(small("/tmp"))));
  const std::string message = message_of<IoError>([&] {
    const ShortFiles short_files(2 << 20);
    return again(p);
  });
  EXPECT_EQ(message, "scan \"scan\": swap_memory: cannot write to a file in /tmp: File too large");
  // The failed call leaves no file and no memory behind.
  EXPECT_EQ(file_in("/tmp"), -1);
  EXPECT_EQ(memory().saved.current, saved);
  EXPECT_EQ(memory().checkpoints.current, 0);
  // The library and the function work again.
  const auto expected = run(value_and_grad(loss(false)))(p);
  for (const auto& actual : {take(small()), again(p)}) {
    expect_same_bits(actual.first, expected.first);
    expect_same_bits(actual.second.w, expected.second.w);
  }
}

TEST_P(SwapMemoryTest, ADiskThatIsReallyFullIsAnErrorUntilThereIsRoom) {
  const SmallDisk disk(32 << 20);
  if (!disk.is_there()) GTEST_SKIP() << "no right to mount a small file system";
  const SwappingProblem p = problem();
  const auto f = run(value_and_grad(loss(small(disk.folder()))));
  const std::int64_t saved = memory().saved.current;
  const std::string other = disk.folder() + "/other";
  std::ofstream(other) << std::string(31 << 20, 'x') << std::flush;
  EXPECT_EQ(message_of<IoError>([&] { return f(p); }),
            "scan \"scan\": swap_memory: cannot write to a file in " + disk.folder() +
                ": No space left on device");
  EXPECT_EQ(memory().saved.current, saved);
  std::filesystem::remove(other);
  EXPECT_TRUE(disk.is_empty());
  // Now there is room.
  const auto expected = run(value_and_grad(loss(false)))(p), actual = f(p);
  expect_same_bits(actual.first, expected.first);
  expect_same_bits(actual.second.w, expected.second.w);
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
  // A ragged scan, and a loop that a condition ends.
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
                        [&](const Tensor& s) { return s + sin(s * w) * 0.5 + tanh(s * w) + 1.0; },
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
    // If there are few checkpoints, the window holds all.
    const bool has_few = policy.checkpoint.bytes() || policy.checkpoint.steps() > 2;
    const std::int64_t least = has_few ? 0 : 1;
    expect_all_close(run(second(ragged(policy)))(w), expected, 1e-11);
    if (GetParam() != RunMode::plan) {  // there, one block holds the chunk of all steps
      EXPECT_GE(blocks.written(), least);
    }
    expect_all_close(run(second(of_unknown_length(policy)))(w), expected_unknown, 1e-10);
    EXPECT_GE(blocks.written(), least);
  }
}

REEL_IN_EVERY_MODE(SwapMemoryTest);

}  // namespace
}  // namespace reel
