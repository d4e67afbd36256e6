// Inputs of chunked loops that are computed chunk by chunk: graphs before and after the pass.
#include "reel/trace/passes/loop_structure/feed_chunks.h"

#include <gtest/gtest.h>

#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/loop_structure/chunk_loops.h"

namespace reel {
namespace {

class FeedChunksTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(4); }
  static Tensor sequence() { return random_normal({6, 2, 5}, f64); }
  static Tensor weights() { return random_normal({5, 5}, f64); }

  /// A loop from which products can be hoisted, so that it runs in chunks.
  template <class Xs>
  static Tensor over(const Xs& xs, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(x, w) + h);
      return std::pair{next, next};
    };
    return scan(Scan{.initial = zeros({2, 5}, f64), .xs = xs, .body = body}).ys;
  }

  /// Expects the ops of f's graph in chunks of two steps before and after the pass, and that a plan
  /// with the pass gives f's results.
  template <class F, class... Args>
  static void expect_ops(const std::string& before, const std::string& after, const F& f,
                         const Args&... args) {
    const auto jitted = jit(f, {.passes = {.chunk_steps = 2}});
    const TreeLeaves made = flatten(jitted(args...)), expected = flatten(f(args...));
    const Ref<Graph> chunked = chunk_loops(jitted.graph(), 2);
    EXPECT_EQ(ops(*chunked), before);
    EXPECT_EQ(ops(*feed_chunks(*chunked)), after);
    ASSERT_EQ(made.size(), expected.size());
    for (std::size_t i = 0; i < made.size(); ++i)
      expect_all_close(made[i].tensor, expected[i].tensor, 1e-12);
  }
};

TEST_F(FeedChunksTest, AChainOfElementWiseOpsGoesIn) {
  const auto f = [](const Tensor& x, const Tensor& y, const Tensor& w) {
    return over(square(x) * y, w);
  };
  expect_ops("square mul full full loop{loop{dot add tanh}}",
             "full full loop{square mul loop{dot add tanh}}", f, sequence(), sequence(), weights());
}

TEST_F(FeedChunksTest, ACotangentThatIsTheSameInAllStepsIsMadeInEachChunk) {
  const auto f = grad([](const Tensor& w, const Tensor& x) {
    const Tensor squares = sum(x * x);  // first: compilers differ in their order of operands
    return sum(over(x, w)) * squares;
  });
  expect_ops(
      "mul sum full full loop{loop{dot add tanh}} full mul spread loop{loop{add tanh_grad dot}}",
      "mul sum full full loop{loop{dot add tanh}} full mul loop{spread loop{add tanh_grad dot}}", f,
      weights(), sequence());
}

TEST_F(FeedChunksTest, ValuesWithOtherReadersStay) {
  const auto read_beside = [](const Tensor& x, const Tensor& w) {
    const Tensor y = square(x);
    return over(y, w) + y;
  };
  expect_ops("square full full loop{loop{dot add tanh}} add",
             "square full full loop{loop{dot add tanh}} add", read_beside, sequence(), weights());
  const auto by_two = [](const Tensor& x, const Tensor& w) {
    const Tensor y = square(x);
    const Tensor by_half = over(y, w * 0.5);
    return over(y, w) + by_half;
  };
  expect_ops("square full mul full full loop{loop{dot add tanh}} loop{loop{dot add tanh}} add",
             "square full mul full full loop{loop{dot add tanh}} loop{loop{dot add tanh}} add",
             by_two, sequence(), weights());
  const auto result = [](const Tensor& x, const Tensor& w) {
    const Tensor y = square(x);
    return std::pair{over(y, w), y};
  };
  expect_ops("square full full loop{loop{dot add tanh}}",
             "square full full loop{loop{dot add tanh}}", result, sequence(), weights());
}

