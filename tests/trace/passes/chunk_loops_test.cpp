// Chunked loops: graphs before and after the pass, and comparisons with unchunked loops.
#include "reel/tests/trace/passes/chunk_loops.h"

#include <cmath>

#include "reel/core/graph/graph_builder.h"
#include "reel/trace/executors/interpreter.h"

namespace reel {
namespace {

// The size of a product's steps is asked for also if the product has no elements.
TEST_F(ChunkLoopsTest, ProductsOfEmptyFactorsOverSeveralDims) {
  const Dim time("time", 64), none("none", 0);
  const Tensor x = random_normal({time, batch, in, unit}, f64);
  for (const bool is_slice : {false, true}) {
    const auto f = [&](const Tensor& x, const Tensor& empty) {
      const auto body = [&](const std::pair<Tensor, Tensor>& at, const Tensor& h) {
        const Tensor product = matmul(at.first, is_slice ? at.second : empty, {in, unit});
        return std::pair{product, tanh(h + sum(at.first) + sum(product))};
      };
      const auto made = scan(Scan{.spatial_dim = time,
                                  .initial = zeros({}, f64),
                                  .xs = std::pair{x, is_slice ? empty : x},
                                  .body = body});
      return sum(made.ys) + made.state;
    };
    const Tensor empty =
        is_slice ? zeros({time, in, none, unit}, f64) : zeros({in, none, unit}, f64);
    expect_same_in_chunks(4, f, x, empty);
  }
}

// The final slices of a reverse loop are one number for all iterations. Only these slices tell how
// many iterations there are.
TEST_F(ChunkLoopsTest, SlicesThatSayHowLongALoopIsStayOutside) {
  const Dim time("time", 4);
  const auto f = [](const Tensor& x, const Tensor& goes_on) {
    const Tensor total = sum(x * x);
    const auto made = scan(Scan{.spatial_dim = x.dim("time"),
                                .cond_dims = {},
                                .initial = None{},
                                .xs = x,
                                .cond = [&](None) { return goes_on; },
                                .body =
                                    [&](const Tensor&, None s) {
                                      return std::pair{total, s};
                                    }});
    return sum(made.ys);
  };
  for (const bool goes_on : {false, true})
    expect_same_in_chunks(2, value_and_grad(f), random_normal({time}, f64), scalar(goes_on));
}

TEST_F(ChunkLoopsTest, OpsBeforeAndAfterALoopRunChunkByChunk) {
  const Problem plain = plain_problem(6), named = named_problem(Dim("time", 6));
  const char *whole = "full full dot loop{dot add tanh} dot sum square sum add",
             *over_chunks = "full loop{dot loop{dot add tanh} dot} sum square sum add";
  EXPECT_EQ(ops_in_chunks(0, plain_rnn, plain), whole);  // six steps are too few
  EXPECT_EQ(ops_in_chunks(2, plain_rnn, plain), over_chunks);
  EXPECT_EQ(ops_in_chunks(4, plain_rnn, plain), over_chunks);
  EXPECT_EQ(ops_in_chunks(4, plain_rnn, plain_problem(7)),
            over_chunks);  // the last chunk is shorter
  EXPECT_EQ(ops_in_chunks(0, plain_rnn, plain_problem(1000)), over_chunks);
  EXPECT_EQ(ops_in_chunks(4, named_rnn(), named),
            "full loop{dot loop{rename dot add tanh} dot} sum square sum add");
}

/// Returns the iterations per chunk of each chunked loop in the plan's graph.
std::vector<int> chunks_in(const Graph& graph) {
  std::vector<int> result;
  const Ref<Graph> plan = optimise_for_plan(graph, {}).graph;
  for (const OpRecord& record : plan->records)
    if (record.op == &loop_op && get<LoopAttrs>(record.attrs.get()).chunking.over_chunks)
      result.push_back(get<LoopAttrs>(record.attrs.get()).chunking.steps);
  return result;
}

// A gradient may hold the residuals of inner loops for all iterations of a chunk. The types of
// their iterations and states estimate that size. Policies must not change the chunks, because sums
// over other chunks have other bits.
TEST_F(ChunkLoopsTest, AroundLoopsAreChosenByTheseWhateverPoliciesSay) {
  bool has_state = true;  // of the inner loop
  const auto chunks = [&](int inner, const Checkpoint& around, const Checkpoint& inside) {
    const auto f = [=](const Tensor& w, const Tensor& x) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor a = tanh(matmul(x, w) + h);
        const auto step = [](const Tensor& z, const Tensor& s) {
          const Tensor next = sin(s * 0.5f + z);
          return std::pair{next, next};
        };
        const Tensor xs = zeros({inner, 1});
        const Tensor all =
            has_state ? scan(Scan{.initial = a, .xs = xs, .body = step, .checkpoint = inside}).ys
                      : map([&](const Tensor& z) { return sin(a * 0.5f + z); }, xs,
                            {.checkpoint = inside});
        return std::pair{sum(all, 0), a};
      };
      return sum(
          scan(Scan{.initial = zeros({2, 256}), .xs = x, .body = body, .checkpoint = around}).ys);
    };
    const auto gradient = jit(value_and_grad(f));
    gradient(ones({64, 256}), ones({96, 2, 64}));
    return chunks_in(gradient.graph());
  };
  EXPECT_EQ(chunks(2, {}, {}), (std::vector{48, 48}));
  EXPECT_EQ(chunks(3000, {}, {}), (std::vector{1, 1}));
  const Checkpoint every = Checkpoint::every(2), budget = Checkpoint::budget(1 << 20),
                   again = Checkpoint().where([](const StepValue&) { return Saving::recompute; });
  for (const auto& [inner, state] : {std::pair{2, true}, {40, true}, {2, false}, {40, false}}) {
    has_state = state;
    for (const Checkpoint& around : {Checkpoint(), every, budget, again})
      for (const Checkpoint& inside : {Checkpoint(), every, budget})
        EXPECT_EQ(chunks(inner, around, inside), chunks(inner, {}, {}))
            << inner << " steps inside, " << state << ", " << around.steps() << ' '
            << around.bytes() << ", " << inside.steps() << ' ' << inside.bytes();
  }
}

