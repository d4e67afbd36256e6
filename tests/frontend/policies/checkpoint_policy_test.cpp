// Checkpoint: gradients of loops with checkpoints have the same bits as gradients of loops that
// save all residuals.
#include <gtest/gtest.h>

#include "reel/core/ops/loop/loop.h"
#include "reel/tests/frontend/policies/policies.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

class CheckpointPolicyTest : public UnderPolicies {
 protected:
  struct Problem {
    Tensor in, recurrent, x;
  };
  static Problem problem(int steps) {
    manual_seed(2);
    return {random_normal({3, 4}, f64) * 0.5, random_normal({4, 4}, f64) * 0.5,
            random_normal({steps, 2, 3}, f64)};
  }
};

TEST_P(CheckpointPolicyTest, ScansInBothDirectionsHaveTheSameGradients) {
  for (const bool reverse : {false, true}) {
    const auto make = [&](const Checkpoint& policy) {
      return [policy, reverse](const Problem& p) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor next = tanh(matmul(x, p.in) + matmul(h, p.recurrent));
          return std::pair{square(next), next};
        };
        const auto made = scan(Scan{.initial = zeros({2, 4}, f64),
                                    .xs = p.x,
                                    .body = body,
                                    .reverse = reverse,
                                    .checkpoint = policy});
        return sum(made.ys) + sum(made.state);
      };
    };
    for (const int steps : {0, 1, 2, 12}) expect_same_gradients(make, problem(steps));
  }
}

TEST_P(CheckpointPolicyTest, OneTensorAsStateXsAndYsHasTheSameGradients) {
  // In f32, the order in which the three cotangents are added shows.
  for (int i = 0; i < 8; ++i) {
    const auto make = [](const Checkpoint& policy) {
      return [policy](const Tensor& x, const Tensor& y) {
        const auto body = [](const Tensor& x, const std::pair<Tensor, Tensor>& s) {
          return std::pair{x, std::pair{s.first * x, s.second + x}};
        };
        const auto made =
            scan(Scan{.initial = std::pair{x, y}, .xs = x, .body = body, .checkpoint = policy});
        return sum(made.ys) + sum(sin(made.state.first)) + sin(made.state.second);
      };
    };
    expect_same_gradients(make, full({1}, -0.37 - 0.01 * i, f32), scalar(1.75, f32));
  }
}

TEST_P(CheckpointPolicyTest, RaggedScansHaveTheSameGradients) {
  const Dim batch("batch", 3), in("in", 2), unit("unit", 2);
  const Dim time("time", tensor({5, 0, 3}, {batch}));
  manual_seed(4);
  const Tensor x = random_normal({time, batch, in}, f64), w = random_normal({in, unit}, f64);
  for (const bool reverse : {false, true}) {
    const auto make = [&, reverse](const Checkpoint& policy) {
      return [&, policy, reverse](const std::pair<Tensor, Tensor>& p) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor next = tanh(matmul(x, p.second, in) + h * 0.5);
          return std::pair{next, next};
        };
        const auto made = scan(Scan{.spatial_dim = p.first.dim("time"),
                                    .initial = ones({batch, unit}, f64),
                                    .xs = p.first,
                                    .body = body,
                                    .reverse = reverse,
                                    .checkpoint = policy});
        return sum(square(made.ys)) + sum(made.state);
      };
    };
    expect_same_gradients(make, std::pair{x, w});
  }
}

TEST_P(CheckpointPolicyTest, LoopsOfUnknownLengthHaveTheSameGradients) {
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Tensor& w) {
      const auto cond = [](const std::pair<Tensor, Tensor>& s) { return sum(s.first) < 40.0; };
      const auto body = [&](const std::pair<Tensor, Tensor>& s) {
        const Tensor next = s.first * w + 0.3;
        return std::pair{next, s.second + sum(sin(next))};
      };
      const auto last = while_loop(cond, body, std::pair{ones({3}, f64), scalar(0.0, f64)},
                                   {.checkpoint = policy});
      return sum(last.first) + sum(last.second);
    };
  };
  expect_same_gradients(make, tensor({1.01, 1.02, 1.03}, {}, f64));
}

TEST_P(CheckpointPolicyTest, ScansThatFinishByAConditionHaveTheSameGradients) {
  const Dim batch("batch", 3);
  const auto make = [&](const Checkpoint& policy) {
    return [&batch, policy](const Tensor& w) {
      const auto body = [&](const Tensor& h) {
        const Tensor next = h * w + 0.1;
        return std::pair{next, next};
      };
      const auto made = scan(Scan{.spatial_dim = Dim("steps"),
                                  .cond_dims = {batch},
                                  .initial = w * 0.5,
                                  .cond = [](const Tensor& h) { return h < 2.0; },
                                  .body = body,
                                  .max_seq_len = 20,
                                  .checkpoint = policy});
      return sum(square(made.ys)) + sum(made.state);
    };
  };
  expect_same_gradients(make, tensor({1.1, 1.3, 1.7}, {batch}, f64));
}

