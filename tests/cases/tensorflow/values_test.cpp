// Values of while_loop that TensorFlow's users rely on.
#include <map>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowValues = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowValues);

struct Named {
  Tensor a, b;
};
struct Pair {
  Tensor j, k;
};

TEST_P(TensorFlowValues, V01_CountsToTenThousand) {
  const auto count = run([](Tensor start) {
    return while_loop([](Tensor x) { return x < 10000; }, [](Tensor x) { return x + 1; }, start,
                      {.parallel_iterations = 20});
  });
  expect_values(count(scalar(0)), {10000});
}

TEST_P(TensorFlowValues, V02_V03_SumsItsCounter) {
  const auto isum = run([](Tensor s) {
    const auto [i, sum] = while_loop([](Tensor i, Tensor) { return i < 10; },
                                     [](Tensor i, Tensor s) {
                                       return std::tuple{i + 1, i + s};
                                     },
                                     std::tuple{0, s});
    return sum;
  });
  expect_values(isum(scalar(0)), {45});
  expect_values(isum(tensor({1, 2, 3, 4, 5})), {46, 47, 48, 49, 50});
}

TEST_P(TensorFlowValues, V07_StateOfAStructAPairAndATensor) {
  using Second = std::pair<Tensor, Tensor>;
  const auto loop = run([](Named first, Second second, Tensor third) {
    return while_loop(
        [](const Named& first, const Second&, const Tensor&) { return first.a < 100.0; },
        [](const Named& first, const Second& second, const Tensor& third) {
          return std::tuple{Named{first.a + 1.0, first.b},
                            Second{second.first + 1.0, second.second}, third + 2.0};
        },
        std::tuple{first, second, third});
  });
  const std::tuple<Named, Second, Tensor> last =
      loop(Named{scalar(0.0), scalar(1.0)}, Second{scalar(2.0), scalar(3.0)}, scalar(4.0));
  expect_values(std::get<0>(last).a, {100});
  expect_values(std::get<0>(last).b, {1});
  expect_values(std::get<1>(last).first, {102});
  expect_values(std::get<1>(last).second, {3});
  expect_values(std::get<2>(last), {204});
}

TEST_P(TensorFlowValues, V07_StateOfContainersInContainers) {
  struct State {
    std::map<std::string, Tensor> by_name;
    std::vector<std::pair<Tensor, Tensor>> list;
    std::optional<Tensor> perhaps;
    int fixed = 7;
  };
  const auto loop = run([](Tensor x) {
    const auto last = while_loop(
        [](const State& s) { return s.by_name.at("n") < 3; },
        [](const State& s) {
          State next = s;
          next.by_name["n"] = s.by_name.at("n") + 1;
          next.list = {s.list[1], {s.list[0].first * 2.0, s.list[0].second + *s.perhaps}};
          return next;
        },
        State{{{"n", scalar(0)}}, {{x, x + 1.0}, {x + 2.0, x + 3.0}}, x});
    return std::tuple{last.list[0].first,  last.list[0].second,  last.list[1].first,
                      last.list[1].second, last.by_name.at("n"), scalar(last.fixed)};
  });
  // The pairs are swapped three times, and the pair that moves to the back is changed.
  const auto [a, b, c, d, n, fixed] = loop(scalar(1.0));
  expect_values(a, {6});
  expect_values(b, {5});
  expect_values(c, {4});
  expect_values(d, {4});
  expect_values(n, {3});
  expect_values(fixed, {7});
}

TEST_P(TensorFlowValues, V08_StateOfACounterAndAStruct) {
  const auto loop = run([](Pair p) {
    return while_loop([](const Tensor& i, const Pair&) { return i < 10; },
                      [](const Tensor& i, const Pair& p) {
                        return std::tuple{i + 1, Pair{p.j + p.k, p.j - p.k}};
                      },
                      std::tuple{scalar(0), p});
  });
  const std::tuple<Tensor, Pair> last = loop(Pair{scalar(1), scalar(2)});
  expect_values(std::get<0>(last), {10});
  expect_values(std::get<1>(last).j, {32});
  expect_values(std::get<1>(last).k, {64});
}

TEST_P(TensorFlowValues, V10_CallsConditionAndBodyAsOftenAsTheModeSays) {
  int conds = 0, bodies = 0;
  const auto loop = run([&](Tensor i, Tensor n) {
    const auto [ii, nn] = while_loop([&](Tensor a, Tensor n) { return ++conds, a < n; },
                                     [&](Tensor a, Tensor n) {
                                       ++bodies;
                                       return std::tuple{a + 2, n};
                                     },
                                     std::tuple{i, n});
    return std::tuple{ii, nn, ii + 3, nn + 4};
  });
  for (int times = 0; times < 2; ++times) {
    const auto [ii, nn, v1, v2] = loop(scalar(1), scalar(10));
    expect_values(ii, {11});
    expect_values(nn, {10});
    expect_values(v1, {14});
    expect_values(v2, {14});
  }
  EXPECT_EQ(conds, is_eager() ? 12 : 1);
  EXPECT_EQ(bodies, is_eager() ? 10 : 1);
}

