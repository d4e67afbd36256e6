// Passes, each on the dump of a graph before and after.
#include <gtest/gtest.h>

#include "reel/core/graph_builder.h"
#include "reel/core/merge_equal.h"
#include "reel/core/ops/loop.h"
#include "reel/reel.h"
#include "reel/trace/passes/drop_dead.h"
#include "reel/trace/passes/forwarded_outputs.h"
#include "reel/trace/passes/hoist_invariants.h"
#include "reel/trace/passes/invariant_carries.h"

namespace reel {
namespace {

template <class Fn>
Ref<Graph> record(int inputs, Fn fn) {
  return record_graph("f", std::vector<TensorType>(inputs, TensorType(f32)), fn).graph;
}
int count(const Graph& graph, const std::string& text) {
  const std::string dump = str(graph);
  int result = 0;
  for (std::size_t at = dump.find(text); at != std::string::npos; at = dump.find(text, at + 1))
    ++result;
  return result;
}

TEST(MergeEqualTest, ComputesEqualThingsOnce) {
  const auto graph = record(1, [](const Tensors& x) { return Tensors{x[0] * x[0], x[0] * x[0]}; });
  EXPECT_EQ(
      str(*graph),
      "f(%0: f32[]) {\n  %1: f32[] = mul(%0, %0)\n  %2: f32[] = mul(%0, %0)\n  return %1, %2\n}\n");
  EXPECT_EQ(str(*merge_equal(*graph)),
            "f(%0: f32[]) {\n  %1: f32[] = mul(%0, %0)\n  return %1, %1\n}\n");
}

TEST(MergeEqualTest, KeepsWhatPrints) {
  const auto graph = record(1, [](const Tensors& x) { return Tensors{print(x[0]), print(x[0])}; });
  EXPECT_EQ(count(*merge_equal(*graph), "= print("), 2);
}

TEST(DropDeadTest, DropsWhatNobodyReads) {
  const auto graph = record(1, [](const Tensors& x) {
    exp(x[0]);
    return Tensors{x[0] * x[0]};
  });
  EXPECT_EQ(count(*graph, "exp"), 1);
  EXPECT_EQ(str(*drop_dead(*graph)), "f(%0: f32[]) {\n  %1: f32[] = mul(%0, %0)\n  return %1\n}\n");
}

TEST(DropDeadTest, KeepsWhatPrints) {
  const auto graph = record(1, [](const Tensors& x) {
    print(x[0]);
    return Tensors{x[0]};
  });
  EXPECT_EQ(count(*drop_dead(*graph), "print"), 1);
}

TEST(DropDeadTest, KeepsAResultThatAloneSaysWhatASizeIs) {
  const auto grown = [](const Tensor& x) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 2; },
                                  [&](Tensor i, Tensor h) {
                                    return std::tuple{i + 1, concat({h, x}, 0)};
                                  },
                                  std::tuple{scalar(0), x},
                                  {.shape_invariants = {PartialShape{}, PartialShape{unknown}}}));
  };
  const auto f = jit([=](Tensor x) { return expand(sum(x), grown(x).dims()); });
  EXPECT_EQ(str(f(ones({4})).type()), "f32[12]");
}

TEST(DropDeadTest, RemovesARingOfCarriesThatFeedOnlyEachOther) {
  const auto graph = record(3, [](const Tensors& x) {
    auto [i, a, b] = while_loop([](Tensor i, Tensor, Tensor) { return i < 3.0; },
                                [](Tensor i, Tensor a, Tensor b) {
                                  return std::tuple{i + 1.0, b, a};
                                },
                                std::tuple{x[0], x[1], x[2]});
    return Tensors{i};
  });
  EXPECT_EQ(count(*graph, "carries=3"), 1);
  EXPECT_EQ(count(*drop_dead(*graph), "carries=1"), 1);
}

TEST(InvariantCarriesTest, CarryThatComesBackUnchangedIsACapture) {
  const auto graph = record(2, [](const Tensors& x) {
    auto [i, n] = while_loop([](Tensor i, Tensor n) { return i < n; },
                             [](Tensor i, Tensor n) {
                               return std::tuple{i + 1.0, n};
                             },
                             std::tuple{x[0], x[1]});
    return Tensors{i, n};
  });
  EXPECT_EQ(count(*graph, "carries=2"), 1);
  const auto after = invariant_carries(*graph);
  EXPECT_EQ(count(*after, "carries=1"), 1);
  EXPECT_EQ(count(*after, "body_captures=[0]"), 1);
}

