// Loops in a graph: their carries, stacks and residuals, and the values that are dropped.
#include <functional>

#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// Visits every record of a graph, including records of bodies and branches.
void each_record(const Graph& graph, int depth,
                 const std::function<void(const Graph&, const OpRecord&, int depth)>& fn) {
  for (const OpRecord& record : graph.records) {
    fn(graph, record, depth);
    if (record.op == &loop_op) {
      const auto& attrs = get<LoopAttrs>(record.attrs.get());
      each_record(*attrs.body.graph, depth + 1, fn);
      if (attrs.cond) each_record(*attrs.cond.graph, depth + 1, fn);
    }
    if (record.op == &cond_op) {
      const auto& attrs = get<CondAttrs>(record.attrs.get());
      each_record(*attrs.on_true.graph, depth + 1, fn);
      each_record(*attrs.on_false.graph, depth + 1, fn);
    }
  }
}
/// The number of times that an op occurs in a graph, and how many of these are in bodies and
/// branches.
struct Count {
  int all = 0, inside = 0;
  bool operator==(const Count&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Count& c) {
    return out << c.all << ", " << c.inside << " of them inside";
  }
};
Count count(const Graph& graph, std::string_view op) {
  Count result;
  each_record(graph, 0, [&](const Graph&, const OpRecord& record, int depth) {
    result.all += record.op->name == op;
    result.inside += record.op->name == op && depth > 0;
  });
  return result;
}
/// Describes the loops at the top of a graph: "carries 1, slices 2, stacks 0, sums 0".
std::vector<std::string> loops(const Graph& graph) {
  std::vector<std::string> result;
  for (const OpRecord& record : graph.records)
    if (record.op == &loop_op) {
      const auto& a = get<LoopAttrs>(record.attrs.get());
      result.push_back(str("carries ", a.carries.size(), ", slices ", a.slices.size(), ", stacks ",
                           a.stacks.size(), ", sums ", a.sums.size()));
    }
  return result;
}
using Loops = std::vector<std::string>;
/// Returns the types of all stacks of a graph's loops.
std::vector<std::string> stacked(const Graph& graph) {
  std::vector<std::string> result;
  each_record(graph, 0, [&](const Graph& in, const OpRecord& record, int) {
    if (record.op != &loop_op) return;
    const auto& a = get<LoopAttrs>(record.attrs.get());
    for (const ValueId stack : results_of(a, in.outputs_of(record)).stacks)
      result.push_back(str(in.types[stack]));
  });
  return result;
}
using Types = std::vector<std::string>;

TEST(MoreGraphs, J26_SliceThatIsGivenIsNotStacked) {
  for (const bool backwards : {false, true}) {
    const auto f = jit([=](const Tensor& x, const Tensor& s) {
      const auto [ys, last, dim] = scan(Scan{.initial = s,
                                             .xs = x,
                                             .body =
                                                 [](const Tensor& x, const Tensor& s) {
                                                   return std::pair{std::pair{x, s}, s + x};
                                                 },
                                             .reverse = backwards});
      return std::tuple{ys.first, ys.second, last};
    });
    const Tensor x = tensor({1., 2., 3.});
    const auto [same, sums, last] = f(x, scalar(0.0));
    EXPECT_EQ(same.data<float>(), x.data<float>());
    expect_values(sums, backwards ? std::vector<double>{5, 3, 0} : std::vector<double>{0, 1, 3});
    expect_values(last, {6});
    EXPECT_EQ(loops(f.graph()), Loops{"carries 1, slices 1, stacks 1, sums 0"});
  }
}

TEST(MoreGraphs, J26_FinishedEntriesAreStackedWithZeros) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const auto f = jit([](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .xs = x,
                     .body =
                         [](const Tensor& x) {
                           return std::pair{x, None{}};
                         }})
        .ys;
  });
  expect_values(f(tensor({1., 2., 3., std::nan("")}, {batch, time})), {1, 3, 2, 0});
  const auto until = jit([](const Tensor& x) {
    return scan(Scan{.cond_dims = {},
                     .initial = scalar(0.0),
                     .xs = x,
                     .cond = [](const Tensor& s) { return s < 2.0; },
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{x, s + x};
                         }})
        .ys;
  });
  expect_values(until(tensor({1., 2., 3., 4.})), {1, 2});
}

TEST(MoreGraphs, J27_CarryThatComesBackIsACapture) {
  const auto loop = jit([](const Tensor& i, const Tensor& n) {
    return std::get<0>(while_loop([](Tensor i, Tensor n) { return i < n; },
                                  [](Tensor i, Tensor n) {
                                    return std::tuple{i + 1, n};
                                  },
                                  std::tuple{i, n}));
  });
  expect_values(loop(scalar(0), scalar(4)), {4});
  EXPECT_EQ(loops(loop.graph()), Loops{"carries 1, slices 0, stacks 0, sums 0"});
}

