// Chunked loops that run at the same time: graphs before and after the pass, and runs on threads.
#include "reel/trace/passes/loop_structure/group_pipelined_loops.h"

#include <gtest/gtest.h>

#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/loop_structure/chunk_loops.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

using Layers = std::vector<Tensor>;  // weights, {5, 5} each

/// A layer with iterations of tanh(x·w + h).
auto layer(const Tensor& x, const Tensor& w, const Tensor& initial, bool reverse = false) {
  const auto body = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = tanh(matmul(x, w) + h);
    return std::pair{next, next};
  };
  return scan(Scan{.initial = initial, .xs = x, .body = body, .reverse = reverse, .name = "layer"});
}
Tensor start() { return zeros({2, 5}, f64); }

Tensor stacked_layers(const Tensor& x, const Layers& weights) {
  Tensor y = x;
  for (const Tensor& w : weights) y = layer(y, w, start()).ys;
  return sum(square(y));
}

class AdjoinLoopsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(8); }
  static Tensor sequence() { return random_normal({12, 2, 5}, f64); }
  static Layers weights(int count) {
    Layers result;
    for (int i = 0; i < count; ++i) result.push_back(random_normal({5, 5}, f64) * 0.4);
    return result;
  }

  /// Returns the names of the ops in the plan's graph of f.
  template <class F, class... Args>
  static std::string planned_ops(const F& f, const Args&... args) {
    const auto jitted = jit(f);
    jitted(args...);
    std::string result;
    const Passes passes{.pack_weights = false, .fuse_pointwise = false, .chunk_steps = 4};
    const Ref<Graph> graph = optimise_for_plan(jitted.graph(), passes).graph;
    for (const OpRecord& record : graph->records)
      if (record.op->name != std::string_view("full"))
        result += (result.empty() ? "" : " ") + std::string(record.op->name);
    return result;
  }
  template <class F, class... Args>
  static bool are_beside(const F& f, const Args&... args) {
    const auto jitted = jit(f, {.passes = {.chunk_steps = 4}});
    jitted(args...);
    return jitted.explain().find("beside loop 1") != std::string::npos;
  }
};

TEST_F(AdjoinLoopsTest, OpsBetweenTwoLoopsMoveBeforeOrBehind) {
  const auto f = [](const Tensor& x, const Layers& w) {
    const auto first = layer(x, w[0], start());
    const Tensor total = sum(first.ys);     // waits for the first
    const Tensor begin = start() + max(x);  // does not wait for it
    const auto second = layer(first.ys, w[1], begin);
    return total + sum(second.ys);
  };
  // Applies only this pass, to chunked loops.
  const auto jitted = jit(f);
  jitted(sequence(), weights(2));
  const Ref<Graph> before = chunk_loops(jitted.graph(), 4), after = group_pipelined_loops(*before);
  EXPECT_EQ(ops(*before),
            "full full loop{loop{dot add tanh}} sum max add loop{loop{dot add tanh}} sum add");
  EXPECT_EQ(ops(*after),
            "full full max add loop{loop{dot add tanh}} loop{loop{dot add tanh}} sum sum add");
  EXPECT_EQ(planned_ops(f, sequence(), weights(2)), "max add loop loop sum sum add");
  EXPECT_TRUE(are_beside(f, sequence(), weights(2)));
}

TEST_F(AdjoinLoopsTest, ALoopThatNeedsMoreThanSlicesWaits) {
  const auto by_state = [](const Tensor& x, const Layers& w) {
    const auto first = layer(x, w[0], start());
    return sum(layer(first.ys, w[1], first.state).ys);
  };
  const auto by_sum = [](const Tensor& x, const Layers& w) {
    const auto first = layer(x, w[0], start());
    return sum(layer(first.ys, w[1] * sum(first.ys), start()).ys);
  };
  const auto backwards = [](const Tensor& x, const Layers& w) {
    return sum(layer(layer(x, w[0], start()).ys, w[1], start(), true).ys);
  };
  const auto shifted = [](const Tensor& x, const Layers& w) {
    return sum(layer(cumsum(layer(x, w[0], start()).ys, 0), w[1], start()).ys);
  };
  // The square is element-wise and is computed inside the second loop.
  const auto squared = [](const Tensor& x, const Layers& w) {
    return sum(layer(square(layer(x, w[0], start()).ys), w[1], start()).ys);
  };
  EXPECT_FALSE(are_beside(by_state, sequence(), weights(2)));
  EXPECT_FALSE(are_beside(by_sum, sequence(), weights(2)));
  EXPECT_FALSE(are_beside(backwards, sequence(), weights(2)));
  EXPECT_FALSE(are_beside(shifted, sequence(), weights(2)));
  EXPECT_TRUE(are_beside(squared, sequence(), weights(2)));
}

