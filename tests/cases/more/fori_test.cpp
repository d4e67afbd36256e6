// fori_loop: cases after JAX's tests.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using MoreFori = InEveryMode;
REEL_IN_EVERY_MODE(MoreFori);

TEST_P(MoreFori, J12_UnrollChangesNothing) {
  for (const int unroll : {1, 2, 3, 10}) {
    const auto count = run([=](const Tensor& c) {
      return fori_loop(0, 10, [](const Tensor&, const Tensor& c) { return c + 1; }, c,
                       {.unroll = unroll});
    });
    expect_values(count(scalar(10)), {20});
  }
}

TEST_P(MoreFori, J13_ALoopWithoutIterationsReturnsItsInitialValue) {
  int calls = 0;
  const auto body = [&](const Tensor& i, const Tensor& c) {
    ++calls;
    return c + cast(i, f32);
  };
  for (const int upper : {0, -1}) {
    const auto by_number = run([=](const Tensor& c) { return fori_loop(0, upper, body, c); });
    expect_values(by_number(scalar(10.0)), {10});
    const auto by_tensor =
        run([=](const Tensor& c, const Tensor& n) { return fori_loop(0, n, body, c); });
    expect_values(by_tensor(scalar(10.0), scalar(upper)), {10});
    const auto gradient = run(grad([=](const Tensor& c) { return fori_loop(0, upper, body, c); }));
    expect_values(gradient(scalar(10.0)), {1});
  }
  if (is_eager()) {
    EXPECT_EQ(calls, 0);
  }
}

TEST_P(MoreFori, J14_SumsItsCounter) {
  const auto total = [](const Tensor& i, const Tensor& c) { return c + i; };
  const auto by_tensor = run([=](const Tensor& n) { return fori_loop(0, n, total, 0); });
  for (const auto& [n, expected] : {std::pair{2, 1}, {3, 3}, {4, 6}}) {
    const auto by_number = run([=, n = n](const Tensor& c) { return fori_loop(0, n, total, c); });
    expect_values(by_number(scalar(0)), {double(expected)});
    expect_values(by_tensor(scalar(n)), {double(expected)});
  }
  EXPECT_EQ(by_tensor.trace_count(), 1);
}

TEST_P(MoreFori, J15_ClosesOverItsBound) {
  const auto total = run([](const Tensor& n) {
    return fori_loop(
        0, n, [&](const Tensor& i, const Tensor& c) { return c + i + n; }, 0);
  });
  for (const auto& [n, expected] : {std::pair{2, 5}, {3, 12}, {4, 22}})
    expect_values(total(scalar(n)), {double(expected)});
  EXPECT_EQ(total.trace_count(), 1);
}

TEST_P(MoreFori, J30_UnrollingGivesTheSameBitsAndTheSameGraph) {
  const auto chain = [](int unroll) {
    return [=](const Tensor& x) {
      return fori_loop(
          0, 20, [](const Tensor& i, const Tensor& x) { return sin(x) * 0.9 + cast(i, f64) * 0.1; },
          x, {.unroll = unroll});
    };
  };
  const Tensor x = scalar(0.3, f64);
  const Tensor expected = chain(1)(x), expected_gradient = grad(chain(1))(x);
  for (const int unroll : {1, 2, 20}) {
    expect_same_bits(run(chain(unroll))(x), expected);
    expect_same_bits(run(grad(chain(unroll)))(x), expected_gradient);
    expect_gradient_of(chain(unroll), x, expected_gradient);
    const auto traced = jit(chain(unroll)), once = jit(chain(1));
    traced(x), once(x);
    EXPECT_EQ(str(traced.graph()), str(once.graph()));
  }
}

TEST_P(MoreFori, J34_GradientsOfRepeatedProducts) {
  const auto doubles = [](const Tensor& x) {
    return fori_loop(
        0, 3, [](const Tensor&, const Tensor& x) { return x * 2; }, x);
  };
  expect_values(run(doubles)(scalar(2.0)), {16});
  expect_values(run(grad(doubles))(scalar(2.0)), {8});
  const auto factorial = [](const Tensor& x) {
    return fori_loop(
        0, 3, [](const Tensor& i, const Tensor& x) { return x * cast(i + 1, x.dtype()); }, x);
  };
  expect_values(run(factorial)(scalar(2.0)), {12});
  expect_values(run(grad(factorial))(scalar(2.0)), {6});
}