TEST_F(FeedChunksTest, OpsThatMixOrRepeatTimeStepsStay) {
  const auto mixes = [](const Tensor& x, const Tensor& w) { return over(cumsum(x, 0), w); };
  expect_ops("cumsum full full loop{loop{dot add tanh}}",
             "cumsum full full loop{loop{dot add tanh}}", mixes, sequence(), weights());
  // An operand without the steps' dim cannot be a slice; a scalar can be captured.
  const auto shifts = [](const Tensor& x, const Tensor& b, const Tensor& w) {
    return over(x + b, w);
  };
  expect_ops("add full full loop{loop{dot add tanh}}", "add full full loop{loop{dot add tanh}}",
             shifts, sequence(), random_normal({2, 5}, f64), weights());
  expect_ops("add full full loop{loop{dot add tanh}}", "full full loop{add loop{dot add tanh}}",
             shifts, sequence(), scalar(0.3, f64), weights());
}

// Named dims tell how an operand with fewer dims is aligned: a mask of a ragged dim, a bias.
TEST_F(FeedChunksTest, NamedOperandsMayLackDims) {
  const Dim batch("batch", 2), in("in", 5), out("out", 5);
  const auto over_named = [&](const Tensor& xs, const Dim& time, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(x, w, in) + h);
      return std::pair{next, next};
    };
    return scan(Scan{.spatial_dim = time,
                     .initial = zeros({batch, out}, f64),
                     .xs = xs,
                     .body = body})
        .ys;
  };
  const Dim time("time", tensor({6, 3}, {batch}));
  const Tensor x = random_normal({time, batch, in}, f64), w = random_normal({in, out}, f64);
  expect_ops(
      "mul add full dim_lengths cast max full maximum loop{loop{dot add tanh}}",
      "full dim_lengths cast max full maximum loop{mul add loop{dot add tanh}}",
      [&](const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& w) {
        return over_named(x * scale + bias, scale.dims()[0], w);
      },
      x, random_normal({time, batch}, f64), random_normal({in}, f64), w);
  // The cotangents of a sum, with zeros beyond the ends.
  expect_ops(
      "full dim_lengths cast max full maximum loop{loop{dot add tanh}} exp mask transpose full "
      "full "
      "spread where mul loop{loop{add tanh_grad dot}}",
      "full dim_lengths cast max full maximum loop{loop{dot add tanh}} mask transpose full full "
      "loop{spread exp where mul loop{add tanh_grad dot}}",
      grad([&](const Tensor& w, const Tensor& x) {
        return sum(exp(over_named(x, x.dims()[0], w)));
      }),
      w, x);
}

TEST_F(FeedChunksTest, AnOperandThatTheLoopReadsAnywayIsReadOnce) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    const auto body = [&](const std::pair<Tensor, Tensor>& x, const Tensor& h) {
      const Tensor kept = h * x.second;
      const Tensor next = tanh(matmul(x.first, w) + kept);
      return std::pair{next, next};
    };
    return scan(Scan{.initial = zeros({2, 5}, f64), .xs = std::pair{x, exp(x)}, .body = body}).ys;
  };
  expect_ops("full exp full loop{loop{mul dot add tanh}}",
             "full full loop{exp loop{mul dot add tanh}}", f, sequence(), weights());
  const auto jitted = jit(f);
  jitted(sequence(), weights());
  const Ref<Graph> fed = feed_chunks(*chunk_loops(jitted.graph(), 2));
  for (const OpRecord& record : fed->records) {
    if (record.op != &loop_op) continue;
    EXPECT_EQ(get<LoopAttrs>(record.attrs.get()).slices.size(), 1u);
  }
}

TEST_F(FeedChunksTest, LoopsThatAreNotInChunksAreNotFed) {
  const auto f = [](const Tensor& x, const Tensor& w) { return over(square(x), w); };
  const auto jitted = jit(f);
  jitted(sequence(), weights());
  EXPECT_EQ(ops(*feed_chunks(jitted.graph())), ops(jitted.graph()));
}

}  // namespace
}  // namespace reel