// Inner loops are chunked before the outer ones, and their lengths are then unknown.
TEST_F(ChunkLoopsTest, AroundLoopsWithNamesToo) {
  const Dim time("time", 200), to("to", 3), inner("inner", 40);
  const auto f = [&](const Tensor& w, const Tensor& x) {
    const auto step = [&](const Tensor& z, const Tensor& s) {
      const Tensor next = tanh(rename(matmul(s, w, in), to, in) + z);
      return std::pair{rename(matmul(next, w, in), to, in), next};
    };
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const auto made = scan(
          Scan{.spatial_dim = inner, .initial = h, .xs = cast(range(inner), f32), .body = step});
      return std::pair{rename(matmul(x, w, in), to, in) + sum(made.ys, inner), made.state};
    };
    return sum(
        scan(Scan{.spatial_dim = time, .initial = zeros({batch, in}), .xs = x, .body = body}).ys);
  };
  const auto jitted = jit(f);
  jitted(zeros({in, to}), zeros({time, batch, in}));
  EXPECT_EQ(chunks_in(jitted.graph()).size(), 1u);
}

TEST_F(ChunkLoopsTest, GiveTheResultsOfTheWholeLoop) {
  for (const int steps : {1, 2, 3, 4, 6, 7}) {
    for (const bool reverse : {false, true})
      expect_same_in_chunks(steps, value_and_grad(named_rnn(reverse)),
                            named_problem(Dim("time", 6)));
    expect_same_in_chunks(steps, value_and_grad(plain_rnn), plain_problem(6));
    expect_same_in_chunks(steps, value_and_grad(plain_rnn), plain_problem(7));
  }
}

