// TensorArray as RETURNN's users know it, in every mode. The work of gradients through reads and
// pushes grows linearly with their number.
#include "reel/core/types/block.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

using ReturnnTensorArray = InEveryMode;
REEL_IN_EVERY_MODE(ReturnnTensorArray);

struct Writing {
  Tensor i;
  TensorArray array;
};

TEST_P(ReturnnTensorArray, Case73_StackHasThePushedElements) {
  const Dim batch("batch", 3), n("n", 2);
  const auto f = run([&](Tensor a, Tensor b) {
    return TensorArray({f32, {batch}}).push_back(a).push_back(b).stack(n);
  });
  const Tensor all = f(zeros({batch}), ones({batch}));
  EXPECT_EQ(str(all.type()), "f32[n=2,batch=3]");
  expect_values(all, {0, 0, 0, 1, 1, 1});
}

TEST_P(ReturnnTensorArray, Case74_WritesLeaveTheOldArrayUnchanged) {
  const auto f = run([](Tensor a, Tensor b) {
    const TensorArray empty({f32, {}});
    const TensorArray one = empty.push_back(a), other = empty.push_back(b);
    const TensorArray written = one.write(0, b),
                      scattered = one.scatter(tensor({0}), stack({b}, 0));
    return std::tuple{empty.size(), one.size(), other.size(), one[0],
                      other[0],     written[0], scattered[0]};
  });
  const auto [none, size, other_size, a, b, written, scattered] = f(scalar(1.0), scalar(2.0));
  expect_values(none, {0});
  expect_values(size, {1});
  expect_values(other_size, {1});
  expect_values(a, {1});
  expect_values(b, {2});
  expect_values(written, {2});
  expect_values(scattered, {2});
}

TEST_P(ReturnnTensorArray, Case75_Case78_PushesInALoopLeaveTheInitialArrayUnchanged) {
  const auto fibonacci = run([](Tensor n) {
    const TensorArray start = TensorArray({f32, {}}).push_back(scalar(1.0)).push_back(scalar(1.0));
    const TensorArray all =
        while_loop(
            [&](const Writing& s) { return s.i < n; },
            [](const Writing& s) {
              return Writing{s.i + 1, s.array.push_back(s.array[s.i - 1] + s.array[s.i - 2])};
            },
            Writing{scalar(2), start})
            .array;
    return std::tuple{all.stack(), all.size(), start.size()};
  });
  const auto [values, size, start_size] = fibonacci(scalar(6));
  expect_values(values, {1, 1, 2, 3, 5, 8});
  expect_values(size, {6});
  expect_values(start_size, {2});
}