TEST_P(CheckpointPolicyTest, NestedLoopsHaveTheSameGradients) {
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Problem& p) {
      const auto inner = [&](const Tensor& h) {
        const auto step = [&](const Tensor& h) { return tanh(matmul(h, p.recurrent)); };
        const auto body = [&](const std::pair<Tensor, Tensor>& s) {
          return std::pair{s.first + 1, step(s.second)};
        };
        return while_loop([](const std::pair<Tensor, Tensor>& s) { return s.first < 5; }, body,
                          std::pair{scalar(0, i32), h}, {.checkpoint = policy})
            .second;
      };
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = inner(h + matmul(x, p.in));
        return std::pair{next, next};
      };
      return sum(square(
          scan(Scan{.initial = zeros({2, 4}, f64), .xs = p.x, .body = body, .checkpoint = policy})
              .ys));
    };
  };
  expect_same_gradients(make, problem(6));
}

TEST_P(CheckpointPolicyTest, TwoLayersOnTwoThreadsHaveTheSameGradients) {
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Problem& p) {
      using State = std::pair<Tensor, Tensor>;
      const auto body = [&](const Tensor& x, const State& s) {
        const Tensor lower = tanh(matmul(x, p.in) + matmul(s.first, p.recurrent)),
                     upper = tanh(lower + matmul(s.second, p.recurrent));
        return std::pair{upper, State{lower, upper}};
      };
      return sum(square(scan(Scan{.initial = State{zeros({2, 4}, f64), zeros({2, 4}, f64)},
                                  .xs = p.x,
                                  .body = body,
                                  .checkpoint = policy})
                            .ys));
    };
  };
  const int before = threads();
  set_threads(2);
  expect_same_gradients(make, problem(24));
  set_threads(before);
}

TEST_P(CheckpointPolicyTest, BodiesThatDrawHaveTheSameGradients) {
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Problem& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor noise = random_uniform({2, 4}, 0.5, 1.5, f64);
        const Tensor next = tanh(matmul(x, p.in) + matmul(h, p.recurrent)) * noise;
        return std::pair{next, next};
      };
      return sum(square(
          scan(Scan{.initial = zeros({2, 4}, f64), .xs = p.x, .body = body, .checkpoint = policy})
              .ys));
    };
  };
  expect_same_gradients(make, problem(10));
}

TEST_P(CheckpointPolicyTest, GrowingArraysHaveTheSameGradients) {
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Tensor& x) {
      const auto body = [&](const Tensor& x, const std::pair<TensorArray, Tensor>& s) {
        TensorArray seen = s.first.push_back(s.second * x);
        const Tensor next = s.second + sum(seen.stack()) * 0.1;
        return std::pair{next, std::pair{seen, next}};
      };
      const auto made =
          scan(Scan{.initial = std::pair{TensorArray(TensorType(f64)), scalar(0.5, f64)},
                    .xs = x,
                    .body = body,
                    .checkpoint = policy});
      return sum(square(made.ys)) + sum(made.state.first.stack());
    };
  };
  expect_same_gradients(make, tensor({0.3, -0.2, 0.7, 0.1, 0.4}, {}, f64));
}

TEST_P(CheckpointPolicyTest, SecondGradientsAreThoseWithoutAPolicy) {
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Problem& p) {
      const auto f = [&](const Tensor& w) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor next = tanh(matmul(x, p.in) + matmul(h, w));
          return std::pair{next, next};
        };
        return sum(square(
            scan(Scan{.initial = zeros({2, 4}, f64), .xs = p.x, .body = body, .checkpoint = policy})
                .ys));
      };
      return sum(square(grad(f)(p.recurrent)));
    };
  };
  manual_seed(1);
  const Problem p = problem(7);
  const auto expected = run(value_and_grad(make({})))(p);
  for (const Checkpoint& policy : policies()) {
    SCOPED_TRACE(text_of(policy));
    const auto actual = run(value_and_grad(make(policy)))(p);
    expect_all_close(actual.first, expected.first, 1e-12);
    expect_all_close(actual.second.recurrent, expected.second.recurrent, 1e-11);
    expect_all_close(actual.second.in, expected.second.in, 1e-11);
    expect_all_close(actual.second.x, expected.second.x, 1e-11);
  }
}

