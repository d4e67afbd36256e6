// Ops that plans batch across the iterations of a loop: graphs before and after the pass, and
// comparisons with the interpreter.
#include "reel/trace/passes/hoisting/batch_across_iterations.h"

#include <gtest/gtest.h>

#include <array>

#include "reel/core/ops/loop/loop.h"
#include "reel/reel.h"
#include "reel/tests/trace/passes/batched_graphs.h"
#include "reel/tests/trace/passes/plain_rnn.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

TEST(BatchOverTimeTest, ProjectsInputsBeforeTheLoopAndOutputsAfterIt) {
  const auto [before, after] = graphs(plain_rnn, plain_problem());
  EXPECT_EQ(count(*before, "dot"), (Count{0, 3}));
  EXPECT_EQ(count(*after, "dot"), (Count{2, 1}));
  expect_same_results(plain_rnn, plain_problem());
}

TEST(BatchOverTimeTest, MakesOneProductOfAWeightsGradient) {
  const auto step = grad(plain_rnn);
  const auto [before, after] = graphs(step, plain_problem());
  // Three products forward, and two backward for each: x and weight. The recurrence's products stay
  // in the loops: h·r and its cotangent.
  EXPECT_EQ(count(*before, "dot"), (Count{0, 9}));
  EXPECT_EQ(count(*after, "dot"), (Count{7, 2}));
  expect_same_results(step, plain_problem());
}

TEST(BatchOverTimeTest, AWeightsGradientIsAddedUpByItsProduct) {
  // The plan must not make a gradient per step and sum the four afterwards; not for the output's
  // weights either, which get both operands from outside the loop.
  const auto [before, after] = graphs(grad(plain_rnn), plain_problem());
  for (const TensorType& type : after->types)
    for (const Dims& weights : {Dims{3, 5}, Dims{5, 5}, Dims{5, 2}})
      EXPECT_FALSE(type == TensorType(f64, {4, weights[0], weights[1]})) << type;
}

TEST(BatchOverTimeTest, LinearOpsOnASumAreAppliedOnce) {
  // The body divides the weights by their norms. The gradient then adds multiples by loop-invariant
  // values, and the multiplications can move behind the sum.
  const auto f = [](const Tensor& w, const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor normed = w / sqrt(sum(square(w), 0)) * 1.5;
      const Tensor next = tanh(matmul(h, normed) + x);
      return std::pair{next, next};
    };
    return sum(square(scan(Scan{.initial = zeros({2, 5}, f64), .xs = x, .body = body}).ys));
  };
  manual_seed(3);
  const Tensor w = random_normal({5, 5}, f64), x = random_normal({7, 2, 5}, f64);
  const auto [before, after] = graphs(grad(f), w, x);
  for (const TensorType& type : after->types) EXPECT_FALSE(type == TensorType(f64, {7, 5, 5}));
  EXPECT_EQ(count(*after, "dot").inside, 2);
  expect_same_results(value_and_grad(f), w, x);
}

TEST(BatchOverTimeTest, AGradientOfEachEntrysOwnWeightsFinishesWithTheEntry) {
  const Dim batch("batch", 2), in("in", 3), out("out", 2), time("time", tensor({4, 2}, {batch}));
  manual_seed(5);
  const Tensor w = random_normal({batch, in, out}, f64), x = random_normal({batch, time, in}, f64);
  const auto f = [](const Tensor& w, const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{matmul(x, w, x.dim("in")), tanh(h + x)};
    };
    const auto [ys, last, dim] = scan(Scan{.spatial_dim = x.dim("time"),
                                           .initial = zeros({x.dim("batch"), x.dim("in")}, f64),
                                           .xs = x,
                                           .body = body});
    return sum(square(ys)) + sum(last);
  };
  expect_same_results(grad(f), w, x);
}

TEST(BatchOverTimeTest, RowsIndexedByTheCounterAreGatheredAtOnce) {
  const auto last = [](const Tensor& x, const Tensor& w) {
    const auto step = [&](const Tensor& i, const Tensor& h) {
      return tanh(matmul(gather(x, i, 0), w) + matmul(h, w));
    };
    return sum(fori_loop(2, 7, step, zeros({3, 4}, f64)));
  };
  const auto f = [&](const Tensor& x, const Tensor& w) {
    const auto both = [&](const std::pair<Tensor, Tensor>& p) { return last(p.first, p.second); };
    return value_and_grad(both)(std::pair{x, w});
  };
  manual_seed(6);
  const Tensor x = random_normal({9, 3, 4}, f64), w = random_normal({4, 4}, f64);
  const auto [before, after] = graphs(f, x, w);
  EXPECT_EQ(count(*before, "gather"), (Count{0, 1}));
  EXPECT_EQ(count(*after, "gather"), (Count{1, 0}));
  // The scatter happens once, into one tensor of zeros, instead of in every iteration.
  EXPECT_EQ(count(*before, "scatter_add"), (Count{0, 1}));
  EXPECT_EQ(count(*after, "scatter_add"), (Count{1, 0}));
  // The recurrence's products stay inside. The product that makes the recurrence's cotangent makes
  // the cotangent of x as well.
  EXPECT_EQ(count(*after, "dot"), (Count{3, 2}));
  expect_same_results(f, x, w);
}

