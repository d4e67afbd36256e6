// jit: signatures, captures, dims, random numbers, tapes around it, errors.
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Point {
  Tensor x;
  int power;
};

TEST(JitTest, TracesOncePerSignature) {
  auto f = jit([](Tensor x) { return x * 2.0; });
  f(ones({3}));
  f(zeros({3}));
  EXPECT_EQ(f.trace_count(), 1);
  f(ones({4}));
  f(ones({3}, f64));
  EXPECT_EQ(f.trace_count(), 3);
}

TEST(JitTest, DimsAreAPatternNotIdentities) {
  auto f = jit([](Tensor a, Tensor b) { return sum(a * b); });
  for (int i = 0; i < 3; ++i) {
    const Dim batch("batch", 2), feature("feature", 3);
    f(ones({batch, feature}), ones({batch, feature}));
  }
  EXPECT_EQ(f.trace_count(), 1);
  const Dim batch("batch", 2), feature("feature", 3), other("feature", 3);
  EXPECT_THROW(f(ones({batch, feature}), ones({batch, other})),
               ShapeError);  // another pattern: traced, and refused
}

TEST(JitTest, ResultsCarryTheCallersDims) {
  auto f = jit([](Tensor x) { return std::tuple{x + 1.0, sum(x, x.dim("time")), x.dim("time")}; });
  for (const int length : {3, 5}) {
    const Dim batch("batch", 2), time("time", tensor({length, 1}, {batch}));
    const auto [y, total, dim] = f(ones({batch, time}));
    EXPECT_EQ(y.dims(), (Dims{batch, time}));
    EXPECT_EQ(total.dims(), Dims{batch});
    EXPECT_EQ(dim, time);
    expect_values(total, {double(length), 1});
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(JitTest, DimsBornInTheTraceAreNewInEveryCallAndSharedInOne) {
  auto f = jit([](Tensor x) {
    const Dim slot("slot", 2);
    const Tensor s = stack({x, x * 2.0}, slot);
    return std::tuple{s, s + 1.0};
  });
  const Dim batch("batch", 3);
  const auto [a, b] = f(ones({batch}));
  const auto [c, d] = f(ones({batch}));
  EXPECT_EQ(a.dims(), b.dims());
  EXPECT_FALSE(a.dim("slot") == c.dim("slot"));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(JitTest, CapturedDimOfAnArgumentIsGuarded) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch})),
      other("time", tensor({2, 2}, {batch}));
  auto stale = jit([&](Tensor x) { return sum(x, time); }, {.name = "stale"});
  expect_values(stale(ones({batch, time})), {3, 1});
  EXPECT_EQ(message_of<ShapeError>([&] {
              stale(ones({batch, other}));
            }),
            "jit \"stale\": the function names dim time[batch=2] itself, but this call's argument "
            "has time[batch=2]; the two called time are not one Dim: use one Dim for both, as "
            "x.dim(\"time\") gives it");
}

TEST(JitTest, NumbersInStructsArePartOfTheSignature) {
  auto f = jit([](const Point& p) { return p.power == 2 ? p.x * p.x : p.x; });
  expect_values(f(Point{scalar(3.0), 2}), {9});
  expect_values(f(Point{scalar(3.0), 1}), {3});
  EXPECT_EQ(f.trace_count(), 2);
}

TEST(JitTest, WarnsAtTheNinthTraceWhichNumberChanges) {
  auto f = jit([](Tensor x, int n) { return x * n; }, {.name = "scaled"});
  testing::internal::CaptureStderr();
  for (int n = 0; n < 10; ++n) f(scalar(1.0), n);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "reel: jit \"scaled\" traces for the ninth time; argument 1, 8, was 0 at first, "
            "and every value keeps a graph and plans of its own. Pass what changes from call to "
            "call as a Tensor: scalar(x).\n");
}