TEST(MoreGraphs, J42_LoopInvariantValuesAreComputedOnce) {
  const auto loss = [](const std::vector<Tensor>& in) {
    using State = std::array<Tensor, 3>;
    const Tensor a = in[0], b = in[1];
    const State last = fori_loop(
        0, 4,
        [&](const Tensor&, const State& c) {
          return State{matmul(a, c[0]), matmul(b, c[1]), matmul(sin(b), c[2])};
        },
        State{in[2], in[2], in[2]});
    return sum(last[0] + last[1] + last[2]);
  };
  const std::vector<Tensor> in{tensor({{.1, .2}, {.3, -.4}}, {}, f64),
                               tensor({{.5, -.6}, {.7, .8}}, {}, f64), tensor({.9, .4}, {}, f64)};
  const auto f = jit(grad(loss));
  expect_gradient_of(loss, in, f(in));
  const Ref<Graph> run = optimise_for_interpreter(f.graph()).graph;
  EXPECT_EQ(count(*run, "sin"), (Count{1, 0})) << *run;
  EXPECT_EQ(count(*run, "cos"), (Count{1, 0})) << *run;
}

TEST(MoreGraphs, J43_TheStateIsTheOnlyResidualOfARecurrence) {
  const auto loss = [](const Tensor& a) {
    return sum(fori_loop(
        0, 10, [&](const Tensor&, const Tensor& x) { return matmul(a, x); },
        tensor({1., .5, -.3}, {}, f64)));
  };
  const Tensor a = tensor({{.1, .2, .3}, {.4, -.5, .6}, {.7, .8, -.9}}, {}, f64);
  const auto f = jit(grad(loss));
  expect_gradient_of(loss, a, f(a));
  EXPECT_EQ(stacked(f.graph()), Types{"f64[10,3]"}) << f.graph();
  EXPECT_EQ(loops(f.graph()), (Loops{"carries 1, slices 0, stacks 1, sums 0",
                                     "carries 1, slices 1, stacks 0, sums 1"}));
}

TEST(MoreGraphs, J44_CumulativeProductReadsItsXsAgain) {
  const auto products = [](const Tensor& x) {
    return scan(Scan{.initial = scalar(1.0, f64),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           return std::pair{x * s, x * s};
                         }})
        .ys;
  };
  const auto loss = [=](const Tensor& x) { return sum(square(products(x))); };
  const Tensor x = tensor({1.5, -.5, 2., .7}, {}, f64);
  const auto f = jit(grad(loss));
  expect_gradient_of(loss, x, f(x));
  // The forward loop stacks ys and the state before each iteration, the gradient loop the gradient.
  // xs is not copied.
  EXPECT_EQ(stacked(f.graph()), (Types{"f64[4]", "f64[4]", "f64[4]"})) << f.graph();
  EXPECT_EQ(loops(f.graph()), (Loops{"carries 1, slices 1, stacks 2, sums 0",
                                     "carries 1, slices 3, stacks 1, sums 0"}));
}

TEST(MoreGraphs, D6_UnchangedStateIsTheArgument) {
  const auto f = jit([](const Tensor& x, const Tensor& kept) {
    return fori_loop(
        0, 3,
        [](const Tensor&, const std::pair<Tensor, Tensor>& s) {
          return std::pair{s.first * s.second, s.second};
        },
        std::pair{x, kept});
  });
  const Tensor kept = scalar(2.0);
  const auto [x, same] = f(scalar(3.0), kept);
  expect_values(x, {24});
  EXPECT_EQ(same.data<float>(), kept.data<float>());
  EXPECT_EQ(loops(f.graph()), Loops{"carries 1, slices 0, stacks 0, sums 0"});
}

TEST(MoreGraphs, D12_ASumLoopHasNoResidualsForItsCounterIsNotState) {
  const auto f = jit(grad([](const Tensor& x) {
    return fori_loop(
        0, 10, [&](const Tensor& i, const Tensor& y) { return y + pow(x, cast(i, f64)); },
        zeros_like(x));
  }));
  double expected = 0;
  for (int i = 1; i < 10; ++i) expected += i * std::pow(0.9, i - 1);
  expect_values(f(scalar(0.9, f64)), {expected}, 1e-12);
  EXPECT_EQ(stacked(f.graph()), Types{}) << f.graph();
}

