// Layers in one loop, split into a loop per layer: graphs, and comparisons with the unsplit loop.
#include "reel/trace/passes/loop_structure/split_loops.h"

#include <gtest/gtest.h>

#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/loop_structure/chunk_loops.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

using Layers = std::vector<Tensor>;  // weights, {5, 5} each

Tensor layer(const Tensor& x, const Tensor& h, const Tensor& w) {
  const Tensor of_state = matmul(h, w * 0.5);  // first: compilers differ in their order of operands
  return tanh(matmul(x, w) + of_state);
}

/// Three layers in one iteration; each reads the output of the layer below in the same iteration.
Tensor stacked(const Tensor& x, const Layers& w) {
  const auto body = [&](Tensor y, Layers state) {
    for (std::size_t i = 0; i < w.size(); ++i) y = state[i] = layer(y, state[i], w[i]);
    return std::pair{y, state};
  };
  const auto made =
      scan(Scan{.initial = Layers(w.size(), zeros({2, 5}, f64)), .xs = x, .body = body});
  const Tensor of_state = sum(made.state[0]);
  return sum(square(made.ys)) + of_state;
}

/// The lower layer reads the output of the upper layer in the previous iteration.
Tensor entangled(const Tensor& x, const Layers& w) {
  const auto body = [&](const Tensor& x, const Layers& state) {
    const Tensor lower = layer(x + state[1], state[0], w[0]), upper = layer(lower, state[1], w[1]);
    return std::pair{upper, Layers{lower, upper}};
  };
  return sum(scan(Scan{.initial = Layers(2, zeros({2, 5}, f64)), .xs = x, .body = body}).ys);
}

/// Two layers with a count of steps, a running mean of the lower layer, and a difference of both
/// layers one step ago.
Tensor with_others(const Tensor& x, const Layers& w) {
  const auto body = [&](const Tensor& x, const Layers& state) {
    const Tensor count = state[2] + 1.0, lower = layer(x, state[0], w[0]),
                 mean = state[3] + (lower - state[3]) / count,
                 upper = layer(lower + mean, state[1], w[1]) * count;
    return std::pair{upper - state[4],
                     Layers{lower, upper, count, mean, state[1] - state[0] * count}};
  };
  const Tensor zero = zeros({2, 5}, f64);
  const auto made = scan(
      Scan{.initial = Layers{zero, zero, scalar(0.0, f64), zero, zero}, .xs = x, .body = body});
  const Tensor of_difference = sum(made.state[4]), of_mean = sum(made.state[3]);
  return sum(square(made.ys)) + of_mean + of_difference;
}

class SplitLoopsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(9); }
  static Layers weights(int count) {
    Layers result;
    for (int i = 0; i < count; ++i) result.push_back(random_normal({5, 5}, f64) * 0.3);
    return result;
  }
  static Tensor sequence() { return random_normal({12, 2, 5}, f64); }

  struct Split {
    std::string before, after;
    bool operator==(const Split&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Split& split) {
      return out << split.before << "\n->\n" << split.after;
    }
  };
  /// Returns the ops of f's loops before and after the pass, without ops outside of loops.
  template <class F, class... Args>
  static Split split(const F& f, const Args&... args) {
    const auto jitted = jit(f);
    jitted(args...);
    const auto loops = [](const Graph& graph) {
      std::string result;
      for (const OpRecord& record : graph.records)
        if (record.op == &loop_op)
          result += '{' + ops(*get<LoopAttrs>(record.attrs.get()).body.graph) + '}';
      return result;
    };
    return {loops(jitted.graph()), loops(*split_loops(jitted.graph()))};
  }
  /// True if the pass does not change f's loop.
  template <class F, class... Args>
  static bool stay_together(const F& f, const Args&... args) {
    const auto [before, after] = split(f, args...);
    return before == after;
  }
  template <class F>
  static void expect_same_in_loops(const F& f, const Tensor& x, const Layers& w) {
    const auto step = value_and_grad([&](const Layers& w) { return f(x, w); });
    for (const int steps : {1, 3, 4})
      expect_same_without({.chunk_loops = false, .chunk_steps = steps}, false, step, w);
    const auto over_chunks = jit(step, {.executor = Executor::plan, .passes = {.chunk_steps = 3}});
    const auto [value, gradient] = over_chunks(w);
    const auto [expected, slope] = step(w);
    expect_all_close(value, expected, 1e-12);
    for (std::size_t i = 0; i < w.size(); ++i) expect_all_close(gradient[i], slope[i], 1e-12);
  }
};