TEST(ForwardedOutputsTest, StackOfSlicesIsWhatTheyAreSlicesOf) {
  const auto recorded = [](bool until) {
    return record_graph(
               "f", {TensorType(f32, {4}), TensorType(f32)},
               [&](const Tensors& x) {
                 const auto body = [](const Tensor& x, const Tensor& s) {
                   return std::pair{x, s + x};
                 };
                 if (!until)
                   return Tensors{scan(Scan{.initial = x[1], .xs = x[0], .body = body}).ys};
                 return Tensors{scan(Scan{.cond_dims = {},
                                          .initial = x[1],
                                          .xs = x[0],
                                          .cond = [](const Tensor& s) { return s < 2.0; },
                                          .body = body})
                                    .ys};
               })
        .graph;
  };
  EXPECT_EQ(str(*drop_dead(*forwarded_outputs(*recorded(false)))),
            "f(%0: f32[4], %1: f32[]) {\n  return %0\n}\n");
  const auto until = recorded(true);
  EXPECT_NE(forwarded_outputs(*until)->outputs[0], until->inputs[0]);
}

TEST(ForwardedOutputsTest, WhatIsStackedOrAddedUpTwiceIsThereAlready) {
  // Both biases have the same gradient, and the loop gives one value twice.
  const auto loss = [](const std::pair<Tensor, Tensor>& biases, const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& s) {
      const Tensor y = tanh(x + biases.first + biases.second) * s;
      return std::pair{std::pair{y, y}, y};
    };
    const auto [first, second] = scan(Scan{.initial = scalar(1.0), .xs = x, .body = body}).ys;
    return sum(first * second * second);
  };
  const Ref<Graph> recorded =
      merge_equal(*record_graph("f", {TensorType(f32, {4}), TensorType(f32), TensorType(f32)},
                                [&](const Tensors& x) {
                                  const auto [a, b] = grad(loss)(std::pair{x[1], x[2]}, x[0]);
                                  return Tensors{a, b};
                                })
                       .graph);
  const auto outputs = [](const Graph& graph) {
    std::vector<std::pair<int, int>> result;  // stacks and sums
    for (const OpRecord& record : graph.records)
      if (record.op == &loop_op) {
        const auto& attrs = get<LoopAttrs>(record.attrs.get());
        result.emplace_back(attrs.stacks, attrs.sums);
      }
    return result;
  };
  const std::vector<std::pair<int, int>> before = outputs(*recorded),
                                         after = outputs(*drop_dead(*forwarded_outputs(*recorded)));
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].first, before[0].first - 1);
  EXPECT_EQ(before[1].second, 2);
  EXPECT_EQ(after[1].second, 1);
}

TEST(HoistInvariantsTest, TakesElementWiseOpsOfCapturesOut) {
  const auto graph = record(2, [](const Tensors& x) {
    return Tensors{
        while_loop([](Tensor s) { return s < 3.0; },
                   [&](Tensor s) {
                     return s + exp(x[1] * 2.0) +
                            sin(s) * fori_loop(
                                         0, 2, [&](Tensor, Tensor t) { return t + cos(x[1]); }, s);
                   },
                   x[0])};
  });
  const auto after = hoist_invariants(*graph);
  const std::string dump = str(*after), before_loop = dump.substr(0, dump.find("= loop("));
  for (const char* op : {"= exp(", "= mul(", "= cos("})
    EXPECT_NE(before_loop.find(op), std::string::npos) << op << '\n' << dump;
  EXPECT_EQ(before_loop.find("= sin("), std::string::npos) << dump;
  EXPECT_EQ(count(*after, "= exp("), 1);
  EXPECT_EQ(count(*after, "= cos("), 1);
  verify(*after, "hoist_invariants");
}

TEST(HoistInvariantsTest, LeavesWhatPrintsOrMayFailInside) {
  const auto graph = record(2, [](const Tensors& x) {
    return Tensors{while_loop(
        [](Tensor s) { return s < 3.0; },
        [&](Tensor s) { return s + print(x[1]) + gather(expand(x[1], {Dim(2)}), scalar(5), 0); },
        x[0])};
  });
  const std::string dump = str(*hoist_invariants(*graph));
  EXPECT_GT(dump.find("= print("), dump.find("= loop(")) << dump;
  EXPECT_GT(dump.find("= gather("), dump.find("= loop(")) << dump;
}

TEST(VerifyTest, BlamesTheTransformation) {
  const auto graph = record(1, [](const Tensors& x) { return Tensors{x[0] * x[0]}; });
  Graph broken(*graph);
  broken.types[broken.outputs[0]] = TensorType(f64);
  try {
    verify(broken, "a test");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    EXPECT_NE(
        std::string(error.what())
            .find("after a test, graph f: mul is recorded with type f64[], its rule gives f32[]"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace reel
