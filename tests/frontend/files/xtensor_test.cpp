// Compiled as a user would compile: without flags for xtensor.
#include "reel/frontend/xtensor.h"

#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

TEST(XtensorTest, AnArrayThatIsGivenAwayLendsItsMemory) {
  xt::xarray<float> array{{1, 2, 3}, {4, 5, 6}};
  const float* data = array.data();
  Tensor x = tensor(std::move(array), {Dim("batch"), Dim("feature", 3)});
  EXPECT_EQ(x.data<float>(), data);
  EXPECT_EQ(str(x.type()), "f32[batch=2,feature=3]");
  // A view keeps the memory after the tensor is gone, and no op writes to it.
  const Tensor row = slice(x, 0, 1, 2), kept = x;
  const Tensor sum = std::move(x) + 1.0;
  x = Tensor();
  expect_values(sum, {2, 3, 4, 5, 6, 7});
  expect_values(kept, {1, 2, 3, 4, 5, 6});
  expect_values(row, {4, 5, 6});
}

TEST(XtensorTest, EveryElementTypeIsTaken) {
  EXPECT_EQ(tensor(xt::xtensor<double, 1>{1.5}).dtype(), f64);
  EXPECT_EQ(tensor(xt::xtensor<std::int32_t, 1>{1}).dtype(), i32);
  EXPECT_EQ(tensor(xt::xtensor<std::int64_t, 1>{1}).dtype(), i64);
  const xt::xarray<bool> flags{true, false};
  expect_values(tensor(flags), {1, 0});
  EXPECT_EQ(tensor(xt::xarray<bool>(flags)).dtype(), boolean);
  EXPECT_EQ(tensor(xt::xarray<float>(2.5f)).rank(), 0);
  EXPECT_EQ(tensor(xt::xarray<float>::from_shape({0, 3})).type(), TensorType(f32, {0, 3}));
}

TEST(XtensorTest, EverythingElseIsCopied) {
  xt::xarray<float> array{{1, 2, 3}, {4, 5, 6}};
  const Tensor x = tensor(array);
  EXPECT_NE(x.data<float>(), array.data());
  array(0, 0) = 9;
  expect_values(x, {1, 2, 3, 4, 5, 6});
  expect_values(tensor(xt::view(array, xt::all(), 1)), {2, 5});
  expect_values(tensor(array + 1.0f), {10, 3, 4, 5, 6, 7});
  expect_values(tensor(xt::sum(array, {0})), {13, 7, 9});
  expect_values(tensor(xt::xarray<float, xt::layout_type::column_major>(array)),
                {9, 2, 3, 4, 5, 6});
  expect_values(tensor(xt::xarray<float, xt::layout_type::dynamic>(array)), {9, 2, 3, 4, 5, 6});
  std::vector<float> numbers{1, 2};
  const Tensor adapted =
      tensor(xt::adapt(numbers.data(), 2, xt::no_ownership(), std::vector<std::size_t>{2}));
  EXPECT_NE(adapted.data<float>(), numbers.data());
  expect_values(adapted, {1, 2});
  expect_values(tensor(xt::cast<float>(xt::xarray<int>{1, 2})), {1, 2});
}

TEST(XtensorTest, DimsThatDoNotFitAreNamed) {
  EXPECT_EQ(message_of<ShapeError>([] {
              return tensor(xt::xarray<float>{1, 2}, {Dim("x", 3)});
            }),
            "tensor: the array has f32[2], which the dims [x=3] do not fit; give a Dim of the same "
            "size for each axis, or no dims");
}

TEST(XtensorTest, ATracedFunctionKeepsTheNumbers) {
  auto f = jit([](const Tensor& x) { return x + tensor(xt::xarray<float>{1, 2}); });
  expect_values(f(ones({2})), {2, 3});
  expect_values(f(zeros({2})), {1, 2});
  auto g = jit([](const Tensor& x) { return x * tensor(xt::xarray<float>(3.0f)); });
  expect_values(g(ones({2})), {3, 3});
}

TEST(XtensorTest, AViewOutlivesItsTensor) {
  Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, {Dim("a", 2), Dim("b", 2)});
  const float* data = x.data<float>();
  const auto view = as_xarray<float>(x);
  x = Tensor();
  EXPECT_EQ(view.data(), data);
  EXPECT_EQ(view.dimension(), 2u);
  EXPECT_EQ(view(1, 0), 3.0f);
  static_assert(std::is_same_v<decltype(view(1, 0)), const float&>);
  const xt::xarray<float> sums = xt::sum(view, {1});
  EXPECT_EQ(sums, (xt::xarray<float>{3, 7}));
  const xt::xtensor<float, 2> doubled = view * 2.0f;
  EXPECT_EQ(doubled(1, 1), 8.0f);
}

TEST(XtensorTest, ACopyIsTheCallersOwn) {
  const Tensor x = tensor({true, false});
  xt::xarray<bool> copy = to_xarray<bool>(x);
  copy(0) = false;
  expect_values(x, {1, 0});
  EXPECT_EQ(to_xarray<float>(scalar(2.5)).dimension(), 0u);
  EXPECT_EQ(to_xarray<float>(zeros({0, 3})).shape()[1], 3u);
  EXPECT_EQ(message_of<DTypeError>([&] { return to_xarray<float>(x).size(); }),
            "to_xarray: asked for elements of type f32 of a tensor of type boolean[2]; cast it to "
            "f32, or ask for boolean");
  EXPECT_EQ(message_of<DTypeError>([&] { return as_xarray<double>(x).size(); }),
            "as_xarray: asked for elements of type f64 of a tensor of type boolean[2]; cast it to "
            "f64, or ask for boolean");
}

// Wrong in C++20 without the header's settings for shapes.
TEST(XtensorTest, ArraysKeepTheirRankWhenEvaluated) {
  const xt::xarray<double> a{{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(xt::eval(a + a).dimension(), 2u);
  EXPECT_EQ(xt::sum(a, {0}, xt::evaluation_strategy::immediate), (xt::xarray<double>{5, 7, 9}));
  EXPECT_EQ(xt::eval(as_xarray<double>(tensor(a)) + a), xt::eval(a + a));
}

}  // namespace
}  // namespace reel