TEST(JitTest, WarnsAtTheNinthTraceWhichSizeChanges) {
  const auto sum_of_squares = [](const Tensor& x, const Tensor& w) { return sum(square(x * w)); };
  const Dim batch("batch", 2);
  const auto said = [&](const auto& x_of) {
    auto f = jit(sum_of_squares, {.name = "padded"});
    testing::internal::CaptureStderr();
    for (int steps = 20; steps < 32; ++steps) f(x_of(steps), scalar(2.0f));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said([&](int steps) {
              return ones({Dim("time", steps), batch});
            }),
            "reel: jit \"padded\" traces for the ninth time; the size of dim time, 28, was 20 at "
            "first, and every value keeps a graph and plans of its own. One trace serves all sizes "
            "with JitOptions{.dynamic = {Dim(\"time\")}}.\n");
  EXPECT_EQ(said([&](int steps) {
              return ones({2, steps});
            }),
            "reel: jit \"padded\" traces for the ninth time; the size of axis 1 of argument 0, 28, "
            "was 20 at first, and every value keeps a graph and plans of its own. One trace "
            "serves all sizes with JitOptions{.any_length = {{0, 1}}}.\n");
  EXPECT_EQ(said([&](int steps) { return ones({Dim("time", scalar(steps)), batch}); }), "");
}

TEST(JitTest, ListsItsCaptures) {
  const Tensor w = ones({3});
  auto f = jit([&](Tensor x) { return x * w + scalar(1.0); });
  f(ones({3}));
  ASSERT_EQ(f.captures().size(), 1u);
  EXPECT_EQ(f.captures()[0].block(), w.block());
}

TEST(JitTest, AdvancesTheRandomStreamAsEagerDoes) {
  const auto draw = [](Tensor x) { return x + random_uniform({2}) + random_normal({2}); };
  manual_seed(5);
  const Tensor a = draw(zeros({2})), b = draw(zeros({2})), after = random_uniform({1});
  manual_seed(5);
  auto traced = jit(draw);
  expect_same_bits(traced(zeros({2})), a);
  expect_same_bits(traced(zeros({2})), b);
  expect_same_bits(random_uniform({1}), after);
}

TEST(JitTest, ThrowingFunctionLeavesTheCacheClean) {
  bool fails = true;
  auto f = jit([&](Tensor x) {
    if (fails) throw std::runtime_error("not yet");
    return x + 1.0;
  });
  EXPECT_THROW(f(scalar(1.0)), std::runtime_error);
  EXPECT_EQ(f.trace_count(), 0);
  fails = false;
  expect_values(f(scalar(1.0)), {2});
}

TEST(JitTest, ValueThatIsNotKnownCannotSteerCpp) {
  auto f = jit([](Tensor x) { return x.item<float>() > 0 ? x : -x; });
  const std::string message = message_of<TraceError>([&] { f(scalar(1.0)); });
  EXPECT_NE(message.find("cond"), std::string::npos) << message;
  EXPECT_NE(message.find("while_loop"), std::string::npos) << message;
}

TEST(JitTest, CallUnderATapeIsReversedAsAGraph) {
  const Tensor w = scalar(3.0);
  auto f = jit([&](Tensor x) {
    return while_loop([](Tensor v) { return v < 100; }, [&](Tensor v) { return v * w; }, x);
  });
  Tape tape;
  const Tensor x = scalar(2.0);
  tape.watch(std::pair{x, w});
  const Tensor y = f(x);
  const auto [dx, dw] = tape.gradient(y, std::pair{x, w});
  expect_values(y, {162});
  expect_values(dx, {81});
  expect_values(dw, {216});  // of a captured tensor, too
  expect_values(grad(grad(f))(scalar(2.0)), {0});
  const auto cube = jit([](Tensor x) { return x * x * x; });
  expect_values(grad(grad(cube))(scalar(2.0)), {12});
  expect_values(grad(grad(grad(cube)))(scalar(2.0)), {6});
}

TEST(JitTest, InsideAnotherTraceItIsPartOfIt) {
  auto inner = jit([](Tensor x) { return x * x; });
  auto outer = jit([&](Tensor x) { return inner(x) + inner(x + 1.0); });
  expect_values(outer(scalar(2.0)), {13});
  EXPECT_EQ(inner.trace_count(), 0);
}

TEST(JitTest, DumpHasStableNames) {
  auto f = jit([](Tensor x) { return x * x + x * x; }, {.name = "f"});
  f(scalar(1.0));
  EXPECT_EQ(str(f.graph()),
            "f(%0: f32[], %1: i64[2]) {\n"
            "  %2: f32[] = mul(%0, %0)\n"
            "  %3: f32[] = add(%2, %2)\n"
            "  return %3\n"
            "}\n");
}

}  // namespace
}  // namespace reel