TEST_F(AdjoinLoopsTest, TheSameBitsOnAnyNumberOfThreads) {
  const Tensor x = sequence();
  const Layers w = weights(3);
  const auto step = value_and_grad([&](const Layers& w) { return stacked_layers(x, w); });
  const auto [expected, expected_gradient] = step(w);
  for (const int steps : {1, 2, 4, 6}) {
    std::optional<Layers> first;
    for (const int count : {1, 2, 4}) {
      SCOPED_TRACE(str("chunks of ", steps, ", threads: ", count));
      const Threads threads(count);
      const auto jitted = jit(step, {.executor = Executor::plan, .passes = {.chunk_steps = steps}});
      for (int again = 0; again < 3; ++again) {
        const auto [value, gradient] = jitted(w);
        expect_all_close(value, expected, 1e-12);
        for (std::size_t i = 0; i < w.size(); ++i) {
          expect_all_close(gradient[i], expected_gradient[i], 1e-12);
          if (first) expect_same_bits(gradient[i], (*first)[i]);
        }
        if (!first) first = gradient;
      }
    }
  }
}

TEST_F(AdjoinLoopsTest, LayersDrawTheSameOnAnyNumberOfThreads) {
  const auto noisy_layer = [](const Tensor& x) {
    const auto body = [](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(x * random_uniform({2, 5}, 0.5, 1.5, f64) + h);
      return std::pair{next, next};
    };
    return scan(Scan{.initial = start(), .xs = x, .body = body}).ys;
  };
  const auto f = [&](const Tensor& x) { return noisy_layer(noisy_layer(x)); };
  const Tensor x = sequence();
  manual_seed(12);
  const Tensor expected = f(x);
  for (const int count : {1, 2}) {
    const Threads threads(count);
    const auto jitted = jit(f, {.executor = Executor::plan, .passes = {.chunk_steps = 4}});
    for (int again = 0; again < 2; ++again) {
      manual_seed(12);
      expect_all_close(jitted(x), expected, 1e-12);
    }
  }
}

TEST_F(AdjoinLoopsTest, OpsStayBehindTheMakerOfTheirDim) {
  const auto f = [](const Tensor& x, const Layers& w) {
    const auto first = layer(x, w[0], start());
    const Dim n("n", cast(sum(abs(first.ys)) * 0.0 + 3.0, i32));
    const Tensor three = sum(ones({n}, f64));
    return three + sum(layer(first.ys, w[1], start()).ys);
  };
  const Tensor x = sequence();
  const Layers w = weights(2);
  const auto jitted = jit(f, {.executor = Executor::plan, .passes = {.chunk_steps = 4}});
  expect_all_close(jitted(x, w), f(x, w), 1e-12);
}

TEST_F(AdjoinLoopsTest, ALoopThatMentionsADimStaysBehindItsMaker) {
  const auto f = [](const Tensor& x, const Layers& w) {
    const auto first = layer(x, w[0], start());
    const Dim n("n", cast(sum(abs(first.ys)) * 0.0 + 3.0, i32));
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(x, w[1]) + h * sum(expand(sum(h), {n})));
      return std::pair{next, next};
    };
    return sum(scan(Scan{.initial = start(), .xs = first.ys, .body = body}).ys);
  };
  const Tensor x = sequence();
  const Layers w = weights(2);
  const auto jitted = jit(f, {.executor = Executor::plan, .passes = {.chunk_steps = 4}});
  expect_all_close(jitted(x, w), f(x, w), 1e-12);
}