TEST_F(SplitLoopsTest, LayersOfOneStepBecomeLoops) {
  EXPECT_EQ(
      split(stacked, sequence(), weights(3)),
      (Split{"{full mul dot dot add tanh full mul dot dot add tanh full mul dot dot add tanh}",
             "{full mul dot dot add tanh full full}{full full mul dot dot add tanh full}{full full "
             "full mul dot dot add tanh}"}));
  EXPECT_EQ(split(stacked, sequence(), weights(1)),
            (Split{"{full mul dot dot add tanh}", "{full mul dot dot add tanh}"}));
  const auto gradient = grad([&](const Layers& w) { return stacked(sequence(), w); });
  EXPECT_EQ(split(gradient, weights(2)),
            (Split{"{full mul dot dot add tanh mul dot dot add tanh}{full mul mul add tanh_grad "
                   "dot add dot dot dot mul add tanh_grad dot dot dot mul add}",
                   "{full mul dot dot add tanh}{full mul dot dot add tanh}{full mul add tanh_grad "
                   "dot dot dot mul add}{full mul dot add tanh_grad dot dot dot mul add}"}));
  expect_same_in_loops(stacked, sequence(), weights(3));
}

TEST_F(SplitLoopsTest, LayersThatWaitForEachOtherStayTogether) {
  EXPECT_TRUE(stay_together(entangled, sequence(), weights(2)));
  expect_same_in_loops(entangled, sequence(), weights(2));
}

TEST_F(SplitLoopsTest, OtherCarriesStayWithTheirDependencies) {
  EXPECT_EQ(split(with_others, sequence(), weights(2)),
            (Split{"{full add full mul dot dot add tanh sub div add add full mul dot dot add tanh "
                   "mul sub mul sub}",
                   "{full add full mul dot dot add tanh sub div add full}{full full add full mul "
                   "dot dot add tanh mul sub mul sub}"}));
  expect_same_in_loops(with_others, sequence(), weights(2));
}

TEST_F(SplitLoopsTest, NamedLayersOfTheirOwnWidths) {
  const Dim time("time", 7), batch("batch", 2), in("in", 3), low("low", 4), high("high", 5);
  const std::pair cells{GruCell::init(in, low), GruCell::init(low, high)};
  const Tensor x = random_normal({time, batch, in});
  for (const bool reverse : {false, true}) {
    const auto f = [&](const auto& cells) {
      const auto cell = stack_cells(cells.first, cells.second);
      const auto body = [&](const Tensor& x, const auto& state) { return cell(x, state); };
      return sum(square(scan(Scan{.spatial_dim = time,
                                  .initial = cell.initial_state({batch}),
                                  .xs = x,
                                  .body = body,
                                  .reverse = reverse})
                            .ys));
    };
    EXPECT_EQ(
        split(f, cells),
        (Split{"{dot add split dot split add add sigmoid mul add tanh add sigmoid sub mul add dot "
               "add split dot split add add sigmoid mul add tanh add sigmoid sub mul add}",
               "{dot add split dot split add add sigmoid mul add tanh add sigmoid sub mul add}{dot "
               "add split dot split add add sigmoid mul add tanh add sigmoid sub mul add}"}));
    for (const int steps : {2, 3, 4, 7}) {
      const auto planned = jit(value_and_grad(f), {.passes = {.chunk_steps = steps}});
      const auto [value, gradient] = planned(cells);
      const auto [expected, slope] = value_and_grad(f)(cells);
      expect_all_close(value, expected, 1e-5);
      expect_all_close(gradient.first.input_weight, slope.first.input_weight, 1e-5);
      expect_all_close(gradient.second.input_weight, slope.second.input_weight, 1e-5);
    }
  }
}