TEST_P(TensorFlowValues, V12_VectorOfOneElementIsStateAndSteersTheLoop) {
  const auto loop = run([](Tensor x) {
    return while_loop([](Tensor x) { return gather(x, scalar(0), 0) < 10000; },
                      [](Tensor x) { return stack({gather(x, scalar(0), 0) + 1}); }, x);
  });
  const Tensor last = loop(tensor({0}));
  EXPECT_EQ(str(last.type()), "i32[1]");
  expect_values(last, {10000});
}

TEST_P(TensorFlowValues, V13_ConditionOfOneElementOfAnyRank) {
  const auto loop = run([](Tensor x, Tensor y) {
    return while_loop([](Tensor v, Tensor) { return v < 45.0; },
                      [](Tensor v, Tensor w) {
                        return std::tuple{v * w, w};
                      },
                      std::tuple{x, y});
  });
  const auto [v, w] = loop(tensor({{5.}}), scalar(3.0));
  EXPECT_EQ(str(v.type()), "f32[1,1]");
  expect_values(v, {45});
  expect_values(w, {3});
  expect_values(std::get<0>(loop(tensor({{{50.}}}), scalar(3.0))), {50});  // false at once
}

TEST_P(TensorFlowValues, V14_ManyIterationsOnOneCounter) {
  const auto loop = run([](Tensor i) {
    return while_loop([](Tensor i) { return i < 1000.0; },
                      [](Tensor i) { return square(scalar(2.0)) + i; }, i);
  });
  expect_values(loop(scalar(0.0)), {1000});
}

TEST_P(TensorFlowValues, V15_SumsTheSquaresOfItsCounter) {
  const auto loop = run([](Tensor i) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 10; },
                                  [](Tensor i, Tensor r) {
                                    return std::tuple{i + 1, r + i * i};
                                  },
                                  std::tuple{i, 0}));
  });
  expect_values(loop(scalar(0)), {285});
  expect_values(loop(scalar(9)), {81});
}

TEST_P(TensorFlowValues, V18_EndsWhereTheStateCrossesTheBound) {
  const auto loop = run([](Tensor x) {
    return while_loop([](Tensor x) { return x <= 8.0; }, [](Tensor x) { return 2.0 * x; }, x);
  });
  expect_values(loop(scalar(1.0)), {16});
  expect_values(loop(scalar(3.0)), {12});
  EXPECT_EQ(loop.trace_count(), 1);
}

TEST_P(TensorFlowValues, V19_BodyMayReturnAConstant) {
  const auto loop = run([](Tensor start) {
    return while_loop([](Tensor step, Tensor) { return step < 10; },
                      [](Tensor step, Tensor) {
                        return std::tuple{step + 1, 7};
                      },
                      std::tuple{start, 42});
  });
  const auto [step, constant] = loop(scalar(0));
  expect_values(step, {10});
  expect_values(constant, {7});
  const auto [none, initial] = loop(scalar(10));  // no iteration: no constant either
  expect_values(none, {10});
  expect_values(initial, {42});
}

TEST_P(TensorFlowValues, V19_BodyMayReturnACaptureOrTheOtherState) {
  const auto loop = run([](Tensor n, Tensor w) {
    return while_loop([&](Tensor i, Tensor, Tensor, Tensor) { return i < n; },
                      [&](Tensor i, Tensor a, Tensor b, Tensor) {
                        return std::tuple{i + 1, b, a + w, w};
                      },
                      std::tuple{scalar(0), scalar(1), scalar(10), scalar(0)});
  });
  // a and b are swapped, and the new b grows by w.
  const double expected[][3] = {{1, 10, 0}, {10, 101, 100}, {101, 110, 100}, {110, 201, 100}};
  for (int n = 0; n < 4; ++n) {
    const auto [i, a, b, c] = loop(scalar(n), scalar(100));
    expect_values(i, {double(n)});
    expect_values(a, {expected[n][0]});
    expect_values(b, {expected[n][1]});
    expect_values(c, {expected[n][2]});
  }
  EXPECT_EQ(loop.trace_count(), 1);
}