TEST(BatchOverTimeTest, RowsThatAreReadTwiceAreAddedUpInOneScatter) {
  const auto f = [&](const Tensor& xs) {
    const auto loss = [&](const Tensor& table) {
      const auto body = [&](const std::pair<Tensor, Tensor>& x, const Tensor& h) {
        return std::pair{None{}, h + sum(gather(table, x.second, 0) * x.first)};
      };
      const Tensor at = tensor({2, 0, 2, 1}, {4}, i32);
      return scan(Scan{.initial = scalar(0.0, f64), .xs = std::pair{xs, at}, .body = body}).state;
    };
    return grad(loss)(zeros({3, 2}, f64));
  };
  const Tensor xs = tensor({1, 2, 4, 8}, {4}, f64);
  expect_values(jit(f)(xs), {2, 2, 8, 8, 5, 5});
  expect_same_results(f, xs);
}

// The weight's gradient sums the product of slices and of a value that only the loop has, from a
// branch. Neither is saved for every iteration.
TEST(BatchOverTimeTest, AddendsOfASumAreSummedApart) {
  const auto f = [](const Tensor& w, const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = cond(
          sum(h) < 0.5f, [&] { return tanh(matmul(h, w) + x); }, [&] { return sin(h) + x; });
      return std::pair{matmul(next, w), next};
    };
    return sum(square(scan(Scan{.initial = zeros({2, 3}, f64), .xs = x, .body = body}).ys));
  };
  manual_seed(3);
  const Tensor w = random_normal({3, 3}, f64), x = random_normal({5, 2, 3}, f64);
  const auto [before, after] = graphs(grad(f), w, x);
  for (const TensorType& type : after->types) EXPECT_NE(type, TensorType(f64, {5, 3, 3}));
  EXPECT_EQ(count(*after, "dot").outside, 3);  // of y, and two of its cotangents
  expect_same_results(value_and_grad(f), w, x);
}

TEST(BatchOverTimeTest, ManyElementsAreAddedUpWhereTheyAreMade) {
  // The gradient of a bias is a sum over rows. Outside the loop it would need the rows of all
  // iterations in memory.
  const auto problem = [](std::int64_t rows) {
    const auto draw = [](Dims dims) { return random_normal(dims, f64) * 0.5; };
    return std::tuple{draw({32}), draw({4, rows, 32}), draw({32, 32})};
  };
  const auto f = grad([](const Tensor& bias, const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = tanh(matmul(h, w) + x + bias);
      return std::pair{None{}, y};
    };
    const Tensor zero = zeros({x.dims()[1], x.dims()[2]}, f64);
    return sum(square(scan(Scan{.initial = zero, .xs = x, .body = body}).state));
  });
  const auto inside = [&](std::int64_t rows) {
    const auto [bias, x, w] = problem(rows);
    expect_same_results(f, bias, x, w);
    return count(*graphs(f, bias, x, w).second, "sum").inside;
  };
  EXPECT_EQ(inside(16), 1);
  EXPECT_EQ(inside(2), 0);
}

TEST(BatchOverTimeTest, WorksWithoutSteps) {
  expect_same_results(plain_rnn, plain_problem(0));
  expect_same_results(grad(plain_rnn), plain_problem(0));
}

