// Passes, each on the text of a graph before and after.
#include <gtest/gtest.h>

#include <algorithm>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/passes/inline_checkpointed.h"
#include "reel/core/graph/passes/merge_equal.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/trace/passes/cleanup/drop_dead.h"
#include "reel/trace/passes/cleanup/fold_constants.h"
#include "reel/trace/passes/cleanup/forward_outputs.h"
#include "reel/trace/passes/hoisting/batch_across_iterations.h"
#include "reel/trace/passes/hoisting/capture_invariant_carries.h"
#include "reel/trace/passes/hoisting/hoist_invariants.h"

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

TEST(MergeEqualTest, EqualPrintsStayTwo) {
  const auto graph = record(1, [](const Tensors& x) { return Tensors{print(x[0]), print(x[0])}; });
  EXPECT_EQ(count(*merge_equal(*graph), "= print("), 2);
}

TEST(FoldConstantsTest, OpsOnConstantsAreComputed) {
  const auto graph = record(1, [](const Tensors& x) {
    return Tensors{x[0] * (scalar(2.0f) * scalar(3.0f) + 1.0f),
                   x[0] * sum(square(cast(range(4), f32))), matmul(tensor({1., 2.}), ones({2}))};
  });
  EXPECT_EQ(str(*drop_dead(*fold_constants(*graph))),
            "f(%0: f32[]) {\n"
            "  %1: f32[] = full() {type=f32[], number=7, integer=0}\n"
            "  %2: f32[] = mul(%0, %1)\n"
            "  %3: f32[] = full() {type=f32[], number=14, integer=0}\n"
            "  %4: f32[] = mul(%0, %3)\n"
            "  %5: f32[] = full() {type=f32[], number=3, integer=0}\n"
            "  return %2, %4, %5\n}\n");
  const auto uneven =
      record(0, [](const Tensors&) { return Tensors{cast(range(3), f32) * -0.5f}; });
  EXPECT_EQ(str(*drop_dead(*fold_constants(*uneven))),
            "f() {\n  %0: f32[3] = constant() {type=f32[3], data=f32[3] [-0.  -0.5 -1. ]}\n"
            "  return %0\n}\n");
}

TEST(FoldConstantsTest, ConstantsInBodiesAndBranchesAreFolded) {
  const auto graph = record(1, [](const Tensors& x) {
    const Tensor half = cond(
        x[0] > 0.0f, [&] { return x[0] * exp(scalar(0.0f)); }, [&] { return scalar(2.0f) * 4.0f; });
    return Tensors{while_loop([](const Tensor& s) { return s < scalar(2.0f) * 50.0f; },
                              [](const Tensor& s) { return s + (scalar(1.0f) + 2.0f); }, half)};
  });
  const auto folded = drop_dead(*fold_constants(*graph));
  EXPECT_EQ(count(*folded, "exp("), 0);
  EXPECT_EQ(count(*folded, "mul("), 1);
  EXPECT_EQ(count(*folded, "add("), 1);
  for (const char* number : {"number=1,", "number=8,", "number=100,", "number=3,"})
    EXPECT_EQ(count(*folded, number), 1) << number;
}

TEST(FoldConstantsTest, LargeAndThrowingAndNamedOpsStay) {
  const auto large = [](const Tensors&) { return Tensors{ones({4096}) * 2.0f}; };
  EXPECT_EQ(count(*fold_constants(*record(0, large)), "= mul("), 1);
  const auto throws = [](const Tensors& x) {
    return Tensors{cond(
        x[0] > 0.0f,
        [&] {
          return gather(tensor({1., 2.}), scalar(5), 0);
        },
        [&] { return x[0]; })};
  };
  EXPECT_EQ(count(*fold_constants(*record(1, throws)), "= gather("), 1);
  const auto prints = [](const Tensors&) { return Tensors{print(scalar(1.0f)) * 2.0f}; };
  EXPECT_EQ(count(*fold_constants(*record(0, prints)), "= mul("), 1);
  const auto of_run = jit([](Tensor x) { return sum(ones(x.dims()) * 2.0f); });
  const Dim batch("batch", 3), time("time", tensor({2, 1, 0}, {batch}));
  expect_values(of_run(ones({batch, time})), {6});
  const Dim longer("time", tensor({4, 1, 0}, {batch}));
  expect_values(of_run(ones({batch, longer})), {10});
}

