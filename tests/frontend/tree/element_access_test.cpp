// Elements by index, item as another type, compound assignment, expand by one dim, random_integers.
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class ElementAccessTest : public InEveryMode {
 protected:
  template <class F>
  void expect_gradient(const F& f, const Tensor& x) {
    const auto loss = [f](const Tensor& x) -> Tensor { return sum(sin(mask_padding(f(x)))); };
    expect_gradient_of(loss, x, run(grad(loss))(x));
  }
};

TEST_P(ElementAccessTest, IndexSelectsAlongTheFirstAxis) {
  const Tensor x = tensor({{1., 2.}, {3., 4.}, {5., 6.}}, f64);
  expect_values(run([](const Tensor& x) { return x[1]; })(x), {3, 4});
  expect_values(run([](const Tensor& x) { return x[-1][0]; })(x), {5});
  expect_values(run([](const Tensor& x, const Tensor& i) { return x[i]; })(x, scalar(2)), {5, 6});
  expect_values(run([](const Tensor& x, const Tensor& i) { return x[i]; })(x, tensor({2, 0})),
                {5, 6, 1, 2});
  expect_gradient([](const Tensor& x) { return x[1] * x[-1]; }, x);
}

TEST_P(ElementAccessTest, ElementsAreReadByOneIndexForEachAxis) {
  const Tensor x = tensor({{{1., 2.}, {3., 4.}}, {{5., 6.}, {7., 8.}}}, f64);
  expect_values(run([](const Tensor& x) { return x.at(1, 0); })(x), {5, 6});
  expect_values(run([](const Tensor& x) { return x.at(1, -1, 0); })(x), {7});
  expect_values(run([](const Tensor& x, const Tensor& i) { return x.at(i, 1, i); })(x, scalar(1)),
                {8});
  expect_gradient([](const Tensor& x) { return x.at(1, 0) + x.at(0, 1); }, x);
}

TEST_P(ElementAccessTest, IndicesAlongADimCountWithinTheLengthsOfEntries) {
  const Dim batch("batch", 3), time("time", tensor({2, 1, 3}, {batch}));
  const Tensor x = tensor({{1., 2., NAN}, {3., NAN, NAN}, {4., 5., 6.}}, {batch, time}, f64);
  expect_values(run([&](const Tensor& x) { return x.at(time, -1); })(x), {2, 3, 6});
  expect_values(run([&](const Tensor& x) { return x.at(batch, 2); })(x), {4, 5, 6});
  expect_values(run([&](const Tensor& x) { return x.at(2, 1); })(x), {5});
  const Tensor place = tensor({1, 0, 2}, {batch});
  expect_values(run([&](const Tensor& x, const Tensor& i) { return x.at(time, i); })(x, place),
                {2, 3, 6});
  expect_gradient([&](const Tensor& x) { return x.at(time, -1); }, mask_padding(x));
}

TEST_P(ElementAccessTest, CompoundAssignmentLeavesOtherReferences) {
  const auto f = [](Tensor x, const Tensor& y) {
    x += y;
    x *= 3;
    x -= y;
    x /= y;
    x += x;
    return x;
  };
  const Tensor x = tensor({1., 2.}, f64), y = tensor({2., 4.}, f64);
  expect_values(run(f)(x, y), {7, 7});
  expect_values(x, {1, 2});  // other references keep the value
  expect_gradient([&](const Tensor& x) { return f(x, y); }, x);
  const auto total = [](const Tensor& x) {
    Tensor sum = scalar(0., f64);
    for (int i = 0; i < 3; ++i) sum += x;
    return sum;
  };
  expect_values(run(total)(x), {3, 6});
}

TEST_P(ElementAccessTest, AThrowingAssignmentChangesNothing) {
  Tensor x = ones({2});
  message_of<ShapeError>([&] { x += ones({3}); });
  expect_values(x, {1, 1});
}

TEST_P(ElementAccessTest, ExpandsByOneMoreDim) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch})), beam("beam", 2);
  const Tensor x = tensor({{1., 0.}, {2., 3.}}, {batch, time}, f64);
  const Tensor y = run([&](const Tensor& x) { return expand(x, beam); })(x);
  EXPECT_EQ(y.dims(), (Dims{beam, batch, time}));
  expect_values(y, {1, 0, 2, 3, 1, 0, 2, 3});
  EXPECT_EQ(expand(x, batch).dims(), x.dims());
  EXPECT_EQ(str(expand(ones({2}), Dim(3)).type()), "f32[3,2]");
  expect_gradient([&](const Tensor& x) { return expand(x, beam) * 2; }, x);
}

TEST_P(ElementAccessTest, RandomIntegersAreTheSameInEveryMode) {
  const auto draw = [](const Tensor& x) { return random_integers(x.dims(), -3, 4) + cast(x, i32); };
  manual_seed(5);
  const Tensor expected = draw(zeros({1000}));
  manual_seed(5);
  expect_same_bits(run(draw)(zeros({1000})), expected);
  EXPECT_EQ(min(expected).item<int>(), -3);
  EXPECT_EQ(max(expected).item<int>(), 3);
  EXPECT_EQ(expected.dtype(), i32);
}
REEL_IN_EVERY_MODE(ElementAccessTest);