TEST(BatchOverTimeTest, WorksOnNamedDims) {
  manual_seed(5);
  const Dim time("time", 4), batch("batch", 2), in("in", 3), hidden("hidden", 5), gate("gate", 20);
  const auto draw = [](Dims dims) { return random_normal(dims, f64) * 0.5; };
  struct Lstm {
    Tensor w, r, b, x;
  };
  const Lstm lstm{draw({in, gate}), draw({hidden, gate}), draw({gate}), draw({batch, time, in})};
  const auto loss = [=](const Lstm& p) {
    struct State {
      Tensor h, c;
    };
    auto [hs, last, dim] =
        scan(Scan{.spatial_dim = time,
                  .initial = State{zeros({batch, hidden}, f64), zeros({batch, hidden}, f64)},
                  .xs = p.x,
                  .body = [&](Tensor x, State s) {
                    auto [i, f, g, o] =
                        split<4>(matmul(x, p.w, in) + matmul(s.h, p.r, hidden) + p.b, gate, hidden);
                    const Tensor c = sigmoid(f) * s.c + sigmoid(i) * tanh(g);
                    return std::pair{sigmoid(o) * tanh(c), State{sigmoid(o) * tanh(c), c}};
                  }});
    return mean(square(hs));
  };
  const auto [before, after] = graphs(grad(loss), lstm);
  EXPECT_EQ(count(*after, "dot").inside, 2);
  EXPECT_EQ(count(*after, "sum").inside, 0);
  expect_same_results(grad(loss), lstm);
}

TEST(BatchOverTimeTest, ProductsOfReshapedSlicesLeaveTheLoop) {
  manual_seed(5);
  const Dim time("time", 4), batch("batch", 2), in("in", 6), row("row", 2), column("column", 3),
      feature("feature", 6), out("out", 5);
  const Tensor w = random_normal({feature, out}, f64), of_parts = random_normal({row, out}, f64),
               x = random_normal({time, batch, in}, f64),
               parts = random_normal({time, batch, row, column}, f64);
  const auto total = [&](const Tensor& xs, const auto& product) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(h + product(x));
      return std::pair{next, next};
    };
    return sum(
        scan(Scan{.spatial_dim = time, .initial = zeros({batch, out}, f64), .xs = xs, .body = body})
            .ys);
  };
  const auto renamed = [&](const Tensor& x, const Tensor& w) {
    return total(x, [&](const Tensor& x) { return matmul(rename(x, in, feature), w, feature); });
  };
  const auto reshaped = [&](const Tensor& x, const Tensor& w) {
    return total(x, [&](const Tensor& x) {
      return matmul(reshape(x, Dims{batch, feature}), w, feature);
    });
  };
  const auto merged = [&](const Tensor& x, const Tensor& w) {
    return total(x, [&](const Tensor& x) {
      return matmul(merge_dims(x, {row, column}, feature), w, feature);
    });
  };
  const auto divided = [&](const Tensor& x, const Tensor& w) {
    return total(x, [&](const Tensor& x) {
      return sum(matmul(split_dim(x, in, {row, column}), w, row), column);
    });
  };
  const auto expect_no_product_inside = [&](const char* what, const auto& f, const Tensor& x,
                                            const Tensor& w) {
    SCOPED_TRACE(what);
    EXPECT_EQ(count(*graphs(f, x, w).first, "dot"), (Count{0, 1}));
    EXPECT_EQ(count(*graphs(f, x, w).second, "dot"), (Count{1, 0}));
    expect_same_results(f, x, w);
    const auto gradient =
        grad([&](const std::pair<Tensor, Tensor>& of) { return f(of.first, of.second); });
    EXPECT_EQ(count(*graphs(gradient, std::pair{x, w}).second, "dot").inside, 0);
    expect_same_results(gradient, std::pair{x, w});
  };
  expect_no_product_inside("rename", renamed, x, w);
  expect_no_product_inside("reshape", reshaped, x, w);
  expect_no_product_inside("merge_dims", merged, parts, w);
  expect_no_product_inside("split_dim", divided, x, of_parts);
}

TEST(BatchOverTimeTest, HoistedOpNamesTheIterationThatFailed) {
  const Tensor table = tensor({1., 2., 3.});
  const auto f = [&](const Tensor& indices) {
    const auto body = [&](const Tensor& i, const Tensor& s) {
      const Tensor row = gather(table, i, 0);
      return std::pair{row, s + row};
    };
    return scan(Scan{.initial = scalar(0.), .xs = indices, .body = body, .name = "look up"}).ys;
  };
  const Tensor indices = tensor({0, 1, 7, 9});
  const std::string expected = message_of<IndexError>([&] { f(indices); });
  EXPECT_NE(expected.find("in iteration 2 of scan \"look up\""), std::string::npos) << expected;
  const auto planned = jit(f, {.executor = Executor::plan});
  EXPECT_EQ(message_of<IndexError>([&] { planned(indices); }), expected);
  expect_values(planned(tensor({0, 1, 2, 0})), {1, 2, 3, 1});
}

