// checkpoint(f): the same gradient as f, without residuals of f.
#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class CheckpointedTest : public InEveryMode {};

/// Three layers that draw random numbers, each with its own matrix or all with the same.
struct Layers {
  std::vector<Tensor> w;
  Tensor x;
};
Layers layers(std::size_t matrices) {
  manual_seed(5);
  Layers at;
  for (std::size_t i = 0; i < matrices; ++i) at.w.push_back(random_normal({3, 3}, f64));
  at.x = random_normal({2, 3}, f64);
  return at;
}
auto loss_of_layers(bool is_checkpointed) {
  return [is_checkpointed](const Layers& at) {
    const auto layer = [](const Tensor& w, const Tensor& h) {
      const Tensor noise = random_uniform({2, 3}, 0.5, 1.5, f64);
      return std::pair{tanh(matmul(h, w)) * noise, exp(h) * random_normal({2, 3}, f64)};
    };
    Tensor h = at.x, loss = scalar(0.0, f64);
    for (std::size_t i = 0; i < 3; ++i) {
      const Tensor& w = at.w[i % at.w.size()];
      const auto [next, beside] = is_checkpointed ? checkpoint(layer)(w, h) : layer(w, h);
      loss = loss + sum(beside);
      h = next;
    }
    return loss + sum(square(h)) * random_uniform({}, 0, 1, f64);
  };
}

TEST_P(CheckpointedTest, UnsharedArgumentsAndDrawsHaveTheSameBits) {
  const Layers at = layers(3);
  const auto f = [&](bool is_checkpointed) {
    manual_seed(7);
    return run(value_and_grad(loss_of_layers(is_checkpointed)))(at);
  };
  const auto a = f(true), b = f(false);
  expect_all_close(a.first, b.first, is_exact() ? 0 : 1e-14);
  for (std::size_t i = 0; i < 3; ++i)
    expect_all_close(a.second.w[i], b.second.w[i], is_exact() ? 0 : 1e-14);
  expect_all_close(a.second.x, b.second.x, is_exact() ? 0 : 1e-14);
}

// A scope of its own, as a loop or branch has, would draw other numbers.
TEST_P(CheckpointedTest, DrawsAreThoseOfTheScopeAroundIt) {
  const auto draw = [](const Tensor& x) { return x * random_normal({3}, f64); };
  const auto f = [&](bool is_checkpointed) {
    manual_seed(3);
    return run(value_and_grad([&, is_checkpointed](const Tensor& x) {
      const auto drawing = [&](const Tensor& x) {
        return is_checkpointed ? checkpoint(draw)(x) : draw(x);
      };
      const auto in_loop = fori_loop(
          0, 3, [&](const Tensor&, const Tensor& h) { return drawing(h); }, drawing(x));
      const auto in_branch = cond(
          sum(x) > 0.0, [&] { return drawing(x); }, [&] { return x; });
      return sum(in_loop) + sum(in_branch) + sum(random_normal({3}, f64));
    }))(ones({3}, f64));
  };
  const auto a = f(true), b = f(false);
  expect_all_close(a.first, b.first, is_exact() ? 0 : 1e-14);
  expect_all_close(a.second, b.second, 1e-14);
}

TEST_P(CheckpointedTest, SharedArgumentHasCloseGradientsOfAnyOrder) {
  const Layers at = layers(1);
  const auto f = [&](bool is_checkpointed) {
    manual_seed(7);
    return run(value_and_grad(loss_of_layers(is_checkpointed)))(at);
  };
  const auto a = f(true), b = f(false);
  expect_all_close(a.second.w[0], b.second.w[0], 1e-13);
  const auto second = [&](bool is_checkpointed) {
    manual_seed(7);
    const auto loss = loss_of_layers(is_checkpointed);
    return run(grad([loss, x = at.x](const Tensor& w) {
      return sum(square(grad([&](const Tensor& w) { return loss(Layers{{w}, x}); })(w)));
    }))(at.w[0]);
  };
  expect_all_close(second(true), second(false), 1e-11);
}

// In a trace the argument and the capture are one value, and its cotangents must be added in one
// order.
TEST_P(CheckpointedTest, ArgumentMayAlsoBeACapture) {
  const auto loss = [](const Tensor& x) {
    const auto f = [&](const Tensor& s) { return std::tuple{x, exp(sin(s) * s), s}; };
    const auto [same, y, also] = checkpoint(f)(x);
    const Tensor z = exp(sin(same)),
                 twice =
                     checkpoint([](const Tensor&a, const Tensor&b) { return a * sin(b); })(x, x);
    return sum(0.5 * y + sin(y)) + sum(0.5 * z + sin(z)) + sum(cos(also) * twice);
  };
  for (const double at : {1.0, 0.3, 0.7, 1.3, -0.4, 2.1, 0.9}) {
    const Tensor x = tensor(std::vector<double>{at}, {1}, f64);
    const Tensor eager = grad(loss)(x), mine = run(grad(loss))(x);
    expect_all_close(mine, eager, is_exact() ? 0 : 1e-13);
  }
}