TEST_P(MoreFori, CountsFromAnywhereInTheDtypeOfItsBounds) {
  const auto sum_from = [](auto lower, auto upper) {
    return fori_loop(
        lower, upper, [](const Tensor& i, const Tensor& s) { return s + cast(i, i64); },
        scalar(0, i64));
  };
  expect_values(run([=](const Tensor& n) { return sum_from(-2, n); })(scalar(3)), {0});
  expect_values(run([=](const Tensor& n) { return sum_from(n, 5); })(scalar(3, i64)), {7});
  const std::int64_t far = std::int64_t{1} << 40;
  const auto beyond = run([=](const Tensor& zero) { return sum_from(far, far + 2) + zero; });
  EXPECT_EQ(beyond(scalar(0, i64)).item<std::int64_t>(), 2 * far + 1);
  const auto dtype_of = [](const IterationCount& lower, const IterationCount& upper) {
    DType seen = boolean;
    fori_loop(
        lower, upper, [&](const Tensor& i, const Tensor& s) { return seen = i.dtype(), s; }, 0);
    return seen;
  };
  EXPECT_EQ(dtype_of(0, 1), i32);
  EXPECT_EQ(dtype_of(0, scalar(1, i64)), i64);
  EXPECT_EQ(dtype_of(far, far + 1), i64);
}

struct Encoder {
  Tensor h;
  std::pair<Tensor, int> rest;
};

TEST_P(MoreFori, StatesAreTreesAndEntriesMayBeRagged) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const auto f = run([](const Tensor& x, const Tensor& n) {
    const Encoder last = fori_loop(
        0, n,
        [](const Tensor& i, const Encoder& s) {
          return Encoder{s.h * 2.0, {s.rest.first + sum(s.h) + cast(i, f32), s.rest.second}};
        },
        Encoder{x, {scalar(0.0), 7}});
    return sum(last.h) * 1000 + last.rest.first + last.rest.second;
  });
  expect_values(f(tensor({1., 2., 3., std::nan("")}, {batch, time}), scalar(2)), {24026});
}

TEST_P(MoreFori, ErrorsOfBoundsAndUnroll) {
  const auto body = [](const Tensor&, const Tensor& x) { return x; };
  EXPECT_EQ(message_of<ArgumentError>([&] {
              run([=](const Tensor& x) {
                return fori_loop(0, 3, body, x, {.unroll = -1, .name = "steps"});
              })(scalar(1.0));
            }),
            "fori_loop \"steps\": unroll must be at least 1, got -1");
  EXPECT_EQ(message_of<DTypeError>([&] {
              run([=](const Tensor& x) { return fori_loop(0, x, body, x); })(scalar(1.0));
            }),
            "fori_loop \"fori_loop\": upper must be an integer, got f32[]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([=](const Tensor& x) { return fori_loop(x, 3, body, x); })(tensor({1, 2}));
            }),
            "fori_loop \"fori_loop\": lower must be a scalar, got i32[2]");
  EXPECT_EQ(message_of<DTypeError>([&] {
              run([=](const Tensor& x) { return fori_loop(x, cast(x, i64), body, x); })(scalar(1));
            }),
            "fori_loop \"fori_loop\": lower is i32[], upper is i64[]: dtypes differ; cast one");
  EXPECT_EQ(
      message_of<DTypeError>([&] {
        run([](const Tensor& x) {
          return fori_loop(
                     0, 2,
                     [](const Tensor&, const Encoder& s) {
                       return Encoder{s.h > 0, s.rest};
                     },
                     Encoder{x, {x, 1}})
              .h;
        })(scalar(1.0));
      }),
      "fori_loop \"fori_loop\": the state returned by the body differs from the state it was given"
      "\n  state.h: f32[] going in, boolean[] coming out (dtypes differ)"
      "\nReturn every leaf with the type it had on entry.");
  EXPECT_EQ(message_of<StructureError>([&] {
              run([](const Tensor& x) {
                return fori_loop(
                    0, 2,
                    [](const Tensor&, std::vector<Tensor> s) {
                      s.push_back(s[0]);
                      return s;
                    },
                    std::vector<Tensor>{x})[0];
              })(scalar(1.0));
            }),
            "fori_loop \"fori_loop\": the state returned by the body differs from the state it was "
            "given\n  state.1: nothing going in, f32[] coming out\nReturn every leaf with the type "
            "it had on entry. A container keeps its size and its keys from iteration to iteration; "
            "a list that grows can be a TensorArray.");
}

TEST_P(MoreFori, BoundsFarApart) {
  constexpr std::int64_t kMaxBound = INT64_MAX, kLeast = INT64_MIN;
  const auto body = [](const Tensor&, const Tensor& c) { return c + 1; };
  expect_values(
      run([&](const Tensor& c) { return fori_loop(kMaxBound, kLeast, body, c); })(scalar(5)), {5});
  expect_values(run([&](const Tensor& c, const Tensor& lower, const Tensor& upper) {
                  return fori_loop(lower, upper, body, c);
                })(scalar(5), scalar(kMaxBound, i64), scalar(kLeast, i64)),
                {5});
  EXPECT_EQ(
      message_of<ArgumentError>([&] { fori_loop(kLeast, kMaxBound, body, scalar(5)); }),
      "fori_loop \"fori_loop\": from -9223372036854775808 to 9223372036854775807 are more steps "
      "than can be counted");
}

}  // namespace
}  // namespace reel