TEST_F(AdjoinLoopsTest, AnErrorInOneStopsTheOthers) {
  const auto picks = [](const Tensor& x, const Tensor& indices) {
    const auto body = [](const std::pair<Tensor, Tensor>& at, const Tensor& h) {
      const Tensor next = tanh(matmul(at.first, ones({5, 5}, f64)) + gather(h, at.second, 0));
      return std::pair{next, next};
    };
    const Tensor h = layer(x, full({5, 5}, 0.1, f64), start()).ys;
    return scan(Scan{.initial = zeros({2, 5}, f64),
                     .xs = std::pair{h, indices},
                     .body = body,
                     .name = "picks"})
        .ys;
  };
  const Threads two(2);
  const auto jitted = jit(picks, {.executor = Executor::plan, .passes = {.chunk_steps = 2}});
  std::vector<int> indices(24, 1);
  const Tensor x = sequence();
  const Tensor good = jitted(x, tensor(indices, {Dim(12), Dim(2)}));
  expect_all_close(good, picks(x, tensor(indices, {Dim(12), Dim(2)})), 1e-12);
  indices[11] = 7;
  EXPECT_TRUE(message_of<IndexError>([&] {
                return jitted(x, tensor(indices, {Dim(12), Dim(2)}));
              }).ends_with("in iteration 5 of scan \"picks\""));
  indices[11] = 1;
  expect_same_bits(jitted(x, tensor(indices, {Dim(12), Dim(2)})), good);
}

TEST_F(AdjoinLoopsTest, OneOfTwoFailuresIsNamedAndTheNextCallIsRight) {
  const auto picks = [](const Tensor& x, const Tensor& indices) {
    const auto body = [](const std::pair<Tensor, Tensor>& at, const Tensor& h) {
      const Tensor next = tanh(matmul(at.first, full({5, 5}, 0.1, f64)) + gather(h, at.second, 0));
      return std::pair{next, next};
    };
    const auto picking = [&](const Tensor& x) {
      return scan(Scan{.initial = zeros({2, 5}, f64),
                       .xs = std::pair{x, indices},
                       .body = body,
                       .name = "picks"})
          .ys;
    };
    return picking(picking(x));
  };
  const Tensor x = sequence();
  std::vector<int> indices(24, 1);
  const auto given = [&] { return tensor(indices, {Dim(12), Dim(2)}); };
  const Tensor good = picks(x, given());
  for (const int count : {1, 2}) {
    const Threads threads(count);
    const auto jitted = jit(picks, {.executor = Executor::plan, .passes = {.chunk_steps = 2}});
    for (int again = 0; again < 3; ++again) {
      indices[4] = 7;
      EXPECT_TRUE(message_of<IndexError>([&] {
                    return jitted(x, given());
                  }).ends_with("in iteration 2 of scan \"picks\""));
      indices[4] = 1;
      expect_all_close(jitted(x, given()), good, 1e-12);
    }
  }
}

TEST_F(AdjoinLoopsTest, OverNoStepsOneAndAShortLastChunkInBothDirections) {
  for (const bool reverse : {false, true}) {
    const auto two = [&](const std::pair<Tensor, Layers>& p) {
      const Tensor h = layer(p.first, p.second[0], start(), reverse).ys;
      return sum(square(layer(h, p.second[1], start(), reverse).ys)) + sum(h);
    };
    const Layers w = weights(2);
    for (const int count : {1, 2}) {
      const Threads threads(count);
      const auto jitted =
          jit(value_and_grad(two), {.executor = Executor::plan, .passes = {.chunk_steps = 4}});
      for (const int steps : {0, 1, 5, 8, 11}) {
        SCOPED_TRACE(str(steps, " steps, ", count, " threads"));
        const std::pair p{random_normal({steps, 2, 5}, f64), w};
        const auto [value, gradient] = jitted(p);
        const auto [expected, slope] = value_and_grad(two)(p);
        expect_all_close(value, expected, 1e-12);
        expect_all_close(gradient.first, slope.first, 1e-12);
        for (std::size_t i = 0; i < w.size(); ++i)
          expect_all_close(gradient.second[i], slope.second[i], 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace reel