TEST(CheckpointedRuleTest, ACheckpointWithARuleAloneIsTaken) {
  const Tensor x = ones({4}, f64);
  const auto kept = [&](const auto& policy) {
    return saved_values([&](const Tensor& x) {
             return sum(checkpoint([](const Tensor& x) { return sin(exp(x)); }, policy)(x));
           })(x)
        .bytes();
  };
  const SavingRule rule = [](const StepValue& v) {
    return v.op == "exp" ? Saving::keep : Saving::recompute;
  };
  EXPECT_EQ(kept(rule), 32);
  EXPECT_EQ(kept(Checkpoint().where(rule)), 32);
  EXPECT_EQ(kept(Checkpoint()), 0);
  const auto message = [&](const Checkpoint& policy) {
    return message_of<ArgumentError>([&] { return kept(policy); });
  };
  EXPECT_EQ(message(Checkpoint::every(4).where(rule)),
            "checkpoint: Checkpoint::every(4) is for loops, and a function runs once; give "
            "Checkpoint().where(rule), or leave the policy out to save only the arguments");
  EXPECT_EQ(message(Checkpoint::budget(100)),
            "checkpoint: Checkpoint::budget(100) is for loops, and a function runs once; give "
            "Checkpoint().where(rule), or leave the policy out to save only the arguments");
}

TEST_P(CheckpointedTest, CheckpointedFunctionsInBodiesAndBranchesHaveThePlainGradient) {
  manual_seed(6);
  const Tensor w = random_normal({3, 3}, f64) * 0.5, x = random_normal({5, 2, 3}, f64);
  const auto f = [&](bool is_checkpointed) {
    return run(value_and_grad([&, is_checkpointed](const Tensor& w) {
      const auto cell = [&](const Tensor& x, const Tensor& h) { return tanh(x + matmul(h, w)); };
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = is_checkpointed ? checkpoint(cell)(x, h) : cell(x, h);
        return std::pair{next, next};
      };
      const auto made = scan(Scan{.initial = zeros({2, 3}, f64), .xs = x, .body = body});
      const auto branch = [&] {
        const auto g = [](const Tensor& y) { return sum(square(y)); };
        return is_checkpointed ? checkpoint(g)(made.ys) : g(made.ys);
      };
      return cond(sum(made.state) > -100.0, branch, [&] { return sum(made.ys); });
    }));
  };
  const auto a = f(true)(w), b = f(false)(w);
  expect_all_close(a.first, b.first, 1e-13);
  expect_all_close(a.second, b.second, 1e-12);
}

TEST_P(CheckpointedTest, ARuleChoosesTheResiduals) {
  manual_seed(5);
  const Tensor w = random_normal({3, 3}, f64), x = random_normal({2, 3}, f64);
  const SavingRule rules[] = {
      [](const StepValue& v) { return v.op == "dot" ? Saving::keep : Saving::recompute; },
      [](const StepValue& v) { return v.name == "hidden" ? Saving::keep : Saving::by_default; },
      [](const StepValue&) { return Saving::spill; },
      [](const StepValue&) { return Saving::recompute; }};
  const auto loss = [&](const SavingRule* rule) {
    return [&, rule](const Tensor& w) {
      const auto block = [&](const Tensor& h) {
        const Tensor hidden = checkpoint_name(tanh(matmul(h, w)), "hidden");
        return std::pair{matmul(hidden, w),
                         fori_loop(
                             0, 2, [](Tensor, Tensor s) { return sin(s); }, hidden)};
      };
      const auto made = rule ? checkpoint(block, *rule)(x) : block(x);
      const auto again = rule ? checkpoint(block, *rule)(made.first) : block(made.first);
      return sum(square(again.first)) + sum(again.second * made.second);
    };
  };
  const auto expected = run(value_and_grad(loss(nullptr)))(w);
  const auto second = [](auto f) {
    return grad([f](const Tensor& w) { return sum(square(grad(f)(w))); });
  };
  const auto expected_second = run(second(loss(nullptr)))(w);
  for (const SavingRule& rule : rules) {
    const auto actual = run(value_and_grad(loss(&rule)))(w);
    expect_same_bits(actual.first, expected.first);
    expect_all_close(actual.second, expected.second, 1e-13);
    expect_all_close(run(second(loss(&rule)))(w), expected_second, 1e-11);
  }
}