TEST(BatchOverTimeTest, HoistsElementWiseOpsOnXs) {  // case T1
  const auto f = [](Tensor x, Tensor w) {
    auto [ys, last, dim] =
        scan(Scan{.initial = zeros({3}), .xs = x, .body = [&](Tensor x, Tensor s) {
                    return std::pair{s, s + exp(x) * matmul(x, w)};
                  }});
    return ys;
  };
  manual_seed(1);
  const Tensor x = random_normal({4, 3}), w = random_normal({3, 3});
  const auto [before, after] = graphs(f, x, w);
  EXPECT_EQ(count(*before, "exp"), (Count{0, 1}));
  EXPECT_EQ(count(*after, "exp"), (Count{1, 0}));
  EXPECT_EQ(count(*after, "dot"), (Count{1, 0}));
  EXPECT_EQ(count(*after, "mul"), (Count{1, 0}));
}

TEST(BatchOverTimeTest, GradientKeepsElementwiseOpsOfResidualsInside) {
  const auto f = [](Tensor x) {
    const auto body = [](Tensor x, Tensor s) {
      const Tensor y = s * (x / (1 + abs(x)));
      return std::pair{y, y};
    };
    return sum(scan(Scan{.initial = ones({3}), .xs = x, .body = body}).ys);
  };
  const auto [before, after] = graphs(grad(f), ones({4, 3}));
  EXPECT_EQ(count(*before, "less"), (Count{0, 1}));
  EXPECT_EQ(count(*after, "less"), (Count{0, 1}));
}

TEST(BatchOverTimeTest, SumsOfJoinedHalvesAreProductsOverAllIterations) {
  // Each half of the weights is multiplied by another operand; the gradient joins the two halves.
  const auto f = [](Tensor x, Tensor w) {
    const auto body = [&](Tensor x, Tensor s) {
      const auto [a, b] = split<2>(w, 1);
      const Tensor y = tanh(matmul(s, a) + matmul(x, b));
      return std::pair{y, y};
    };
    return sum(scan(Scan{.initial = ones({2, 3}), .xs = x, .body = body}).ys);
  };
  manual_seed(4);
  const auto gradient = [f](Tensor x, Tensor w) {
    return grad([&](Tensor w) { return f(x, w); })(w);
  };
  const Tensor x = random_normal({5, 2, 3}), w = random_normal({3, 6});
  const auto [before, after] = graphs(gradient, x, w);
  EXPECT_EQ(count(*before, "concat"), (Count{0, 1}));
  EXPECT_EQ(count(*after, "concat"), (Count{1, 0}));
  for (const TensorType& type : after->types) EXPECT_LE(type.numel(), 5 * 2 * 6) << type;
  expect_all_close(jit(gradient)(x, w), gradient(x, w), 1e-5);
}

TEST(BatchOverTimeTest, ComputesOpsOnCapturesOnce) {  // case R12
  const auto f = [](Tensor a, Tensor b, Tensor x) {
    auto [ys, last, dim] =
        scan(Scan{.initial = zeros({2, 2}), .xs = x, .body = [&](Tensor x, Tensor s) {
                    return std::pair{None{}, s + matmul(a, b) * x};
                  }});
    return last;
  };
  const auto [before, after] = graphs(f, ones({2, 2}), ones({2, 2}), ones({100}));
  EXPECT_EQ(count(*before, "dot"), (Count{0, 1}));
  EXPECT_EQ(count(*after, "dot"), (Count{1, 0}));
}

TEST(BatchOverTimeTest, LeavesLoopsWhoseLengthIsFoundOutByRunningThem) {
  const auto f = [](Tensor w, Tensor x) {
    return while_loop([](Tensor s) { return sum(s) < 100.f; },
                      [&](Tensor s) { return s + matmul(s * 0.f + x, w); }, x);
  };
  const auto [before, after] = graphs(f, ones({2, 2}), ones({2, 2}));
  EXPECT_EQ(count(*after, "dot"), (Count{0, 1}));
}

TEST(HoistInvariantsTest, ProductsOfCapturesLeaveLoopsOfAnyLength) {
  const auto until = [](Tensor w, Tensor x) {
    return while_loop([](Tensor s) { return sum(s) < 100.f; },
                      [&](Tensor s) { return s + sum(tanh(matmul(x, w)), 1); }, sum(x, 1));
  };
  const auto so_many = [](Tensor w, Tensor x) {
    return fori_loop(
        0, 5, [&](Tensor, Tensor s) { return s + sum(tanh(matmul(x, w)), 1); }, sum(x, 1));
  };
  const Tensor w = full({2, 2}, 0.3), x = ones({2, 2});
  const auto expect_outside = [&](const auto& f) {
    const auto [before, after] = graphs(f, w, x);
    EXPECT_EQ(count(*before, "dot"), (Count{0, 1}));
    EXPECT_EQ(count(*after, "dot"), (Count{1, 0}));
    EXPECT_EQ(count(*after, "sum").outside, 2);
    expect_same_bits(jit(f)(w, x), f(w, x));
  };
  expect_outside(until);
  expect_outside(so_many);
}

