// Residuals of traced loops: only values that the gradient reads and cannot get otherwise.
#include <regex>

#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Pushing {
  Tensor x;
  TensorArray array;
};

/// Returns the text of a traced gradient's graph.
template <class F, class... Args>
std::string graph_of(F f, const Args&... args) {
  const auto traced = jit(std::move(f));
  traced(args...);
  return str(traced.graph());
}

int count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

/// Returns the number of stacks of the loop with this name, which has no ys: its residuals.
int saved(const std::string& graph, const std::string& loop) {
  std::smatch found;
  const bool is_there = std::regex_search(
      graph, found, std::regex("name=\\w+ \"" + loop + "\", [^{}]*stacks=(\\d+)"));
  EXPECT_TRUE(is_there) << graph;
  return is_there ? std::stoi(found[1]) : -1;
}

/// Runs body from x until the state is 100 or more, at most five times.
template <class Body>
Tensor until_100(const Tensor& x, Body body) {
  return while_loop([](Tensor x) { return x < 100.0; }, body, x, {.maximum_iterations = 5});
}

TEST(TensorFlowSaving, R01_InvariantsAreNoResiduals) {
  const auto f = [](Tensor v) { return until_100(scalar(2.0), [&](Tensor x) { return v * x; }); };
  expect_values(jit(grad(f))(scalar(1.5)), {2 * 5 * std::pow(1.5, 4)}, 1e-4);
  EXPECT_EQ(saved(graph_of(grad(f), scalar(1.5)), "while"), 1);
}

TEST(TensorFlowSaving, R02_ConstantsAreNoResiduals) {
  const auto doubled = [](Tensor v) { return until_100(v, [](Tensor x) { return x * 2.0; }); };
  EXPECT_EQ(saved(graph_of(grad(doubled), scalar(1.0)), "while"), 0);  // nothing varies in 2
  const auto shifted = [](Tensor v) {
    return until_100(v, [](Tensor x) { return x * x * 2.0 + 1.0; });
  };
  EXPECT_EQ(saved(graph_of(grad(shifted), scalar(1.0)), "while"), 1);  // x
}

TEST(TensorFlowSaving, R03_PushedArrayIsTheOnlyResidual) {
  const auto f = [](Tensor v) {
    const Pushing last = while_loop([](const Pushing& s) { return s.x < 8.0; },
                                    [](const Pushing& s) {
                                      return Pushing{s.x * s.x, s.array.push_back(s.x)};
                                    },
                                    Pushing{v, TensorArray({f32, {}})});
    return std::pair{last.x, last.array.stack()};
  };
  const auto [value, aux] = jit(value_and_grad(f))(scalar(2.0)).first;
  expect_values(value, {16});
  expect_values(aux, {2, 4});
  const auto gradient = [=](Tensor v) { return grad([=](Tensor v) { return f(v).first; })(v); };
  expect_values(jit(gradient)(scalar(2.0)), {32});
  const auto both = [=](Tensor v) {
    const auto [result, g] = value_and_grad(f)(v);
    return std::tuple{result.second, g};
  };
  const std::string graph = graph_of(both, scalar(2.0));
  EXPECT_EQ(saved(graph, "while"), 1) << graph;  // the array itself
  EXPECT_EQ(count(graph, "list_write"), 0) << graph;
}

TEST(TensorFlowSaving, R04_OtherPushedArrayAddsNoResidual) {
  struct State {
    Tensor x;
    TensorArray xs, hundreds;
  };
  const auto f = [](Tensor v) {
    const State last = while_loop(
        [](const State& s) { return s.x < 8.0; },
        [](const State& s) {
          return State{s.x * s.x, s.xs.push_back(s.x), s.hundreds.push_back(scalar(100.0))};
        },
        State{v, TensorArray({f32, {}}), TensorArray({f32, {}})});
    return std::pair{last.x, std::pair{last.xs.stack(), last.hundreds.stack()}};
  };
  const auto [result, g] = jit(value_and_grad(f))(scalar(2.0));
  expect_values(result.first, {16});
  expect_values(result.second.first, {2, 4});
  expect_values(result.second.second, {100, 100});
  expect_values(g, {32});
  EXPECT_EQ(saved(graph_of(value_and_grad(f), scalar(2.0)), "while"), 2);
}

TEST(TensorFlowSaving, R05_GradientsOfAnyOrderLeaveOneForwardLoop) {
  const auto squared = [](Tensor v) { return until_100(v, [](Tensor x) { return x * x; }); };
  const std::string first = graph_of(value_and_grad(squared), scalar(2.0));
  EXPECT_EQ(count(first, R"(name=while_loop "while",)"), 1) << first;
  EXPECT_EQ(saved(first, "while"), 1) << first;
  const std::string second = graph_of(grad(grad(squared)), scalar(2.0));
  EXPECT_EQ(count(second, R"(name=while_loop "while",)"), 1) << second;
  EXPECT_EQ(saved(second, "while"), 1) << second;
}