TEST(MoreGraphs, D16_UnreadStatesAndOutputsAreDropped) {
  using State = std::array<Tensor, 3>;
  const auto f = jit([](const Tensor& x) {
    return fori_loop(
        0, 3,
        [](const Tensor&, const State& s) {
          return State{s[0] * 2.0, s[1] * s[0], exp(s[2])};
        },
        State{x, x, x})[1];
  });
  expect_values(f(scalar(1.5)), {1.5 * 1.5 * 3 * 6});
  EXPECT_EQ(loops(f.graph()), Loops{"carries 2, slices 0, stacks 0, sums 0"});
  EXPECT_EQ(count(f.graph(), "exp"), Count{}) << f.graph();
  const auto g = jit([](const Tensor& x) {
    return scan(Scan{.initial = State{x, x, x},
                     .xs = range(3, f32),
                     .body =
                         [](const Tensor& x, const State& s) {
                           return std::pair{std::pair{s[0] * x, exp(s[1])},
                                            State{s[0] + x, s[1] * s[2], s[2]}};
                         }})
        .ys.first;
  });
  expect_values(g(scalar(1.5)), {0, 1.5, 5});
  EXPECT_EQ(loops(g.graph()), Loops{"carries 1, slices 1, stacks 1, sums 0"});
}

TEST(MoreGraphs, T3_AScanOverTheResultsOfAnotherStaysApart) {
  const auto sums = [](const Tensor& x, const Tensor& s) { return std::pair{s + x, s + x}; };
  const auto f = jit([=](const Tensor& x) {
    const auto a = scan(Scan{.initial = scalar(0.0), .xs = x, .body = sums});
    return scan(Scan{.initial = a.state, .xs = a.ys, .body = sums}).ys;
  });
  expect_values(f(tensor({1., 2., 3.})), {7, 10, 16});
  EXPECT_EQ(loops(f.graph()), (Loops{"carries 1, slices 1, stacks 1, sums 0",
                                     "carries 1, slices 1, stacks 1, sums 0"}));
}

TEST(MoreGraphs, T5_ChainOfDeadCarries) {
  using State = std::array<Tensor, 5>;
  const auto f = jit([](const Tensor& x) {  // 0 reads 1 reads 2; 3 and 4 read each other
    return fori_loop(
        0, 3,
        [](const Tensor&, const State& s) {
          return State{s[0] + s[1], s[1] + s[2], s[2] * 2.0, sin(s[4]), cos(s[3])};
        },
        State{x, x, x, x, x})[2];
  });
  expect_values(f(scalar(1.5)), {12});
  EXPECT_EQ(loops(f.graph()), Loops{"carries 1, slices 0, stacks 0, sums 0"});
  EXPECT_EQ(count(f.graph(), "sin"), Count{});
  EXPECT_EQ(count(f.graph(), "add"), Count{});
}

TEST(MoreGraphs, TheTangentOfAScanReadsBothXsWithoutResiduals) {
  const auto f = jit([](const Tensor& x, const Tensor& v, const Tensor& w) {
    const auto products = [&](const Tensor& x) {
      return scan(Scan{.initial = w,
                       .xs = x,
                       .body =
                           [&](const Tensor& x, const Tensor& s) {
                             return std::pair{exp(s) * x, sin(x * s) * w};
                           }})
          .ys;
    };
    const auto [ys, tangent] = jvp(products, x, v);
    return std::pair{ys, sum(tangent) * sum(ys)};  // a reader of the value waits for both
  });
  const Tensor x = tensor({1.5, -.5, 2.}, {}, f64), v = tensor({.3, .2, -1.}, {}, f64);
  double s = .8, ds = 0, value = 0, slope = 0;
  for (int t = 0; t < 3; ++t) {
    const double x_t = values_of(x)[t], v_t = values_of(v)[t];
    value += std::exp(s) * x_t;
    slope += std::exp(s) * (ds * x_t + v_t);
    ds = .8 * std::cos(x_t * s) * (v_t * s + x_t * ds);
    s = .8 * std::sin(x_t * s);
  }
  expect_values(f(x, v, scalar(.8, f64)).second, {slope * value}, 1e-12);
  EXPECT_EQ(loops(f.graph()), Loops{"carries 2, slices 2, stacks 2, sums 0"}) << f.graph();
}

TEST(MoreGraphs, TheTangentOfALoopRunsBesideItWithoutResiduals) {
  const auto f = jit([](const Tensor& x) {
    return jvp(
        [](const Tensor& x) {
          return while_loop([](const Tensor& x) { return x < 9.0; },
                            [](const Tensor& x) { return sin(x) + x * x; }, x);
        },
        x, ones_like(x));
  });
  const auto [value, tangent] = f(scalar(1.5, f64));
  double x = 1.5, v = 1;
  while (x < 9) v *= std::cos(x) + 2 * x, x = std::sin(x) + x * x;
  expect_values(value, {x}, 1e-12);
  expect_values(tangent, {v}, 1e-12);
  EXPECT_EQ(loops(f.graph()), Loops{"carries 2, slices 0, stacks 0, sums 0"}) << f.graph();
  EXPECT_EQ(count(f.graph(), "cos"), (Count{1, 1}));
}

}  // namespace
}  // namespace reel