TEST_F(ChunkLoopsTest, HaveALastChunkThatIsShorterAlongPlainDimsToo) {
  const Graph* body = nullptr;
  const auto jitted = jit(plain_rnn);
  jitted(plain_problem(7));
  const Ref<Graph> graph = optimise_for_plan(jitted.graph(), {.chunk_steps = 3}).graph;
  for (const OpRecord& record : graph->records)
    if (record.op == &loop_op) body = get<LoopAttrs>(record.attrs.get()).body.graph.get();
  ASSERT_NE(body, nullptr);
  EXPECT_EQ(str(body->types[body->inputs[2]]), "f64[?,2,3]") << str(*graph);
  const auto planned = jit(plain_rnn, {.passes = {.chunk_steps = 3}});
  planned(plain_problem(7));
  EXPECT_NE(planned.explain().find("2 chunks of 3 iterations and one of 1"), std::string::npos)
      << planned.explain();
}

TEST_F(ChunkLoopsTest, OneTraceForAllLengthsAndNone) {
  const auto over_chunks =
      jit(value_and_grad(named_rnn()), {.executor = Executor::plan, .passes = {.chunk_steps = 3}});
  const auto whole = jit(value_and_grad(named_rnn()),
                         {.executor = Executor::plan, .passes = {.chunk_loops = false}});
  for (const int steps : {7, 3, 0, 1, 6, 8}) {
    const Problem problem = named_problem(Dim("time", scalar(steps, i32)));
    expect_close(over_chunks(problem), whole(problem));
  }
  EXPECT_EQ(over_chunks.trace_count(), 1);
}

TEST_F(ChunkLoopsTest, TheInterpreterRunsThemAsTheyAre) {
  for (const Dim& time : {Dim("time", tensor({7, 2}, {batch})), Dim("time", 7)}) {
    const Problem p = named_problem(time);
    const auto all = [&](const Tensors& in) {
      const Problem at{{in[0], in[1], in[2]}, in[3]};
      const auto [value, gradient] = value_and_grad(named_rnn())(at);
      return Tensors{value, gradient.weights.in, gradient.weights.recurrent,
                     mask_padding(gradient.x)};
    };
    const Tensors in{p.weights.in, p.weights.recurrent, p.weights.out, p.x};
    const RecordedGraph recorded =
        record_graph("f", {in[0].type(), in[1].type(), in[2].type(), in[3].type()}, all);
    ASSERT_TRUE(recorded.captured.empty());
    const Ref<Graph> graph = optimise_for_plan(*recorded.graph, {.chunk_steps = 3}).graph;
    EXPECT_NE(str(*graph).find("over_chunks=true"), std::string::npos);
    const Tensors actual = interpret(graph, Tensors(in)), expected = all(in);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expect_all_close(actual[i], expected[i], 1e-12);
  }
}

TEST_F(ChunkLoopsTest, NothingHasAllStepsThatOnlyAChunkNeeds) {
  // x·W of all steps, and its cotangent, from which the gradients of W and of x are made.
  const auto values_of_all_steps = [&](const Passes& passes) {
    const auto jitted = jit(grad(named_rnn()));
    jitted(named_problem(Dim("time", 6)));
    const Ref<Graph> graph = optimise_for_plan(jitted.graph(), passes).graph;
    int count = 0;
    for (const OpRecord& record : graph->records)
      for (const ValueId v : graph->outputs_of(record)) {
        const Dims& dims = graph->types[v].dims();
        count += dims.size() == 3 && dims[0].name() == "time" && dims[2].name() == "unit";
      }
    return count;
  };
  EXPECT_EQ(values_of_all_steps({.chunk_loops = false}), 4);
  EXPECT_EQ(values_of_all_steps({.chunk_steps = 4}), 1);  // h, which the gradient reads
}