TEST(TensorFlowSaving, R06_CounterAndCapturesAreNoResiduals) {
  const auto f = [](Tensor v) {
    return while_loop([](Tensor x) { return x < 100.0; }, [&](Tensor x) { return x * v + v * v; },
                      scalar(1.0));
  };
  const std::string graph = graph_of(grad(f), scalar(2.0));
  EXPECT_EQ(saved(graph, "while"), 1) << graph;
  // An element of a captured array is found by the iteration's number: neither is saved.
  const auto reads = [](Tensor x) {
    return scan(Scan{.initial = scalar(0.0),
                     .xs = x,
                     .body =
                         [](Tensor x, Tensor s) {
                           return std::pair{None{}, s + x * x};
                         }})
        .state;
  };
  EXPECT_EQ(saved(graph_of(grad(reads), ones({5})), "scan"), 0);
}

TEST(TensorFlowSaving, R07_ResidualIsTheShapeIfValuesAreUnread) {
  const auto reductions = [](Tensor v) {
    return sum(while_loop([](Tensor x) { return sum(x) < 10.0; },
                          [](Tensor x) { return x * 0.5 + sum(x) + mean(x); }, v));
  };
  EXPECT_EQ(saved(graph_of(grad(reductions), ones({3})), "while"), 0);
  const auto growing = [](Tensor v) {
    return sum(while_loop([](Tensor x) { return sum(x) < 10.0; },
                          [](Tensor x) {
                            return concat({x, x * 2.0}, 0);
                          },
                          v, {.shape_invariants = {PartialShape{unknown}}}));
  };
  const std::string graph = graph_of(grad(growing), ones({3}));
  EXPECT_EQ(saved(graph, "while"), 1) << graph;
  EXPECT_EQ(count(graph, "list of boolean\\[0,\\?\\], %\\d+: i32\\[\\] = loop"), 1) << graph;
}

// Only a dropped carry defines the size, which must be kept: the gradient of `spread` reads no
// value of it.
TEST(TensorFlowSaving, R07_ASizeThatALoopAloneKnowsKeepsItsLoop) {
  const auto f = [](Tensor x) {
    return sum(while_loop([](Tensor h) { return sum(ones_like(h)) < 6.0; },
                          [&](Tensor h) {
                            return concat({h, x}, 0);
                          },
                          zeros({0, 2}), {.shape_invariants = {PartialShape{unknown, 2}}}));
  };
  expect_values(jit(grad(f))(tensor({{1., 2.}})), {3, 3});
}

// An LSTM's iteration saves the four gates and both states. tanh of the new c is element-wise in
// these and is recomputed.
TEST(TensorFlowSaving, R07_ElementwiseValuesOfResidualsAreRecomputed) {
  const Dim in("in", 2), hidden("hidden", 3), time("time", 4), batch("batch", 2);
  const LstmCell cell = LstmCell::init(in, hidden);
  const auto loss = [&](const LstmCell& cell, const Tensor& x) {
    return sum(square(recur(cell, x, time).state.h));
  };
  EXPECT_EQ(saved(graph_of(grad(loss), cell, ones({time, batch, in})), "recur"), 6);
}

TEST(TensorFlowSaving, R08_UnreadArraysAreNotPushed) {
  const auto squares = [](Tensor v) {
    return while_loop([](const Pushing& s) { return s.x < 100.0; },
                      [](const Pushing& s) {
                        return Pushing{s.x * s.x, s.array.push_back(s.x)};
                      },
                      Pushing{v, TensorArray({f32, {}})});
  };
  const auto unread = graph_of([=](Tensor v) { return squares(v).x; }, scalar(2.0));
  EXPECT_EQ(count(unread, "list_write"), 0) << unread;
  EXPECT_EQ(count(unread, "carries=1,"), 1) << unread;
  const auto read = jit([=](Tensor v) { return squares(v).array.stack(); });
  expect_values(read(scalar(2.0)), {2, 4, 16});
}

TEST(TensorFlowSaving, R09_UnreadArraysAreNotPushedInInnerLoops) {
  const auto nested = [](Tensor v) {
    return while_loop([](const Pushing& s) { return s.x < 100.0; },
                      [](const Pushing& s) {
                        return while_loop([](const Pushing& s) { return s.x < 50.0; },
                                          [](const Pushing& s) {
                                            return Pushing{s.x * s.x, s.array.push_back(s.x)};
                                          },
                                          Pushing{s.x * 2.0, s.array});
                      },
                      Pushing{v, TensorArray({f32, {}})});
  };
  const auto unread = graph_of([=](Tensor v) { return nested(v).x; }, scalar(2.0));
  EXPECT_EQ(count(unread, "list_write|list_new"), 0) << unread;
  // Three nested loops. The gradient reads the operand of the innermost square: one stack per
  // level.
  const auto three = [](Tensor v) {
    const auto loop = [](Tensor x, double most, auto body) {
      return while_loop([=](Tensor x) { return x < most; }, body, x);
    };
    return loop(v, 500.0, [=](Tensor x) {
      return loop(x * 1.5, 100.0, [=](Tensor x) {
        return loop(x + 1.0, 10.0, [](Tensor x) { return x * x; }) * 2.0;
      });
    });
  };
  const std::string graph = graph_of(grad(three), scalar(1.5));
  for (const char* streams : {"stacks=1,", "stacks=2,", "stacks=3,"})  // and trip counts
    EXPECT_EQ(count(graph, str(R"(name=while_loop "while", [^{}]*)", streams)), 1) << graph;
  EXPECT_EQ(count(graph, "%\\d+: f32\\[\\] = mul\\(%1, %1\\)\n *return %2, %1\n"), 1) << graph;
}

}  // namespace
}  // namespace reel
