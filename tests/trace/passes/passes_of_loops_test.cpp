// Passes that work on two graphs of a loop at a time: joining, residuals of finished entries, and
// checkpointed functions.
#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/passes/inline_checkpointed.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/cleanup/forward_outputs.h"
#include "reel/trace/passes/loop_structure/join_loops.h"
#include "reel/trace/passes/pipeline.h"
#include "reel/trace/passes/residuals/relax_finished_residuals.h"

namespace reel {
namespace {

/// Records a function before any pass.
template <class Fn>
Ref<Graph> recorded(const std::vector<TensorType>& types, Fn fn) {
  return record_graph("f", types, fn).graph;
}
int count_loops(const Graph& graph) {
  return static_cast<int>(std::count_if(graph.records.begin(), graph.records.end(),
                                        [](const OpRecord& r) { return r.op == &loop_op; }));
}
std::vector<const LoopAttrs*> loops_of(const Graph& graph) {
  std::vector<const LoopAttrs*> result;
  for (const OpRecord& record : graph.records)
    if (record.op == &loop_op) result.push_back(&get<LoopAttrs>(record.attrs.get()));
  return result;
}

/// Returns the number of carries, slices and captures with this fill.
std::ptrdiff_t count_fills(const LoopAttrs& loop, FinishedFill fill) {
  const auto has_fill = [&](const auto& leaf) { return leaf.fill == fill; };
  return std::ranges::count_if(loop.carries, has_fill) +
         std::ranges::count_if(loop.slices, has_fill) +
         std::ranges::count_if(loop.captures, has_fill);
}
/// Returns the number of slices with this fill that have a window of steps in memory.
std::ptrdiff_t count_windows(const LoopAttrs& loop, FinishedFill fill) {
  return std::ranges::count_if(loop.slices, [&](const LoopSlice& slice) {
    return !slice.is_in_memory() && slice.fill == fill;
  });
}

/// Three entries of up to four steps; two finish earlier.
class RelaxFinishedResidualsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Dim batch("batch", 3), time("time", tensor({2, 4, 1}, {batch}, i32));
    manual_seed(2);
    x = random_normal({batch, time}, f64);
  }
  Tensor x;
  const Tensor w = scalar(0.7, f64);
};

TEST(JoinLoopsTest, ATangentRunsBesideItsValue) {
  const auto last = [](const Tensor& x) {
    return scan(Scan{.initial = zeros({2}, f64),
                     .xs = x,
                     .body =
                         [](Tensor x, Tensor h) {
                           return std::pair{None{}, sin(x * h) + x};
                         }})
        .state;
  };
  const TensorType type(f64, {3, 2});
  const auto graph = recorded({type, type}, [&](const Tensors& x) {
    const auto [value, tangent] = jvp(last, x[0], x[1]);
    return Tensors{value, tangent};
  });
  const auto before = forward_outputs(*graph), after = join_loops(*before);
  const std::string value = "mul sin add", tangent = "mul cos mul mul add mul add";
  EXPECT_NE(ops(*before).find("loop{" + tangent + '}'), std::string::npos) << ops(*before);
  EXPECT_EQ(ops(*after).find("loop{" + tangent + '}'), std::string::npos) << ops(*after);
  EXPECT_NE(ops(*after).find("loop{" + value + ' ' + tangent + '}'), std::string::npos);
  EXPECT_EQ(count_loops(*after), count_loops(*before) - 1);

  manual_seed(1);
  const Tensor x = random_normal({3, 2}, f64), v = random_normal({3, 2}, f64);
  const auto f = [&](Tensor x, Tensor v) { return jvp(last, x, v); };
  const auto traced = jit(f);
  expect_same_bits(traced(x, v).first, f(x, v).first);
  expect_all_close(traced(x, v).second, f(x, v).second, 1e-14);
  // After all passes one loop is left, which saves no residuals.
  ASSERT_EQ(loops_of(traced.graph()).size(), 1u);
  EXPECT_EQ(loops_of(traced.graph())[0]->stacks.size(), 0u);
}

TEST(JoinLoopsTest, LoopsThatAUserWroteStayApart) {
  const auto graph = recorded({TensorType(f64, {3})}, [](const Tensors& x) {
    const auto running = [](Tensor x, Tensor s) { return std::pair{s + x, s + x}; };
    const auto once = scan(Scan{.initial = scalar(0., f64), .xs = x[0], .body = running});
    const auto twice = scan(Scan{.initial = scalar(0., f64), .xs = once.ys, .body = running});
    return Tensors{twice.state};
  });
  EXPECT_EQ(count_loops(*join_loops(*graph)), 2);
}