TEST_F(ChunkLoopsTest, LoopInvariantValuesAreNotStacked) {
  // The gradient of h times the first half of w reads that half, which is loop-invariant.
  const auto f = [](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensors parts = split(w, 1, 2);
      const Tensor next = tanh(matmul(h, parts[0]) + matmul(x, parts[1]));
      return std::pair{next, next};
    };
    return sum(scan(Scan{.initial = zeros({2, 5}, f64), .xs = x, .body = body}).ys);
  };
  const auto jitted = jit(grad([&](const Tensor& w) { return f(ones({6, 2, 5}, f64), w); }));
  jitted(random_normal({5, 10}, f64));
  const Ref<Graph> graph = optimise_for_plan(jitted.graph(), {.chunk_steps = 2}).graph;
  for (const OpRecord& record : graph->records)
    for (const ValueId v : graph->outputs_of(record))
      EXPECT_FALSE(graph->types[v] == TensorType(f64, {6, 5, 5}));
}

TEST_F(ChunkLoopsTest, ValuesOfCapturesAloneAreComputedOnce) {
  const auto f = [](const Tensor& x, const Tensor& a, const Tensor& b) {
    return scan(Scan{.initial = zeros({2, 3}),
                     .xs = x,
                     .body =
                         [&](const Tensor& x, const Tensor& h) {
                           const Tensor next = tanh(matmul(h + x, matmul(a, b)));
                           return std::pair{matmul(next, a), next};
                         }})
        .ys;
  };
  EXPECT_EQ(ops_in_chunks(2, f, ones({6, 2, 3}), ones({3, 3}), ones({3, 3})),
            "full dot loop{loop{add dot tanh} dot}");
  expect_same_in_chunks(2, f, ones({6, 2, 3}), ones({3, 3}), ones({3, 3}));
}

TEST_F(ChunkLoopsTest, ElementwiseOpsOnXsMoveIntoTheChunks) {
  const auto over = [](const Tensor& xs, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, tanh(matmul(h + x, w))};
    };
    return scan(Scan{.initial = zeros({2, 6}, f64), .xs = xs, .body = body}).state;
  };
  const auto squares = [&](const Tensor& x, const Tensor& y, const Tensor& w) {
    return over(square(x) * y, w);
  };
  manual_seed(4);
  const Tensor x = random_normal({6, 2, 6}, f64), w = random_normal({6, 6}, f64);
  EXPECT_EQ(ops_in_chunks(2, squares, x, x + 1.0, w), "full loop{square mul loop{add dot tanh}}");
  expect_same_in_chunks(2, squares, x, x + 1.0, w);
  // b lies along the last axis, which is as long as the sequence.
  const auto shifted = [&](const Tensor& x, const Tensor& b, const Tensor& w) {
    return over(x * b, w);
  };
  expect_same_in_chunks(2, shifted, x, random_normal({6}, f64), w);
  // A value with other readers exists anyway, so that nothing would be saved.
  const auto twice = [&](const Tensor& x, const Tensor& w) {
    const Tensor y = square(x);
    const Tensor of_y = sum(y);  // first, as in plain_rnn
    return sum(over(y, w)) + of_y;
  };
  EXPECT_EQ(ops_in_chunks(2, twice, x, w), "square sum full loop{loop{add dot tanh}} sum add");
}

TEST_F(ChunkLoopsTest, DrawAndCountStepsAsTheWholeLoopDoes) {
  const auto noisy = [](const Tensor& x) {
    const auto body = [](const Tensor& x, const Tensor& h) {
      const Tensor next = h * 0.5 + x + random_uniform({2, 3}, 0., 1., f64);
      return std::pair{square(next), next};
    };
    return scan(Scan{.initial = zeros({2, 3}, f64), .xs = x, .body = body}).ys;
  };
  const auto counting = [](const Tensor& x) {
    return fori_loop(
        0, 6,
        [&](const Tensor& i, const Tensor& h) { return h * 0.5 + cast(i, f64) * gather(x, i, 0); },
        zeros({2, 3}, f64));
  };
  expect_same_in_chunks(2, noisy, ones({6, 2, 3}, f64));
  expect_same_in_chunks(2, counting, random_normal({6, 2, 3}, f64));
}