/// Functions that make a Dim have the same results and gradients as without checkpoint.
TEST_P(CheckpointedTest, DimsThatItMakes) {
  const SavingRule rules[] = {{}, [](const StepValue&) { return Saving::keep; }};
  const auto loss = [](auto make, auto use, const SavingRule* rule) {
    return [=](const Tensor& x) {
      if (!rule) return use(make(x), x);
      return use(*rule ? checkpoint(make, *rule)(x) : checkpoint(make)(x), x);
    };
  };
  const auto compare = [&](auto make, auto use) {
    const Tensor x = tensor({0.3, -0.2}, {2}, f64);
    const auto second = [](auto f) {
      return grad([f](const Tensor& x) { return sum(square(grad(f)(x))); });
    };
    const auto plain = loss(make, use, nullptr);
    const auto expected = run(value_and_grad(plain))(x);
    const auto expected_second = run(second(plain))(x);
    for (const SavingRule& rule : rules) {
      const auto f = loss(make, use, &rule);
      const auto actual = run(value_and_grad(f))(x);
      expect_all_close(actual.first, expected.first, 1e-13);
      expect_all_close(actual.second, expected.second, 1e-13);
      expect_all_close(run(second(f))(x), expected_second, 1e-11);
    }
  };
  const auto new_dim = [](const Tensor& x) { return Dim("n", cast(sum(x) * 0.0, i32) + 3); };
  // The Dim is used inside only; in the result's type; and as a leaf of the result.
  compare([&](const Tensor& x) { return sum(exp(ones({new_dim(x)}, f64) * sum(x * x))); },
          [](const Tensor& y, const Tensor&) { return y * y; });
  compare([&](const Tensor& x) { return exp(sum(x * x) * ones({new_dim(x)}, f64)); },
          [](const Tensor& y, const Tensor& x) { return sum(y * y) * sum(x); });
  compare(
      [&](const Tensor& x) {
        const Dim n = new_dim(x);
        return std::pair{sum(x * x) * cast(range(n), f64), n};
      },
      [](const std::pair<Tensor, Dim>& y, const Tensor& x) {
        return sum(y.first * exp(ones({y.second}, f64) * sum(x))) + sum(y.first);
      });
  // With a known size.
  compare(
      [&](const Tensor& x) {
        const Dim k("k", 3);
        return std::pair{sum(x * x) * ones({k}, f64), k};
      },
      [](const std::pair<Tensor, Dim>& y, const Tensor& x) {
        return sum(y.first * exp(ones({y.second}, f64) * sum(x)));
      });
  // Ragged, over another dim that is new as well.
  compare(
      [&](const Tensor& x) {
        const Dim n = new_dim(x), time("time", cast(range(n), i32) + 1);
        return std::pair{sum(x * x) * ones({n, time}, f64), time + 1};
      },
      [](const std::pair<Tensor, Dim>& y, const Tensor& x) {
        return sum(y.first * y.first) * sum(x) + sum(exp(ones({y.second}, f64) * sum(x)));
      });
  // In elements of an array; and in a function inside another, applied twice.
  compare(
      [&](const Tensor& x) {
        const Dim n = new_dim(x);
        const Tensor y = sum(x * x) * ones({n}, f64);
        return TensorArray({f64, {n}}).push_back(y).push_back(y * sum(x));
      },
      [](const TensorArray& y, const Tensor& x) { return sum(exp(y[0]) * y[1]) * sum(x); });
  const auto inner = [&](const Tensor& x) { return exp(sum(x * x) * ones({new_dim(x)}, f64)); };
  compare([&](const Tensor& x) { return sum(inner(x)) + sum(checkpoint(inner)(x * x)); },
          [](const Tensor& y, const Tensor&) { return y * y; });
  compare(
      [&](const Tensor& x) { return sum(checkpoint(inner)(x)) * sum(checkpoint(inner)(x * x)); },
      [](const Tensor& y, const Tensor&) { return y; });
  // In a loop's body and in a branch.
  compare(
      [&](const Tensor& x) {
        return fori_loop(
            0, 3, [&](Tensor, Tensor s) { return s + sum(checkpoint(inner)(s * x)) * 0.1; },
            sum(x));
      },
      [&](const Tensor& y, const Tensor& x) {
        return cond(
            y > -100.0, [&] { return sum(checkpoint(inner)(x * y)); }, [&] { return y; });
      });
  // A scan that determines its own length.
  compare(
      [](const Tensor& x) {
        return scan(Scan{.initial = sum(x * x),
                         .cond = [](const Tensor& s) { return s < 1.0; },
                         .body =
                             [](None, const Tensor& s) {
                               return std::pair{s, s * 2.0};
                             }})
            .ys;
      },
      [](const Tensor& y, const Tensor& x) { return sum(square(y)) * sum(x); });
}

