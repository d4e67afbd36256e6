// The dataflow executor gives the interpreter's bits with any number of iterations in flight and on
// any number of threads.
#include <limits>
#include <optional>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/many_threads.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"

namespace reel {
namespace {

/// Runs f(args...) in the dataflow executor with 1 to 100 iterations in flight (case Q01), twice
/// each: on one thread, on two, and on three that are called for every op.
template <class F, class... Args>
void expect_bits_of_the_interpreter(const F& f, const Args&... args) {
  manual_seed(7);
  const TreeLeaves expected = flatten(jit(f, {.executor = Executor::interpreter})(args...));
  for (const int count : {1, 2, 3}) {
    const Threads threads(count);
    std::optional<OnManyThreads> all_called;
    if (count == 3) all_called.emplace();
    const auto bounds = all_called ? std::vector{2, 32} : std::vector{1, 2, 3, 10, 32, 100};
    for (const int bound : bounds) {
      SCOPED_TRACE(str(bound, " iterations in flight on ", count, " threads"));
      const auto by_tokens = jit(f, {.executor = Executor::dataflow, .parallel_iterations = bound});
      for (int call = 0; call < 2; ++call) {
        manual_seed(7);
        const TreeLeaves actual = flatten(by_tokens(args...));
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          if (expected[i].kind == TreeLeaf::Kind::tensor)
            expect_same_bits(actual[i].tensor, expected[i].tensor);
      }
    }
  }
}

const Dim batch("batch", 3), in("in", 4), hidden("hidden", 5), next("next", 5);

struct Rnn {
  Tensor input, recurrent;
};
Rnn some_rnn() {
  manual_seed(1);
  return {random_normal({in, next}), random_normal({hidden, next})};
}
Tensor step(const Rnn& rnn, const Tensor& x, const Tensor& h) {
  return rename(tanh(matmul(x, rnn.input, in) + matmul(h, rnn.recurrent, hidden)), next, hidden);
}

TEST(DataflowBitsTest, GradientsOfRaggedSequencesForwardsAndBackwards) {
  for (const bool reverse : {false, true}) {
    const auto loss = [=](const Rnn& rnn, const Tensor& x) -> Tensor {
      const auto result = scan(Scan{.spatial_dim = x.dim("time"),
                                    .initial = zeros({batch, hidden}),
                                    .xs = x,
                                    .body =
                                        [&](const Tensor& x, const Tensor& h) {
                                          const Tensor h_next = step(rnn, x, h);
                                          return std::pair{h_next, h_next};
                                        },
                                    .reverse = reverse});
      return mean(square(result.ys), {batch, x.dim("time"), hidden}) + sum(result.state);
    };
    const Dim time("time", tensor({5, 0, 3}, {batch}));
    expect_bits_of_the_interpreter(value_and_grad(loss), some_rnn(),
                                   random_normal({batch, time, in}));
  }
}

TEST(DataflowBitsTest, EntriesThatFinishByAConditionHaveTheBitsOfThePlan) {
  const auto f = [](const Tensor& limit) {
    return value_and_grad([&](const Tensor& start) {
      const auto [ys, state, dim] = scan(Scan{.cond_dims = Dims{batch},
                                              .initial = start,
                                              .cond = [&](const Tensor& s) { return s < limit; },
                                              .body =
                                                  [](const Tensor& s) {
                                                    return std::pair{s * s, s * 1.5f};
                                                  },
                                              .max_seq_len = 6});
      return sum(ys) + sum(state);
    })(ones({batch}));
  };
  expect_bits_of_the_interpreter(f, tensor({2.f, 0.5f, 100.f}, {batch}));
}

TEST(DataflowBitsTest, LoopsInLoopsBehindBranchesAndTheirSecondGradients) {
  const auto f = [](const Tensor& x) {
    const auto inner = [](const Tensor& v, const Tensor& limit) {
      return while_loop([&](const Tensor& y) { return y < limit; },
                        [](const Tensor& y) { return y * 1.25f + 0.1f; }, v);
    };
    return std::get<1>(while_loop([](const Tensor& i, const Tensor&) { return i < 7; },
                                  [&](const Tensor& i, const Tensor& v) {
                                    const Tensor w = cond(
                                        i % 2 == 0, [&] { return inner(v, v * 3.f) / 3.f; },
                                        [&] { return sin(v) + x; });
                                    return std::tuple{i + 1, w};
                                  },
                                  std::tuple{scalar(0), x}));
  };
  expect_bits_of_the_interpreter(f, scalar(0.7f));
  expect_bits_of_the_interpreter(grad(f), scalar(0.7f));
  expect_bits_of_the_interpreter(grad(grad(f)), scalar(0.7f));
}

TEST(DataflowBitsTest, RandomNumbersDrawnInBodies) {
  const auto f = [](const Tensor& x) {
    const auto noisy = [&](const Tensor& x) {
      const auto body = [](const Tensor& x, const Tensor& h) {
        const Tensor h_next = tanh(h + x * random_normal({3}));
        return std::pair{dropout(h_next, 0.5), h_next};
      };
      return sum(scan(Scan{.initial = zeros({3}), .xs = x, .body = body}).ys) +
             sum(random_uniform({2}));
    };
    return value_and_grad(noisy)(x);
  };
  expect_bits_of_the_interpreter(f, ones({6, 3}));
}

TEST(DataflowBitsTest, HistoriesThatGrow) {
  struct History {
    Tensor frames;
    Dim hist;
  };
  const auto f = [](const Tensor& x) {
    return value_and_grad([](const Tensor& x) {
      const Dim none("hist", 0);
      const auto result =
          scan(Scan{.spatial_dim = x.dim("time"),
                    .initial = History{zeros({batch, none, in}), none},
                    .xs = x,
                    .body = [](const Tensor& x, const History& s) {
                      const auto [frames, hist] = cum_concat(x, s.frames, s.hist);
                      const Tensor weights = softmax(matmul(frames, x, in), hist);
                      return std::pair{matmul(weights, frames, hist), History{frames, hist}};
                    }});
      return sum(square(result.ys));
    })(x);
  };
  const Dim time("time", 5);
  manual_seed(3);
  expect_bits_of_the_interpreter(f, random_normal({batch, time, in}));
}

TEST(DataflowBitsTest, ArraysThatAreReadAndWritten) {
  const auto f = [](const Tensor& x) {
    return value_and_grad([](const Tensor& x) {
      const TensorArray in = TensorArray::unstack(x, 0);
      const auto [i, s, out] =
          while_loop([](const Tensor& i, const Tensor&, const TensorArray&) { return i < 6; },
                     [&](const Tensor& i, const Tensor& s, const TensorArray& out) {
                       const Tensor y = s * in.read(i % 4) + 0.5f;
                       return std::tuple{i + 1, y, out.push_back(y)};
                     },
                     std::tuple{scalar(0), ones({2}), TensorArray{TensorType(f32, {2})}});
      return sum(square(out.stack())) + sum(s);
    })(x);
  };
  manual_seed(4);
  expect_bits_of_the_interpreter(f, random_normal({4, 2}));
}

TEST(DataflowBitsTest, CheckpointPoliciesHaveTheBitsOfTheInterpreter) {
  for (const Checkpoint& policy : {Checkpoint::every(3), Checkpoint::budget(64)}) {
    const auto loss = [&](const Rnn& rnn, const Tensor& x) -> Tensor {
      return sum(scan(Scan{.spatial_dim = x.dim("time"),
                           .initial = zeros({batch, hidden}),
                           .xs = x,
                           .body =
                               [&](const Tensor& x, const Tensor& h) {
                                 const Tensor h_next = step(rnn, x, h);
                                 return std::pair{sum(square(h_next)), h_next};
                               },
                           .checkpoint = policy})
                     .ys);
    };
    const Dim time("time", 8);
    expect_bits_of_the_interpreter(value_and_grad(loss), some_rnn(),
                                   random_normal({batch, time, in}));
  }
}

// Two gradient loops read the residuals of one loop at the same time.
TEST(DataflowBitsTest, TwoPullbacksOfOneLoopUnderAPolicy) {
  const Dim time("time", 400);
  struct Policy {
    Checkpoint checkpoint;
    SwapMemory swap = {};
  };
  const Policy policies[] = {{Checkpoint::every(7)},
                             {Checkpoint::budget(600)},
                             {{}, Spill{.bytes_in_memory = 1}},
                             {Checkpoint::every(7), Spill{.bytes_in_memory = 1}}};
  for (const Policy& policy : policies) {
    const auto both = [&](const Rnn& rnn, const Tensor& x) {
      const auto [ys, pullback] = vjp(
          [&](const Rnn& rnn) {
            const auto body = [&](const Tensor& x, const Tensor& h) {
              const Tensor next = step(rnn, x, h);
              return std::pair{next, next};
            };
            return scan(Scan{.spatial_dim = x.dim("time"),
                             .initial = zeros({batch, hidden}),
                             .xs = x,
                             .body = body,
                             .checkpoint = policy.checkpoint,
                             .swap_memory = policy.swap})
                .ys;
          },
          rnn);
      return std::pair{pullback(ys), pullback(sin(ys))};
    };
    expect_bits_of_the_interpreter(both, some_rnn(), random_normal({batch, time, in}));
  }
}

// ---- Ops that run at the same time --------------------------------------------------------------

/// The pipeline of bench/dataflow_bench.cpp: a product of one iteration and another product of the
/// iteration before can run at the same time, and take long enough to do so.
struct Pipeline {
  Tensor a, b, w, v;
};
Pipeline some_pipeline() {
  manual_seed(1);
  return {random_normal({192, 256}), random_normal({192, 256}), random_normal({256, 256}) / 16,
          random_normal({256, 256}) / 16};
}
Tensor run_pipeline(const Pipeline& of) {
  return std::get<2>(while_loop([](Tensor i, Tensor, Tensor) { return i < 5; },
                                [&](Tensor i, Tensor a, Tensor b) {
                                  a = tanh(matmul(a, of.w));
                                  b = tanh(matmul(b + a, of.v));
                                  return std::tuple{i + 1, a, b};
                                },
                                std::tuple{scalar(0), of.a, of.b}));
}
Tensor loss_of_pipeline(const Pipeline& of) { return sum(square(run_pipeline(of))); }

TEST(DataflowBitsTest, APipelineWhoseOpsOverlap) {
  expect_bits_of_the_interpreter(run_pipeline, some_pipeline());
}

TEST(DataflowBitsTest, TheGradientOfAPipelineWhoseOpsOverlap) {
  expect_bits_of_the_interpreter(value_and_grad(loss_of_pipeline), some_pipeline());
}

/// True if two products of different iterations ran at the same time on two threads.
bool products_overlap(const RecordedRun& run) {
  std::vector<Activation> products;
  for (const Activation& at : run.activations)
    if (const Op* op = run.graph->nodes[static_cast<std::size_t>(at.node)].op;
        op && op->name == "dot" && !at.is_dead)
      products.push_back(at);
  const auto overlap = [](const Activation& a, const Activation& b) {
    return a.thread != b.thread && a.iteration != b.iteration && a.begin < b.end && b.begin < a.end;
  };
  for (const Activation& a : products)
    for (const Activation& b : products)
      if (overlap(a, b)) return true;
  return false;
}

// The tests of bits above rely on this overlap. A busy machine may keep the other thread away from
// a run. The test therefore repeats runs until one overlaps, or until CTest ends it.
TEST(DataflowBitsTest, ProductsOfAPipelineOverlapOnTwoThreads) {
  const Pipeline pipeline = some_pipeline();
  constexpr int kMaxRuns = std::numeric_limits<int>::max();
  const auto overlap_within = [&](int runs, const auto& f) {
    const auto by_tokens =
        jit(f, {.executor = Executor::dataflow, .profile = true, .parallel_iterations = 10});
    for (; runs > 0; --runs) {
      by_tokens(pipeline);
      const auto record = last_recorded_run(by_tokens.graph());
      for (const Activation& at : record->activations) {
        EXPECT_GE(at.thread, 0);
        EXPECT_LT(at.thread, threads());
      }
      if (products_overlap(*record)) return true;
    }
    return false;
  };
  {
    const Threads two(2);
    EXPECT_TRUE(overlap_within(kMaxRuns, run_pipeline));
    EXPECT_TRUE(overlap_within(kMaxRuns, value_and_grad(loss_of_pipeline)));
  }
  const Threads one(1);
  EXPECT_FALSE(overlap_within(20, run_pipeline));
}

TEST(DataflowBitsTest, NoIterationNoEntryAndNaN) {
  const auto loss = [](const Rnn& rnn, const Tensor& x) -> Tensor {
    return sum(scan(Scan{.spatial_dim = x.dim("time"),
                         .initial = zeros({x.dim("batch"), hidden}),
                         .xs = x,
                         .body =
                             [&](const Tensor& x, const Tensor& h) {
                               const Tensor h_next = step(rnn, x, h);
                               return std::pair{h_next, h_next};
                             }})
                   .ys);
  };
  const Dim none("batch", 0);
  expect_bits_of_the_interpreter(value_and_grad(loss), some_rnn(),
                                 zeros({Dim("batch", 2), Dim("time", 0), in}));
  expect_bits_of_the_interpreter(value_and_grad(loss), some_rnn(),
                                 zeros({none, Dim("time", zeros({none}, i32)), in}));
  expect_bits_of_the_interpreter(value_and_grad(loss), some_rnn(),
                                 full({Dim("batch", 2), Dim("time", 4), in}, std::nan("")));
}

TEST(DataflowBitsTest, AHundredThousandIterations) {
  const auto f = [](const Tensor& n) {
    return while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                      [](const Tensor& i, const Tensor& s) {
                        return std::tuple{i + 1, s + cast(i, f32) * 0.001f};
                      },
                      std::tuple{scalar(0), scalar(0.f)});
  };
  const auto expected = jit(f, {.executor = Executor::interpreter})(scalar(100'000));
  const auto actual = jit(f, {.executor = Executor::dataflow})(scalar(100'000));
  expect_same_bits(std::get<1>(actual), std::get<1>(expected));
}

}  // namespace
}  // namespace reel