TEST_P(CheckpointPolicyTest, ARuleChoosesByOpAndName) {
  const auto make = [](const Checkpoint& policy) {
    return [policy](const Problem& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor gates = checkpoint_name(matmul(x, p.in) + matmul(h, p.recurrent), "gates");
        const Tensor next = tanh(gates) * exp(-square(gates));
        return std::pair{next, next};
      };
      return sum(square(
          scan(Scan{.initial = zeros({2, 4}, f64), .xs = p.x, .body = body, .checkpoint = policy})
              .ys));
    };
  };
  const Problem p = problem(10);
  const auto expected = run(value_and_grad(make({})))(p);
  const std::vector<SavingRule> rules{
      [](const StepValue&) { return Saving::by_default; },
      [](const StepValue&) { return Saving::keep; },
      [](const StepValue&) { return Saving::recompute; },
      [](const StepValue&) { return Saving::spill; },
      [](const StepValue& v) { return v.name == "gates" ? Saving::keep : Saving::recompute; },
      [](const StepValue& v) { return v.op == "dot" ? Saving::spill : Saving::by_default; }};
  SmallSpillBlocks blocks;
  for (const SavingRule& rule : rules)
    for (const Checkpoint& over_time :
         {Checkpoint(), Checkpoint::every(4), Checkpoint::budget(2000)}) {
      SCOPED_TRACE(str("rule ", &rule - rules.data(), ", ", text_of(over_time)));
      const auto actual = run(value_and_grad(make(over_time.where(rule))))(p);
      expect_same_bits(actual.first, expected.first);
      expect_same_bits(actual.second.in, expected.second.in);
      expect_same_bits(actual.second.recurrent, expected.second.recurrent);
      expect_same_bits(actual.second.x, expected.second.x);
      const auto place = &rule - rules.data();
      const bool spills = place == 3 || place == 5;
      // Recomputed iterations stay in memory. A plan has all of these in one chunk, which is one
      // block.
      if (spills && !over_time.steps() && !over_time.bytes() && GetParam() != RunMode::plan) {
        EXPECT_GT(blocks.written(), 0);
      }
    }
}

TEST_P(CheckpointPolicyTest, RecomputedBodiesPrintOnce) {
  const auto f = run(value_and_grad([](const Tensor& x) {
    const auto body = [](const Tensor& x, const Tensor& h) {
      const Tensor next = print(h * x, "h");
      return std::pair{next, sin(next)};
    };
    return sum(scan(Scan{.initial = scalar(0.5, f64),
                         .xs = x,
                         .body = body,
                         .checkpoint = Checkpoint::every(2)})
                   .ys);
  }));
  testing::internal::CaptureStdout();
  f(ones({5}, f64));
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
}

TEST_P(CheckpointPolicyTest, AnErrorInAStepIsThatOfTheStep) {
  const auto f = run(value_and_grad([](const std::pair<Tensor, Tensor>& p) {
    const auto body = [&](const Tensor& i, const Tensor& h) {
      const Tensor next = h + gather(p.first, i, 0);
      return std::pair{next, next};
    };
    return sum(scan(Scan{.initial = scalar(0.0, f64),
                         .xs = p.second,
                         .body = body,
                         .checkpoint = Checkpoint::every(2),
                         .name = "picks"})
                   .ys);
  }));
  const Tensor x = ones({4}, f64);
  EXPECT_TRUE(message_of<IndexError>([&] {
                return f(std::pair{x, tensor({0, 1, 2, 9, 0, 1})});
              }).ends_with("in iteration 3 of scan \"picks\""));
  EXPECT_EQ(f(std::pair{x, tensor({0, 1, 2, 3})}).first.item<double>(), 10);
}

// A decoder that attends to the frames of an encoder, with lengths over the argument's batch.
TEST_P(CheckpointPolicyTest, ABodyThatReadsACapturedDimOverTheBatch) {
  const Dim batch("batch", 3), time("time", 9), in("in", 4),
      frames("frames", tensor({4, 0, 2}, {batch}));
  manual_seed(5);
  const Tensor x = random_normal({time, batch, in}, f64),
               c = random_normal({frames, batch, in}, f64);
  const auto make = [&](const Checkpoint& policy) {
    return [&, policy](const Tensor& x) {
      const auto body = [&](const Tensor& x, const Tensor& s) {
        const Tensor next = tanh(s * 0.5 + x);
        return std::pair{square(sum(matmul(c, next, in), frames)), next};
      };
      return sum(scan(Scan{.spatial_dim = time,
                           .initial = zeros({batch, in}, f64),
                           .xs = x,
                           .body = body,
                           .checkpoint = policy})
                     .ys);
    };
  };
  expect_same_gradients(make, x);
  const auto planned = jit(grad(make(Checkpoint::every(2))));
  planned(x);
  EXPECT_EQ(planned.explain().find("its plan failed"), std::string::npos);
}