// Finished entries read another entry's elements of a capture, which would count in a sum over
// entries.
TEST(HoistInvariantsTest, SumsOverEntriesStayInsideIfTheseFinishOneByOne) {
  const Dim batch("batch", 3);
  const auto f = [&](Tensor c, Tensor n) {
    const auto made = scan(Scan{.cond_dims = {batch},
                                .initial = zeros({batch}, f64),
                                .xs = None{},
                                .cond = [&](const Tensor& s) { return s < n; },
                                .body =
                                    [&](None, const Tensor& s) {
                                      return std::pair{None{}, s + 1.0 + 0.1 * sum(c, batch)};
                                    },
                                .max_seq_len = scalar(9)});
    return made.state;
  };
  const Tensor c = tensor({0.1, 2.0, -0.7}, {batch}, f64),
               n = tensor({1.0, 3.0, 6.0}, {batch}, f64);
  expect_same_bits(jit(f)(c, n), f(c, n));
}

TEST(BatchOverTimeTest, GoesIntoLoopsInLoops) {
  const auto f = [](Tensor x, Tensor w) {
    auto [ys, last, dim] =
        scan(Scan{.initial = zeros({3}, f64), .xs = x, .body = [&](Tensor row, Tensor s) {
                    auto [zs, inner, d] =
                        scan(Scan{.initial = s, .xs = row, .body = [&](Tensor v, Tensor t) {
                                    const Tensor next = tanh(t + matmul(v, w));
                                    return std::pair{next, next};
                                  }});
                    return std::pair{sum(zs), inner};
                  }});
    return sum(ys) + sum(last);
  };
  manual_seed(2);
  const Tensor x = random_normal({2, 4, 3}, f64), w = random_normal({3, 3}, f64);
  expect_same_results(f, x, w);
  expect_same_results(grad(f), x, w);
  expect_same_results(
      grad([&](Tensor w) { return sum(square(grad([&](Tensor w) { return f(x, w); })(w))); }), w);
}

TEST(BatchOverTimeTest, LeavesReversedScansTheirOrder) {
  const auto f = [](Tensor x, Tensor w) {
    auto [ys, last, dim] = scan(Scan{.initial = zeros({3}, f64),
                                     .xs = x,
                                     .body =
                                         [&](Tensor x, Tensor s) {
                                           const Tensor next = tanh(s + matmul(x, w));
                                           return std::pair{next * x, next};
                                         },
                                     .reverse = true});
    return sum(ys * x) + sum(last);
  };
  manual_seed(2);
  const Tensor x = random_normal({4, 3}, f64), w = random_normal({3, 3}, f64);
  expect_same_results(f, x, w);
  expect_same_results(grad(f), x, w);
}

TEST(BatchOverTimeTest, CapturesMeetTheDimsOfArguments) {
  // In the trace x has symbolic dims and w has not; in a branch as well.
  manual_seed(4);
  const Dim time("time", 4), batch("batch", 2), in("in", 3), unit("unit", 5);
  const Tensor x = random_normal({time, batch, in}, f64), w = random_normal({in, unit}, f64),
               shift = random_normal({in}, f64);
  const auto f = [&](Tensor x) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch"), unit}, f64),
                     .xs = x,
                     .body =
                         [&](Tensor x, Tensor h) {
                           const Tensor next = tanh(h + matmul(x * (shift * 2.0), w, in));
                           return std::pair{next, next};
                         }})
        .ys;
  };
  const auto in_branch = [&](Tensor x) {
    return cond(
        sum(x) > 1e9,
        [&] {
          return zeros({x.dim("time"), x.dim("batch"), unit}, f64);
        },
        [&] { return f(x); });
  };
  const auto [before, after] = graphs(f, x);
  EXPECT_EQ(count(*before, "dot"), (Count{0, 1}));
  EXPECT_EQ(count(*after, "dot"), (Count{1, 0}));
  expect_same_results(f, x);
  expect_same_results(in_branch, x);
}

}  // namespace
}  // namespace reel