TEST(RandomIntegersTest, AllAreEquallyLikelyAndWideRangesFit) {
  manual_seed(1);
  const Tensor x = random_integers({70000}, 0, 7);
  for (int i = 0; i < 7; ++i) {
    const double count = sum(cast(x == i, f64)).item<double>();
    EXPECT_NEAR(count, 10000, 500) << i;
  }
  const std::int64_t low = -(std::int64_t{1} << 52);
  const Tensor wide = random_integers({1000}, low, -low, i64);
  EXPECT_LT(min(wide).item<std::int64_t>(), low / 2);
  EXPECT_GT(max(wide).item<std::int64_t>(), -low / 2);
  expect_values(random_integers({3}, 9, 10), {9, 9, 9});
  EXPECT_EQ(message_of<ArgumentError>([] { random_integers({1}, 2, 2); }),
            "random_integers: low must be below high, got [2, 2)");
  EXPECT_EQ(message_of<ArgumentError>([] {
              random_integers({1}, 0, std::int64_t{1} << 31);
              return random_integers({1}, 0, (std::int64_t{1} << 31) + 1);
            }),
            "random_integers: [0, 2147483649) does not fit i32; give the dtype i64");
  message_of<ArgumentError>([] { random_integers({1}, INT64_MIN, INT64_MAX, i64); });
  EXPECT_EQ(message_of<DTypeError>([] { random_integers({1}, 0, 2, f32); }),
            "random_integers: dtype must be i32 or i64, got f32");
}

TEST(ItemTest, ConvertsExactlyToIntegersAndRoundsToFloats) {
  EXPECT_EQ(scalar(3.0).item<int>(), 3);
  EXPECT_EQ(scalar(0.1).item<double>(), static_cast<double>(0.1f));
  EXPECT_EQ(scalar(0.1, f64).item<float>(), 0.1f);
  EXPECT_EQ(scalar(7, i64).item<unsigned char>(), 7);
  EXPECT_EQ(scalar(true).item<int>(), 1);
  EXPECT_EQ(scalar(1.0).item<bool>(), true);
  EXPECT_EQ(scalar(-5).item<long long>(), -5);
  EXPECT_EQ(scalar((std::int64_t{1} << 53) + 1, i64).item<std::uint64_t>(),
            (std::uint64_t{1} << 53) + 1);
  EXPECT_EQ(message_of<ArgumentError>([] { scalar(0.5).item<int>(); }),
            "item: 0.5 of type f32[] is no integer from -2147483648 to 2147483647; ask for a type "
            "that holds it, or cast it");
  for (const double value : {double{NAN}, double{INFINITY}, 0x1p63, -0x1.8p63, 1e30})
    message_of<ArgumentError>([&] { return scalar(value, f64).item<std::int64_t>(); });
  EXPECT_EQ(scalar(-0x1p63, f64).item<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  message_of<ArgumentError>([] { return scalar(-1).item<unsigned>(); });
  message_of<ArgumentError>([] { return scalar(2).item<bool>(); });
  message_of<ArgumentError>([] { return scalar(300).item<std::uint8_t>(); });
}

TEST(ElementAccessErrorsTest, NameTheCall) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(message_of<IndexError>([&] { return x[2]; }),
            "operator[]: index 2 is out of range for axis 0 of f32[2,3], which has size 2");
  EXPECT_EQ(message_of<ShapeError>([&] { return x.at(0, 0, 0); }),
            "at: 3 indices are given, and f32[2,3] has 2 axes");
  EXPECT_EQ(message_of<ShapeError>([&] { return scalar(1.0)[0]; }),
            "operator[]: a tensor of type f32[] has no axis");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return x.at(tensor({0, 1}), 0);
            }),
            "at: index 0 is i32[2], but of several indices each is a number or a scalar; use "
            "gather");
  EXPECT_EQ(message_of<DTypeError>([&] { return x[0.5]; }),
            "operator[]: an index is an integer, got 0.5 for f32[2,3]");
  // Lengths along the axis are gathered too, but the error names x.
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor ragged = ones({batch, time});
  EXPECT_EQ(message_of<IndexError>([&] { return ragged[2]; }),
            "operator[]: index 2 is out of range for axis batch=2 of f32[batch=2,time[batch=2]], "
            "which has size 2");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return ragged[tensor({0, 1})];
            }),
            "operator[]: indices i32[2] have plain sizes, f32[batch=2,time[batch=2]] has named "
            "dims; name the axes of both, or of none");
  for (const Tensor& y : {x, ragged})
    EXPECT_EQ(message_of<DTypeError>([&] { return y[scalar(1.0)]; }),
              "operator[]: indices must be i32 or i64, got f32[]; cast them");
}

}  // namespace
}  // namespace reel