TEST_F(RelaxFinishedResidualsTest, GradientReadsARunningEntryAndCollectsNothing) {
  const auto loss = [](const Tensor& x, const Tensor& w) {
    return sum(scan(Scan{.spatial_dim = x.dim("time"),
                         .initial = zeros({x.dim("batch")}, f64),
                         .xs = x,
                         .body =
                             [&](Tensor x, Tensor h) {
                               const Tensor next = tanh(x * w + h);
                               return std::pair{next, next};
                             }})
                   .ys);
  };
  const auto gradient = jit([&](Tensor x, Tensor w) {
    return grad([&](std::pair<Tensor, Tensor> xw) { return loss(xw.first, xw.second); })(
        std::pair{x, w});
  });
  gradient(x, w);
  const Graph& before = gradient.graph();
  const Ref<Graph> after = relax_finished_residuals(before);
  ASSERT_EQ(loops_of(before).size(), 2u);
  EXPECT_GT(count_fills(*loops_of(before)[1], FinishedFill::as_is), 0) << str(before);
  EXPECT_EQ(count_fills(*loops_of(*after)[1], FinishedFill::as_is), 0) << str(*after);
  const auto collected = [](const Graph& graph) {
    int result = 0;
    for (const LoopAttrs* loop : loops_of(graph))
      for (std::size_t k = 0; k < loop->body.graph->outputs.size(); ++k)
        result += adds_finished(*loop, body_output_at(*loop, k));
    return result;
  };
  EXPECT_GT(collected(before), 0);
  EXPECT_LT(collected(*after), collected(before));
}

TEST_F(RelaxFinishedResidualsTest, WindowedGradientReadsARunningEntry) {
  for (const bool swaps : {false, true}) {
    const auto gradient = jit([&](Tensor x, Tensor w) {
      return grad([&](Tensor w) {
        const auto body = [&](Tensor x, Tensor h) {
          const Tensor next = tanh(x * w + h);
          return std::pair{sin(next), next};
        };
        return sum(scan(Scan{.spatial_dim = x.dim("time"),
                             .initial = zeros({x.dim("batch")}, f64),
                             .xs = x,
                             .body = body,
                             .checkpoint = swaps ? Checkpoint() : Checkpoint::every(2),
                             .swap_memory = swaps})
                       .ys);
      })(w);
    });
    gradient(x, w);
    const Graph& before = gradient.graph();
    const Ref<Graph> after = relax_finished_residuals(before);
    ASSERT_EQ(loops_of(before).size(), 2u);
    EXPECT_GT(count_windows(*loops_of(before)[1], FinishedFill::as_is), 0) << str(before);
    EXPECT_EQ(count_windows(*loops_of(*after)[1], FinishedFill::as_is), 0) << str(*after);
    EXPECT_GT(count_windows(*loops_of(*after)[1], FinishedFill::running), 0) << str(*after);
    EXPECT_TRUE(loops_of(*after)[1]->has_windows());
  }
}

// The gradient computes the inner loop once more, over constants that were created again.
TEST(MergeEqualTest, LoopsOverEqualConstantsAreOne) {
  const auto f = [](const Tensor& w, const Tensor& x) {
    const auto step = [&](const Tensor& a, const Tensor& h) {
      return std::pair{None{}, tanh(h * w * a)};
    };
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor xs = cast(range(3), f32) * 0.1f;
      return std::pair{None{}, scan(Scan{.initial = h + x, .xs = xs, .body = step}).state};
    };
    return sum(scan(Scan{.initial = zeros({2}), .xs = x, .body = body}).state);
  };
  const auto gradient = jit(value_and_grad(f));
  gradient(ones({2}), ones({5, 2}));
  const Ref<Graph> plan = optimise_for_plan(gradient.graph(), {.chunk_loops = false}).graph;
  EXPECT_EQ(count_loops(*loops_of(*plan)[0]->body.graph), 1);
}

TEST(InlineCheckpointedTest, RecordsStandWhereTheyAreCalledInBodiesAndBranchesToo) {
  const auto twice = [](Tensor x) { return checkpoint([](Tensor x) { return sin(cos(x)); })(x); };
  const auto graph = recorded({TensorType(f64, {3})}, [&](const Tensors& x) {
    const Tensor here = checkpoint([&](Tensor x) { return twice(x) * x; })(x[0]);
    const Tensor looped = fori_loop(
        0, 2, [&](Tensor, Tensor h) { return twice(h); }, here);
    return Tensors{cond(
        sum(looped) > 0., [&] { return twice(looped); }, [&] { return looped; })};
  });
  EXPECT_NE(str(*graph).find("checkpointed"), std::string::npos);
  const auto inlined = inline_checkpointed(*graph);
  EXPECT_EQ(str(*inlined).find("checkpointed"), std::string::npos) << str(*inlined);
  EXPECT_EQ(ops(*inlined).find("cos sin mul"), 0u) << ops(*inlined);
  EXPECT_NE(ops(*inlined).find("{cos sin"), std::string::npos) << ops(*inlined);
}

}  // namespace
}  // namespace reel