/// A plan inlines the records of f, where one plain size is known only at run time. It must stay
/// the same size in all of them.
TEST_P(CheckpointedTest, ARuleSavesTheYsOfAScanOfUnknownLength) {
  const auto loss = [](const SavingRule& rule) {
    return [rule](const Tensor& x) {
      const auto f = [](const Tensor& x) {
        const Tensor count = cast(sum(x) * 0.0, i32) + 2;
        const auto made = scan(Scan{.initial = sum(x),
                                    .xs = x,
                                    .body =
                                        [](const Tensor& x, const Tensor& s) {
                                          const Tensor next = tanh(s * x);
                                          return std::pair{next, next};
                                        },
                                    .max_seq_len = count});
        return sum(square(made.ys)) * made.state;
      };
      return checkpoint(f, rule)(x);
    };
  };
  const Tensor x = tensor({0.3, -0.2, 0.5}, {3}, f64);
  const auto expected = value_and_grad(loss({}))(x);
  const auto f = loss([](const StepValue&) { return Saving::keep; });
  for (const auto& actual : {run(value_and_grad(f))(x), value_and_grad(run(f))(x)}) {
    expect_all_close(actual.first, expected.first, 1e-13);
    expect_all_close(actual.second, expected.second, 1e-13);
  }
}

TEST(CheckpointedRuleTest, ResidualsOfTheRuleAreNotRecomputed) {
  const Tensor w = ones({3, 3}, f64), x = ones({2, 3}, f64);
  const auto dots = [&](const SavingRule& rule) {
    const auto f = jit(value_and_grad([&](Tensor w) {
      return sum(checkpoint([&](Tensor x) { return sin(matmul(cos(matmul(x, w)), w)); }, rule)(x));
    }));
    f(w);
    const std::string text = str(f.graph());
    int count = 0;
    for (std::size_t at = text.find("= dot("); at != std::string::npos;
         at = text.find("= dot(", at + 1))
      ++count;
    return count;
  };
  // Two forward and three backward, because x takes no gradient.
  EXPECT_EQ(
      dots([](const StepValue& v) { return v.op == "dot" ? Saving::keep : Saving::recompute; }), 5);
  EXPECT_EQ(dots({}), 7);
}

TEST(CheckpointedRuleTest, ResidualsOfTheRuleAreReported) {
  const Tensor x = ones({8, 8}, f64);
  const auto bytes = [&](const SavingRule& rule) {
    return saved_values([&](const Tensor& x) {
             return sum(
                 checkpoint([](const Tensor& x) { return sin(cos(matmul(x, x))); }, rule)(x));
           })(x)
        .bytes();
  };
  EXPECT_EQ(bytes({}), 0);
  EXPECT_EQ(
      bytes([](const StepValue& v) { return v.op == "dot" ? Saving::keep : Saving::recompute; }),
      8 * 8 * 8);
}

/// The array's length is unknown to a trace. Each inlined call makes a dim of its own for it, and
/// equal stacks are merged.
TEST(CheckpointedPlanTest, AnArrayThatItStacksAndReturns) {
  const auto f = [](const Tensors& x) {
    const TensorArray array = TensorArray::unstack(x[0], 0);
    const auto called = checkpoint([](const std::pair<Tensor, TensorArray>& in) {
      const Tensor unread = in.second.stack();
      return in.second;
    })(std::pair{x[0], array});
    const Tensor v = called.stack();
    return sum(0.5 * v + sin(v));
  };
  const Tensors x{tensor({0.5, 1., 2.}, f64)};
  for (const bool simplifies : {true, false}) {
    const auto planned = jit(value_and_grad(f), {.passes = {.simplify = simplifies}});
    expect_all_close(planned(x).second[0], 0.5 + cos(x[0]), 1e-12);
    EXPECT_EQ(planned.explain().find("its plan failed"), std::string::npos)
        << planned.explain().substr(0, 400);
  }
}

REEL_IN_EVERY_MODE(CheckpointedTest);

TEST(CheckpointedByTokensTest, ACheckpointedFunctionHasNoResidualsUntilItIsRecomputed) {
  const auto f = [](bool is_checkpointed) {
    return [=](const Tensor& x) {
      Tensor h = x;
      const auto layer = [](const Tensor& x) {
        Tensor y = x;
        for (int i = 0; i < 10; ++i) y = tanh(y) * x;
        return y;
      };
      for (int i = 0; i < 10; ++i) h = is_checkpointed ? checkpoint(layer)(h) : layer(h);
      return sum(h);
    };
  };
  const auto peak_of = [&](bool is_checkpointed) {
    const auto gradient = jit(grad(f(is_checkpointed)), {.executor = Executor::dataflow});
    const Tensor x = ones({10'000}, f64);
    gradient(x);
    reset_peak_memory();
    const std::int64_t before = memory().all.current;
    gradient(x);
    return memory().all.peak - before;
  };
  // Ten layers of ten time steps, or ten states and one layer at a time.
  EXPECT_LT(3 * peak_of(true), peak_of(false));
}

}  // namespace
}  // namespace reel