TEST_P(TensorFlowValues, V19_OneTensorMayStandInSeveralPlacesOfTheState) {
  const auto aliases = run([](Tensor x) {
    return while_loop([&](Tensor i, Tensor, Tensor) { return i < 3; },
                      [&](Tensor i, Tensor a, Tensor b) {
                        const Tensor both = a + b + x;
                        return std::tuple{i + 1, both, both};
                      },
                      std::tuple{x, x, x});
  });
  // From i = 1, two iterations: 1 + 1 + 1, then 3 + 3 + 1.
  const auto [i, a, b] = aliases(scalar(1));
  expect_values(i, {3});
  expect_values(a, {7});
  expect_values(b, {7});
}

TEST_P(TensorFlowValues, V21_CounterAndAVectorOfTenThousand) {
  const auto loop = run([](Tensor n) {
    return while_loop([&](Tensor i, Tensor) { return i < n; },
                      [](Tensor i, Tensor x) {
                        return std::tuple{i + 1, x + 1};
                      },
                      std::tuple{0, range(10000)});
  });
  const auto [i, out] = loop(scalar(10000));
  expect_values(i, {10000});
  EXPECT_EQ(str(out.type()), "i32[10000]");
  expect_same_bits(out, range(10000) + 10000);
}

TEST_P(TensorFlowValues, V22_AddsItsCounterToALargeState) {
  const auto loop = run([](Tensor x) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 10; },
                                  [](Tensor i, Tensor x) {
                                    return std::tuple{i + 1, x + i};
                                  },
                                  std::tuple{0, x}));
  });
  expect_same_bits(loop(zeros({1000, 100}, i32)), full({1000, 100}, 45, i32));
  expect_same_bits(loop(zeros({0, 100}, i32)), zeros({0, 100}, i32));  // nothing to add to
}

TEST_P(TensorFlowValues, V23_ConstantThatTheConditionSees) {
  const auto beside = run([](Tensor n) {
    return std::get<1>(while_loop([](Tensor n, Tensor) { return n < 10; },
                                  [](Tensor n, Tensor) {
                                    return std::tuple{n + 1, 12};
                                  },
                                  std::tuple{n, 0}));
  });
  expect_values(beside(scalar(0)), {12});
  const auto alone = run([](Tensor r) {
    return while_loop([](Tensor r) { return r < 10; }, [](Tensor) { return scalar(12); }, r);
  });
  expect_values(alone(scalar(0)), {12});
  expect_values(alone(scalar(11)), {11});
}

TEST_P(TensorFlowValues, V24_JittedFunctionAsBodyAndAsCondition) {
  const auto increment = jit([](Tensor x) { return x + 1; });
  const auto below = jit([](Tensor x) { return x < 5; });
  const auto loop =
      run([=](Tensor x) { return while_loop([](Tensor x) { return x < 5; }, increment, x); });
  expect_values(loop(scalar(0)), {5});
  const auto both = run([=](Tensor x) { return while_loop(below, increment, x); });
  expect_values(both(scalar(0)), {5});
  expect_values(both(scalar(9)), {9});
}

TEST_P(TensorFlowValues, StateMayHaveItsDimsInAnotherOrderAndComesBackInTheFirst) {
  const Dim batch("batch", 2), feature("feature", 3);
  const auto loop = run([&](Tensor x) {
    return while_loop([](Tensor i, Tensor) { return i < 3; },
                      [&](Tensor i, Tensor x) {
                        return std::tuple{i + 1, transpose(x, {feature, batch}) * 2.0};
                      },
                      std::tuple{scalar(0), x});
  });
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}}, {batch, feature});
  const auto [i, last] = loop(x);
  EXPECT_TRUE(last.dims() == x.dims());
  expect_values(last, {8, 16, 24, 32, 40, 48});
}

TEST_P(TensorFlowValues, ConditionMayReadCapturesAndAllOfTheState) {
  const auto loop = run([](Tensor limit, Tensor flags) {
    return while_loop([&](Tensor i, Tensor going) { return (i < limit) && any(going && flags); },
                      [&](Tensor i, Tensor going) {
                        return std::tuple{i + 1, going && (range(4) > i)};
                      },
                      std::tuple{scalar(0), full({4}, true, boolean)});
  });
  // Flags 0..2 are set: flag 2 goes on until i = 2 has been handled.
  const Tensor flags = tensor({true, true, true, false});
  const auto [i, going] = loop(scalar(10), flags);
  expect_values(i, {3});
  expect_values(going, {0, 0, 0, 1});
  expect_values(std::get<0>(loop(scalar(2), flags)), {2});
  expect_values(std::get<0>(loop(scalar(10), full({4}, false, boolean))), {0});
}

}  // namespace
}  // namespace reel