// The dim of a captured tensor, with lengths over the entries, is an attribute of ops in the body.
TEST_P(CheckpointPolicyTest, ShiftsOfACapturedTensorMayMeetFinishedEntries) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor history = tensor({1, 2, 3, 4}, {time, batch}, f64);
  const auto make = [&](const Checkpoint& policy) {
    return [&, policy](const Tensor& w) {
      const auto body = [&](const Tensor& s) {
        const Tensor moved = shift(shift(history, time, 0, 1.0), time, -1, 0.5);
        return std::pair{None{}, tanh(s * w + sum(moved, time))};
      };
      const auto cond = [&](const Tensor& s) { return s < 0.9; };
      return sum(scan(Scan{.spatial_dim = Dim("steps"),
                           .cond_dims = {batch},
                           .initial = zeros({batch}, f64),
                           .cond = cond,
                           .body = body,
                           .max_seq_len = scalar(3),
                           .checkpoint = policy})
                     .state);
    };
  };
  expect_same_gradients(make, scalar(0.3, f64));
}

// The inner loop's policy saves few of its residuals; the outer loop saves these, and few of its
// own.
TEST_P(CheckpointPolicyTest, ABodyThatTakesAGradientUnderAPolicy) {
  const Tensor x = random_normal({5, 2, 4}, f64), w = random_normal({4, 4}, f64) * 0.3;
  const auto f = [&](const Checkpoint& inner, const Checkpoint& outer, bool swaps) {
    return run(grad([&, inner, outer, swaps](const Tensor& w) {
      const auto inside = [&](const Tensor& z) {
        const auto step = [&](const Tensor& k, const Tensor& s) {
          return std::pair{None{}, tanh(matmul(s, w) * k)};
        };
        return sum(scan(Scan{.initial = z, .xs = ones({3}, f64), .body = step, .checkpoint = inner})
                       .state);
      };
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(grad(inside)(h) + x)};
      };
      return sum(scan(Scan{.initial = ones({2, 4}, f64),
                           .xs = x,
                           .body = body,
                           .checkpoint = outer,
                           .swap_memory = swaps})
                     .state);
    }))(w);
  };
  const Tensor expected = f({}, {}, false);
  for (const Checkpoint& inner : {Checkpoint::every(2), Checkpoint::budget(100)})
    for (const Checkpoint& outer : {Checkpoint(), Checkpoint::every(2), Checkpoint::budget(500)})
      for (const bool swaps : {false, true})
        expect_all_close(f(inner, outer, swaps), expected, 1e-12);
}

REEL_IN_EVERY_MODE(CheckpointPolicyTest);

/// Returns the ops of the residuals that a loop stacks under a rule.
std::vector<std::string> saved_under(const SavingRule& rule) {
  const auto f = jit(grad([&](const Tensor& w) {
                       const auto body = [&](const Tensor& x, const Tensor& h) {
                         const Tensor gates = checkpoint_name(matmul(h, w) + x, "gates");
                         const Tensor next = tanh(gates) * exp(-square(gates));
                         return std::pair{None{}, next};
                       };
                       return sum(scan(Scan{.initial = zeros({2, 4}, f64),
                                            .xs = ones({6, 2, 4}, f64),
                                            .body = body,
                                            .checkpoint = Checkpoint().where(rule)})
                                      .state);
                     }),
                     {.executor = Executor::interpreter});
  f(full({4, 4}, 0.1, f64));
  std::vector<std::string> result;
  for (const OpRecord& record : f.graph().records) {
    if (record.op != &loop_op || get<LoopAttrs>(record.attrs.get()).is_gradient_loop) continue;
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    const Graph& body = *attrs.body.graph;
    for (const ValueId v : body_outputs(attrs).stacks) {
      std::string made = "carry";
      for (const OpRecord& of : body.records)
        for (const ValueId out : body.outputs_of(of))
          if (out == v) made = of.op->name;
      result.push_back(made);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(CheckpointRuleTest, ARuleChoosesTheStackedValues) {
  using Names = std::vector<std::string>;
  // Two ops read the gates; by default a result computed from the gates is saved instead.
  EXPECT_EQ(saved_under([](const StepValue& v) {
              return v.name == "gates" ? Saving::keep : Saving::by_default;
            }),
            (Names{"carry", "checkpoint_name"}));
  EXPECT_EQ(saved_under([](const StepValue&) { return Saving::recompute; }), (Names{"carry"}));
  EXPECT_EQ(saved_under([](const StepValue& v) {
              return v.op == "dot" ? Saving::keep : Saving::recompute;
            }),
            (Names{"carry", "dot"}));
}

TEST(CheckpointErrorsTest, PoliciesRefuseZeroStepsAndNegativeBytes) {
  EXPECT_EQ(message_of<ArgumentError>([] { return Checkpoint::every(0); }),
            "Checkpoint::every: got 0 steps; give at least 1");
  EXPECT_EQ(message_of<ArgumentError>([] { return Checkpoint::budget(-1); }),
            "Checkpoint::budget: got -1 bytes; give at least 1");
}

}  // namespace
}  // namespace reel