TEST_F(ChunkLoopsTest, ErrorsNameTheIterationOfTheWholeLoop) {
  const auto f = [](bool reverse) {
    return [reverse](const Tensor& x, const Tensor& indices) {
      const auto body = [&](const std::pair<Tensor, Tensor>& at, const Tensor& h) {
        const Tensor next = h + gather(at.first, print(at.second), 0);
        return std::pair{next, next};
      };
      return scan(Scan{.initial = zeros({}),
                       .xs = std::pair{x, indices},
                       .body = body,
                       .reverse = reverse,
                       .name = "picks"})
          .ys;
    };
  };
  const auto message = [&](bool reverse) {
    const auto picks = jit(f(reverse), {.executor = Executor::plan, .passes = {.chunk_steps = 2}});
    testing::internal::CaptureStdout();
    std::string result;
    try {
      picks(ones({6, 3}), tensor({0, 1, 2, 9, 0, 1}));
    } catch (const IndexError& error) {
      result = error.message();
    }
    testing::internal::GetCapturedStdout();
    return result;
  };
  EXPECT_TRUE(message(false).ends_with("in iteration 3 of scan \"picks\"")) << message(false);
  EXPECT_TRUE(message(true).ends_with("in iteration 2 of scan \"picks\"")) << message(true);
}

TEST_F(ChunkLoopsTest, ResidualsDoNotChangeTheChunks) {
  // Compares a loop with a stack that is read, and this loop with another stack for a gradient.
  const auto size = [](bool is_saved) {
    const auto f = [](const Tensor& x) {
      const auto body = [](const Tensor& x, const Tensor& h) {
        const Tensor w = full({64, 64}, 0.01), next = tanh(matmul(x, w) + matmul(h, w));
        return std::pair{next, next};
      };
      return sum(square(scan(Scan{.initial = zeros({4, 64}), .xs = x, .body = body}).ys));
    };
    const Tensor x = ones({960, 4, 64});
    const auto sizes = [&](const auto& jitted) {
      jitted(x);
      const std::string text = jitted.explain();
      const std::size_t at = text.find(" chunks of ");
      EXPECT_NE(at, std::string::npos) << text;
      return text.substr(at, 14);
    };
    return is_saved ? sizes(jit(value_and_grad(f))) : sizes(jit(f));
  };
  EXPECT_EQ(size(true), size(false));
}

TEST_F(ChunkLoopsTest, PipelinedLoopsRunInChunksIfNothingIsHoisted) {
  // The product of eight rows by a small matrix stays in the loop.
  const auto layer = [](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(x + h, w));
      return std::pair{next, next};
    };
    return scan(Scan{.initial = zeros({8, 16}), .xs = x, .body = body}).ys;
  };
  const Tensor x = ones({640, 8, 16}), w = full({16, 16}, 0.05);
  const auto one = [&](const Tensor& w) { return layer(x, w); };
  const auto two = [&](const Tensor& w) { return layer(layer(x, w), w); };
  const auto two_ways = [&](const Tensor& w) {
    const Tensor first = layer(x, w);
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(x + h, w));
      return std::pair{next, next};
    };
    return scan(Scan{.initial = zeros({8, 16}), .xs = first, .body = body, .reverse = true}).ys;
  };
  const auto explained = [&](const auto& f) {
    const auto jitted = jit(f, {.executor = Executor::plan});
    expect_all_close(jitted(w), f(w), 1e-5);
    return jitted.explain();
  };
  EXPECT_EQ(explained(one).find("chunks of"), std::string::npos);
  EXPECT_NE(explained(two).find("beside loop 1"), std::string::npos) << explained(two);
  EXPECT_EQ(explained(two_ways).find("chunks of"), std::string::npos);
}

}  // namespace
}  // namespace reel