// A GRU's gates are three times as wide as the product that the layer below gets from them.
TEST_F(SplitLoopsTest, LayersMakeTheGradientsOfTheirInputs) {
  const Dim time("time", 7), batch("batch", 2), in("in", 3), low("low", 4), high("high", 5);
  const std::pair cells{GruCell::init(in, low), GruCell::init(low, high)};
  const Tensor x = random_normal({time, batch, in});
  const auto f = [&](const auto& cells) {
    const auto cell = stack_cells(cells.first, cells.second);
    return sum(square(recur(cell, x, time).outputs));
  };
  const std::string loops = split(grad(f), cells).after;
  std::vector<int> products;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i] == '{') products.push_back(0);
    if (loops.compare(i, 3, "dot") == 0) ++products.back();
  }
  // Forward: x and h. Backward: h with gates, x with gates, h with gates, and gates with the upper
  // layer's x.
  EXPECT_EQ(products, (std::vector{2, 2, 4, 3})) << loops;
}

TEST_F(SplitLoopsTest, LayersThatMakeDimsStayTogether) {
  const auto f = [](const Tensor& x, const Layers& w) {
    const auto body = [&](const Tensor& x, const Layers& state) {
      const Tensor lower = layer(x, state[0], w[0]);
      const Dim n("n", cast(sum(abs(lower)) * 0.0 + 3.0, i32));
      const Tensor upper = layer(lower, state[1], w[1]) * sum(ones({n}, f64));
      return std::pair{upper, Layers{lower, upper}};
    };
    return sum(scan(Scan{.initial = Layers(2, zeros({2, 5}, f64)), .xs = x, .body = body}).ys);
  };
  EXPECT_TRUE(stay_together(f, sequence(), weights(2)));
  expect_same_in_loops(f, sequence(), weights(2));
}

// Chunks stay the same under a policy, which keeps layers together; otherwise sums over chunks
// would change.
TEST_F(SplitLoopsTest, LayersHaveTheChunksOfTheWhole) {
  const auto chunks = [](const Tensor& x, const Layers& w, const Checkpoint& checkpoint) {
    const auto f = [&](const Layers& w) {
      const auto body = [&](const Tensor& x, const Layers& state) {
        const Tensor lower = layer(x, state[0], w[0]), upper = layer(lower, state[1], w[1]);
        return std::pair{upper, Layers{lower, upper}};
      };
      // The upper layer has far more rows. Alone, the lower one would get longer chunks.
      return sum(scan(Scan{.initial = Layers{zeros({1, 5}, f64), zeros({16384, 5}, f64)},
                           .xs = x,
                           .body = body,
                           .checkpoint = checkpoint})
                     .ys);
    };
    const auto jitted = jit(grad(f));
    jitted(w);
    std::vector<std::pair<bool, int>> result;  // whether it is a reverse loop, iterations per chunk
    const Ref<Graph> over_chunks = chunk_loops(*split_loops(jitted.graph()), 0);
    for (const OpRecord& record : over_chunks->records)
      if (record.op == &loop_op) {
        const auto& loop = get<LoopAttrs>(record.attrs.get());
        result.emplace_back(loop.trips.is_reverse, loop.chunking.steps);
      }
    return result;
  };
  const Tensor x = random_normal({144, 1, 5}, f64);
  const auto apart = chunks(x, weights(2), {}),
             together = chunks(x, weights(2), Checkpoint::every(8));
  ASSERT_EQ(apart.size(), 4u);
  ASSERT_EQ(together.size(), 2u);
  for (const auto& [reverse, steps] : apart) {
    EXPECT_GT(steps, 0);
    EXPECT_EQ(steps, together[reverse].second);
  }
}

TEST_F(SplitLoopsTest, LayersApartRunBesideEachOther) {
  const auto jitted = jit(stacked, {.passes = {.chunk_steps = 4}});
  jitted(sequence(), weights(2));
  EXPECT_NE(jitted.explain().find("beside loop 1"), std::string::npos) << jitted.explain();
}

}  // namespace
}  // namespace reel