// Folded constants have the bits of a run.
TEST(FoldConstantsTest, BitsAreThoseOfARun) {
  const auto f = [](Tensor x) {
    const Dim unit("unit", 3);
    const Tensor c = tanh(cast(range(unit), f64) * 0.3 - 0.1) / 0.7;
    return sum(x * c * std::log(2.0) + exp(c), {unit}) * where(c > 0.0, c, -0.0 * c);
  };
  const Tensor x = scalar(0.37, f64);
  const TreeLeaves expected = flatten(f(x));
  for (const Executor executor : {Executor::interpreter, Executor::plan, Executor::dataflow})
    for (const bool simplify : {false, true})
      expect_same_bits(
          flatten(jit(f, {.executor = executor, .passes = {.simplify = simplify}})(x))[0].tensor,
          expected[0].tensor);
}

TEST(FoldConstantsTest, AZeroKeepsItsSign) {
  const auto f = [](Tensor x) {
    const Tensor zero = zeros({3}, f64);
    return std::pair{x + zero, -zero};
  };
  const Tensor x = ones({3}, f64);
  for (const Executor executor : {Executor::interpreter, Executor::plan, Executor::dataflow})
    expect_same_bits(jit(f, {.executor = executor})(x).second, f(x).second);
}

TEST(MergeEqualTest, PaddingsWithZerosOfEitherSignAreTwo) {
  const auto f = [](Tensor x) { return std::pair{pad(x, 0, 1, 0, 0.0), pad(x, 0, 1, 0, -0.0)}; };
  const Tensor x = ones({3}, f64);
  expect_same_bits(jit(f)(x).second, f(x).second);
}

TEST(DropDeadTest, DropsUnreadRecords) {
  const auto graph = record(1, [](const Tensors& x) {
    exp(x[0]);
    return Tensors{x[0] * x[0]};
  });
  EXPECT_EQ(count(*graph, "exp"), 1);
  EXPECT_EQ(str(*drop_dead(*graph)), "f(%0: f32[]) {\n  %1: f32[] = mul(%0, %0)\n  return %1\n}\n");
}

TEST(DropDeadTest, UnreadPrintsStay) {
  const auto graph = record(1, [](const Tensors& x) {
    print(x[0]);
    return Tensors{x[0]};
  });
  EXPECT_EQ(count(*drop_dead(*graph), "print"), 1);
}

TEST(DropDeadTest, DropsRecordsOfBranches) {
  const auto graph = record(1, [](const Tensors& x) {
    return Tensors{cond(
        x[0] > 0.f,
        [&] {
          const Tensor unused = exp(x[0]);
          print(x[0]);
          return x[0] * 2.f;
        },
        [&] { return tanh(x[0]); })};
  });
  const Ref<Graph> after = drop_dead(*graph);
  const auto& branches = [](const Graph& of) -> const CondAttrs& {
    return get<CondAttrs>(std::ranges::find(of.records, &cond_op, &OpRecord::op)->attrs.get());
  };
  EXPECT_EQ(count(*branches(*graph).on_true.graph, "exp("), 1);
  EXPECT_EQ(count(*branches(*after).on_true.graph, "exp("), 0);
  EXPECT_EQ(count(*branches(*after).on_true.graph, "print("), 1);
  EXPECT_EQ(count(*branches(*after).on_true.graph, "mul("), 1);
  // Nothing is left to drop.
  EXPECT_EQ(branches(*drop_dead(*after)).on_true.graph, branches(*after).on_true.graph);
}

TEST(DropDeadTest, AResultThatDefinesASizeStays) {
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
  const auto after = capture_invariant_carries(*graph);
  EXPECT_EQ(count(*after, "carries=1"), 1);
  EXPECT_EQ(count(*after, "body_captures=[0]"), 1);
}

