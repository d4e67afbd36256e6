// Tape, grad, value_and_grad and vjp.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using GradTest = InEveryMode;
REEL_IN_EVERY_MODE(GradTest);

struct Mixed {
  Tensor w;
  Tensor count;
  int layers;
  Dim batch;
};

TEST_P(GradTest, HasTheTypeOfTheArgument) {
  const Dim batch("batch", 2);
  const auto f = [](const Mixed& m) { return sum(square(m.w), m.batch); };
  const Mixed g = run(grad(f))(Mixed{tensor({1., 2.}, {batch}), scalar(7), 3, batch});
  expect_values(g.w, {2, 4});
  expect_values(g.count, {0});
  EXPECT_EQ(g.count.dtype(), i32);
  EXPECT_EQ(g.layers, 3);
  EXPECT_EQ(g.batch, batch);
}

TEST_P(GradTest, AuxiliaryOutputComesAlong) {
  const auto f = [](Tensor x) { return std::pair{square(x), std::tuple{x + 1.0, scalar(5)}}; };
  const auto [both, g] = run(value_and_grad(f))(scalar(3.0));
  expect_values(both.first, {9});
  expect_values(std::get<0>(both.second), {4});
  expect_values(std::get<1>(both.second), {5});
  expect_values(g, {6});
}

TEST_P(GradTest, IsThatOfTheArgumentAlone) {
  // f also captures the tensor that it is called with.
  const Tensor x = scalar(3.0);
  const auto f = [&](Tensor y) { return y * x; };
  expect_values(run(grad(f))(x), {3});
}

TEST_P(GradTest, StopGradientCuts) {
  expect_values(run(grad([](Tensor x) { return stop_gradient(x * x) * x; }))(scalar(3.0)), {9});
}

TEST_P(GradTest, PullbackMayBeCalledAgain) {
  const auto f = run([](Tensor x) {
    const auto [y, pullback] = vjp([](Tensor x) { return std::pair{x * x, x * 3.0}; }, x);
    return std::tuple{y.first, pullback(std::pair{scalar(1.0), scalar(0.0)}),
                      pullback(std::pair{scalar(1.0), scalar(2.0)})};
  });
  const auto [y, first, second] = f(scalar(4.0));
  expect_values(y, {16});
  expect_values(first, {8});
  expect_values(second, {14});
}

TEST_P(GradTest, ACotangentOfAnotherStructureIsRefused) {
  const Tensor x = tensor({1., 2.});
  const auto pulled = [&](const Tensors& cotangent) {
    return run([&](const Tensor& x) {
      return vjp([](const Tensor& x) { return Tensors{x * 2., x * 3.}; }, x).second(cotangent);
    })(x);
  };
  expect_values(pulled({ones({2}), ones({2})}), {5, 5});
  for (const Tensors& cotangent : {Tensors{ones({2})}, Tensors{x, x, x}, Tensors{}})
    EXPECT_EQ(message_of<StructureError>([&] { pulled(cotangent); }),
              str("vjp: the cotangent has another structure than the value\n  the tree: of size 2, "
                  "its cotangent of size ",
                  cotangent.size()));
}

TEST_P(GradTest, MustStartFromAFloatingScalar) {
  EXPECT_EQ(message_of<ShapeError>([&] { run(grad([](Tensor x) { return x * 2.0; }))(ones({2})); }),
            "grad: the function must return a scalar, got f32[2]; reduce it, with sum or mean");
  EXPECT_EQ(message_of<DTypeError>(
                [&] { run(grad([](Tensor x) { return cast(x, i32); }))(scalar(1.0)); }),
            "grad: the function must return a floating scalar, got i32[]; cast it");
}

TEST(TapeTest, WatchesTreesAndNests) {
  Tape outer;
  const Tensor x = scalar(2.0);
  outer.watch(x);
  Tensor first;
  {
    Tape inner;
    inner.watch(x);
    first = inner.gradient(x * x * x, x);
  }
  expect_values(first, {12});
  expect_values(outer.gradient(first, x), {12});
}

TEST(TapeTest, ReleasesResidualsUnlessPersistent) {
  const Tensor x = scalar(2.0);
  Tape once;
  once.watch(x);
  const Tensor y = x * x;
  once.gradient(y, x);
  EXPECT_EQ(message_of<ArgumentError>([&] { once.gradient(y, x); }),
            "Tape: gradient was asked twice of a tape that is not persistent; make it with "
            "Tape({.persistent = true})");
  Tape often({.persistent = true});
  often.watch(x);
  const Tensor z = x * x * x;
  expect_values(often.gradient(z, x), {12});
  expect_values(often.gradient(z, x), {12});
}

TEST(TapeTest, ChainOfAMillionOpsIsDifferentiatedAndFreed) {
  Tape tape;
  const Tensor x = scalar(1.0, f64);
  tape.watch(x);
  Tensor y = x;
  for (int i = 0; i < 1'000'000; ++i) y = y + 1e-6;
  expect_values(tape.gradient(y, x), {1});
}

TEST(TapeTest, LoopOfALargeNumberOfIterationsInATrace) {
  auto f = jit(grad([](Tensor x) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 100'000; },
                                  [](Tensor i, Tensor y) {
                                    return std::tuple{i + 1, y * 1.00001};
                                  },
                                  std::tuple{0, x}));
  }));
  expect_values(f(scalar(1.0, f64)), {std::pow(1.00001, 100'000)}, 1e-9);
}

TEST(GradArgumentsTest, TheFirstMayBeATuple) {
  const auto f = [](const std::tuple<Tensor, Tensor>& x) {
    return sum(std::get<0>(x) * std::get<1>(x));
  };
  const auto [a, b] = grad(f)(std::tuple{tensor({1.0, 2.0}), tensor({3.0, 4.0})});
  expect_values(a, {3, 4});
  expect_values(b, {1, 2});
}

}  // namespace
}  // namespace reel