TEST_P(ReturnnTensorArray, Case76_StackInvertsUnstack) {
  const Dim batch("batch", 3);
  const Dim time("time", tensor({3, 2, 1}, {batch}));
  const auto f = run([&](Tensor x) {
    const Dim along = x.dim("time");
    return TensorArray::unstack(x, along).stack(along);
  });
  const Tensor x = tensor({1., 2., 3., 4., 5., 6., 7., 8., 9.}, {batch, time});
  const Tensor again = f(x);
  EXPECT_EQ(str(again.type()), "f32[time[batch=3],batch=3]");
  expect_values(transpose(again, {batch, time}), {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_P(ReturnnTensorArray, Case77_IndexMayBeNegativeOrATensor) {
  const auto f = run([](Tensor x, Tensor i) {
    const TensorArray array = TensorArray::unstack(x, 0);
    return std::tuple{array[1], array[-1], array[i], array[cast(i, i64) - 2]};
  });
  const auto [number, last, at, behind] = f(tensor({1., 2., 3.}), scalar(1));
  expect_values(number, {2});
  expect_values(last, {3});
  expect_values(at, {2});
  expect_values(behind, {3});
}

TEST_P(ReturnnTensorArray, Case80_PushTransposesToTheElementType) {
  const Dim batch("batch", 2), feature("feature", 3);
  const auto f = run([&](Tensor a, Tensor b) {
    return TensorArray({f32, {feature, batch}}).push_back(a).push_back(b).stack(Dim("n", 2));
  });
  const Tensor a = random_normal({feature, batch});
  const Tensor all = f(a, transpose(a, {batch, feature}));
  EXPECT_EQ(str(all.type()), "f32[n=2,feature=3,batch=2]");
  const Tensors both = unstack(all, 0);
  expect_same_bits(both[0], a);
  expect_same_bits(both[1], a);
}

TEST_P(ReturnnTensorArray, Case81_EmptyArrayStacksAlongADimOfSizeZero) {
  const Dim batch("batch", 3), none("none", 0);
  const auto f = run([&](TensorArray array) { return array.stack(none); });
  EXPECT_EQ(str(f(TensorArray({f32, {batch}})).type()), "f32[none=0,batch=3]");
}

/// Expects that whole(x) makes about twice as many tensors as half(y).
template <class F>
void expect_twice_the_tensors(const F& whole, const Tensor& x, const F& half, const Tensor& y,
                              RunMode mode) {
  if (mode == RunMode::dataflow_threads) return;  // ids are counted by thread
  const Threads one(1);
  const auto made = [](const F& f, const Tensor& x) {
    const std::uint64_t before = next_block_id();
    f(x);
    return static_cast<double>(next_block_id() - before);
  };
  EXPECT_NEAR(made(whole, x) / made(half, y), 2, 0.05);
}

TEST_P(ReturnnTensorArray, Case82_GradientOfPushesTakesLinearlyManyTensors) {
  const auto pushes = [](int n) {
    return [n](Tensor x) {
      const TensorArray all =
          while_loop([n](const Writing& s) { return s.i < n; },
                     [&](const Writing& s) {
                       return Writing{s.i + 1, s.array.push_back(x * cast(s.i, f32))};
                     },
                     Writing{scalar(0), TensorArray({f32, {}})})
              .array;
      return sum(all.stack());
    };
  };
  expect_values(run(grad(pushes(10000)))(scalar(1.0)), {10000. * 9999. / 2}, 1e-4);
  const auto half = run(grad(pushes(5000))), whole = run(grad(pushes(10000)));
  half(scalar(1.0)), whole(scalar(1.0));  // records both, if the mode does
  expect_twice_the_tensors(whole, scalar(1.0), half, scalar(1.0), GetParam());
}

TEST_P(ReturnnTensorArray, ReadsInALoopAreLinearInReverse) {
  // Reads every element twice: from the front and from the back.
  const auto reads = [](Tensor x) {
    const TensorArray array = TensorArray::unstack(x, 0);
    const auto [i, total] = while_loop([&](Tensor i, Tensor) { return i < array.size(); },
                                       [&](Tensor i, Tensor total) {
                                         return std::tuple{i + 1, total + array[i] * array[-1 - i]};
                                       },
                                       std::tuple{scalar(0), scalar(0.0)});
    return total;
  };
  const auto check = [&](const auto& gradient, const std::vector<double>& of_three) {
    expect_values(gradient(tensor({1., 2., 3.})), of_three);
    const Tensor half = ones({2000}), whole = ones({4000});
    gradient(half), gradient(whole);  // records both, if the mode does
    expect_twice_the_tensors(gradient, whole, gradient, half, GetParam());
  };
  check(run(grad(reads)), {6, 4, 2});
  check(run(grad([=](Tensor x) { return sum(grad(reads)(x)); })), {2, 2, 2});
}

// An array that the body reads and writes is a carry, and so is its cotangent.
TEST_P(ReturnnTensorArray, ReadsOfACarriedArrayAreLinearInReverse) {
  const auto recurrence = [](int n) {
    return [n](Tensor x) {
      const TensorArray start = TensorArray({f32, {}}).push_back(x).push_back(x);
      const TensorArray all = while_loop([n](const Writing& s) { return s.i < n; },
                                         [](const Writing& s) {
                                           const Tensor next =
                                               s.array[s.i - 1] * 0.5 + s.array[s.i - 2] * 0.5;
                                           return Writing{s.i + 1, s.array.push_back(next)};
                                         },
                                         Writing{scalar(2), start})
                                  .array;
      return sum(all.stack());
    };
  };
  expect_values(run(grad(recurrence(5)))(scalar(3.0)), {5});
  const auto half = run(grad(recurrence(2000))), whole = run(grad(recurrence(4000)));
  expect_values(whole(scalar(1.0)), {4000}, 1e-4);
  half(scalar(1.0));
  expect_twice_the_tensors(whole, scalar(1.0), half, scalar(1.0), GetParam());
}

TEST_P(ReturnnTensorArray, Case114_IndicesThatAreNone) {
  const Dim batch("batch", 3);
  const auto read = run([](Tensor x, Tensor i) { return TensorArray::unstack(x, 0)[i]; });
  EXPECT_EQ(message_of<IndexError>([&] { read(ones({3}), scalar(3)); }),
            "TensorArray read: index 3 is out of range for 3 elements");
  EXPECT_EQ(message_of<IndexError>([&] { read(ones({3}), scalar(-4)); }),
            "TensorArray read: index -4 is out of range for 3 elements");
  EXPECT_EQ(message_of<IndexError>([&] { read(ones({0}), scalar(0)); }),
            "TensorArray read: index 0 is out of range for 0 elements");
  EXPECT_EQ(message_of<ShapeError>([&] { read(ones({3}), zeros({batch}, i32)); }),
            "TensorArray read: a TensorArray index must be a scalar, got i32[batch=3]");
  EXPECT_EQ(message_of<DTypeError>([&] { read(ones({3}), scalar(1.0)); }),
            "TensorArray read: a TensorArray index must be an integer, got f32[]");
}

TEST_P(ReturnnTensorArray, Case115_StackOntoADimOfAnotherSize) {
  const Dim three("three", 3), two("n", 2);
  const auto stack = run([&](TensorArray array, Dim dim) { return array.stack(dim); });
  EXPECT_EQ(message_of<ShapeError>([&] { stack(TensorArray::unstack(ones({3}), 0), two); }),
            "TensorArray stack: dim n=2 has size 2, but the array has 3 elements");
  EXPECT_EQ(message_of<ShapeError>([&] {
              stack(TensorArray({f32, {}}), three);
            }),
            "TensorArray stack: dim three=3 has size 3, but the array has 0 elements");
}

TEST_P(ReturnnTensorArray, Case116_PushesThatDoNotFitAreRefused) {
  const Dim batch("batch", 2), other("other", 2);
  const auto push = run([&](Tensor x) { return TensorArray({f32, {batch}}).push_back(x).stack(); });
  EXPECT_EQ(
      message_of<ShapeError>([&] { push(ones({other})); }),
      "TensorArray push_back: an element of type f32[other=2] does not fit an array of "
      "f32[batch=2]: dims differ; give every element the dims of the array's, in which sizes that "
      "differ are unknown");
  EXPECT_EQ(message_of<ShapeError>([&] {
              push(ones({batch, other}));
            }),
            "TensorArray push_back: an element of type f32[batch=2,other=2] does not fit an array "
            "of f32[batch=2]: dims differ; give every element the dims of the array's, in which "
            "sizes that "
            "differ are unknown");
  EXPECT_EQ(message_of<ShapeError>([&] { push(ones({Dim("batch", 2)})); }),
            "TensorArray push_back: an element of type f32[batch=2] does not fit an array of "
            "f32[batch=2]: dims differ: the two called batch are not one Dim; give every element "
            "the dims of the array's, in which sizes that differ are unknown");
  EXPECT_EQ(message_of<DTypeError>([&] { push(ones({batch}, i32)); }),
            "TensorArray push_back: an element of type i32[batch=2] does not fit an array of "
            "f32[batch=2]: dtypes differ; cast it to f32");
}

TEST_P(ReturnnTensorArray, StacksOntoARaggedDimWhoseLongestEntryIsItsSize) {  // P16
  const Dim batch("batch", 2);
  const auto f = run([&](Tensor x, Tensor lengths) {
    const Dim out("out", lengths);
    const TensorArray array = TensorArray({f32, {batch}}).push_back(x).push_back(x * 2.0);
    return sum(array.stack(out), out);
  });
  expect_values(f(tensor({1., 2.}, {batch}), tensor({2, 1}, {batch})), {3, 2});
}

}  // namespace
}  // namespace reel