// A loop in a branch, and one in the condition of another loop.
TEST(InvariantCarriesTest, LoopsInBranchesAndConditionsLoseCarriesToo) {
  const auto counted = [](const Tensor& limit) {
    return std::get<0>(while_loop([](Tensor i, Tensor n) { return i < n; },
                                  [](Tensor i, Tensor n) {
                                    return std::tuple{i + 1.0, n};
                                  },
                                  std::tuple{limit * 0.0, limit}));
  };
  const auto in_branch = record(2, [&](const Tensors& x) {
    return Tensors{cond(
        x[0] < 1.0, [&] { return counted(x[1]); }, [&] { return x[1]; })};
  });
  EXPECT_EQ(count(*in_branch, "carries=2"), 1);
  EXPECT_EQ(count(*capture_invariant_carries(*in_branch), "carries=2"), 0);
  const auto in_condition = record(2, [&](const Tensors& x) {
    return Tensors{while_loop([&](Tensor i) { return i < counted(x[1]); },
                              [](Tensor i) { return i + 1.0; }, x[0])};
  });
  EXPECT_EQ(count(*in_condition, "carries=2"), 1);
  EXPECT_EQ(count(*capture_invariant_carries(*in_condition), "carries=2"), 0);
}

TEST(InlineCheckpointedTest, CallsInConditionsBecomeRecords) {
  const auto square_of = checkpoint([](const Tensor& x) { return x * x; });
  const auto graph = record(2, [&](const Tensors& x) {
    return Tensors{while_loop([&](Tensor i) { return square_of(i) < x[1]; },
                              [](Tensor i) { return i + 1.0; }, x[0])};
  });
  EXPECT_EQ(count(*graph, "= checkpointed("), 1);
  const auto inlined = inline_checkpointed(*graph);
  EXPECT_EQ(count(*inlined, "= checkpointed("), 0);
  EXPECT_EQ(count(*inlined, "= mul("), 1);
}

TEST(ForwardedOutputsTest, AStackOfSlicesIsTheSlicedTensor) {
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
  EXPECT_EQ(str(*drop_dead(*forward_outputs(*recorded(false)))),
            "f(%0: f32[4], %1: f32[]) {\n  return %0\n}\n");
  const auto until = recorded(true);
  EXPECT_NE(forward_outputs(*until)->outputs[0], until->inputs[0]);
}

TEST(ForwardedOutputsTest, EqualStacksAndSumsBecomeOne) {
  // Both biases have the same gradient, and the loop stacks one value twice.
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
    std::vector<std::pair<int, int>> result;  // numbers of stacks and sums
    for (const OpRecord& record : graph.records)
      if (record.op == &loop_op) {
        const auto& attrs = get<LoopAttrs>(record.attrs.get());
        result.emplace_back(attrs.stacks.size(), attrs.sums.size());
      }
    return result;
  };
  const std::vector<std::pair<int, int>> before = outputs(*recorded),
                                         after = outputs(*drop_dead(*forward_outputs(*recorded)));
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

TEST(HoistInvariantsTest, ValuesMuchLargerThanTheirOperandsStayInside) {
  const auto adds_in_loop = [](std::int64_t rows, auto&& pass) {
    const auto f = [&](const Tensors& x) {
      const auto body = [&](Tensor step, Tensor s) {
        return std::pair{None{}, s + step * sum(exp(x[0]) + x[1])};
      };
      return Tensors{scan(Scan{.initial = scalar(0.0f), .xs = x[2], .body = body}).state};
    };
    const auto graph =
        record_graph(
            "f", {TensorType(f32, {rows, 1}), TensorType(f32, {1, rows}), TensorType(f32, {50})}, f)
            .graph;
    const std::string dump = str(*pass(*graph));
    const std::size_t body = dump.find("body(");
    EXPECT_LT(dump.find("= exp("), body);
    return dump.find(str("f32[", rows, ',', rows, "] = add(")) > body;
  };
  for (const auto& pass : {hoist_invariants, hoist_once}) {
    EXPECT_FALSE(adds_in_loop(500, pass));
    EXPECT_TRUE(adds_in_loop(600, pass));
  }
}

TEST(HoistInvariantsTest, PrintsAndOpsThatMayFailStayInside) {
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
