// Ops that remove a dim that lengths lie over, or move its elements. Former padding becomes
// ordinary elements and must not show.
#include <limits>

#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct ShowingOp {
  const char* name;
  Tensor (*apply)(const Tensor& x);
};
std::ostream& operator<<(std::ostream& out, const ShowingOp& op) { return out << op.name; }

const Dim& batch() {
  static const Dim& dim = *new Dim("batch", 2);
  return dim;
}
const Dim& other() {
  static const Dim& dim = *new Dim("other", 2);
  return dim;
}

const ShowingOp kOps[] = {
    {"slice", [](const Tensor& x) { return slice(x, batch(), 0, 1); }},
    {"slice_with_step", [](const Tensor& x) { return slice(x, batch(), 0, {}, 2); }},
    {"reverse", [](const Tensor& x) { return reverse(x, batch()); }},
    {"pad", [](const Tensor& x) { return pad(x, batch(), 1, 0); }},
    {"concat",
     [](const Tensor& x) {
       return concat({x, 2. * x}, batch());
     }},
    {"rename", [](const Tensor& x) { return rename(x, batch(), other()); }},
    {"gather", [](const Tensor& x) { return gather(x, scalar(0), batch()); }},
    {"split", [](const Tensor& x) { return split(x, batch(), 2)[0]; }},
    {"split_dim",
     [](const Tensor& x) {
       return split_dim(x, batch(), {Dim("a", 1), Dim("b", 2)});
     }},
    {"unstack", [](const Tensor& x) { return unstack(x, batch())[0]; }},
    {"array", [](const Tensor& x) { return TensorArray::unstack(x, batch()).read(0); }},
};

class ShownPaddingTest : public ::testing::TestWithParam<ShowingOp> {};
INSTANTIATE_TEST_SUITE_P(Ops, ShownPaddingTest, ::testing::ValuesIn(kOps),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ShownPaddingTest, HasNoSayInValuesAndGradients) {
  const Dim time("time", tensor({1, 2}, {batch()}));
  const auto loss = [&](const Tensor& x) {
    const Tensor y = GetParam().apply(x);
    return sum(0.5 * y + sin(y));
  };
  const Tensor clean = tensor({1., 0., 2., 3.}, {batch(), time}, f64),
               dirty = tensor({1., kNan, 2., 3.}, {batch(), time}, f64);
  const auto [value, gradient] = value_and_grad(loss)(clean);
  EXPECT_TRUE(std::isfinite(value.item<double>()));
  const auto expect_same = [&](const std::pair<Tensor, Tensor>& result) {
    expect_same_bits(result.first, value);
    expect_same_bits(mask_padding(result.second), mask_padding(gradient));
  };
  expect_same(value_and_grad(loss)(dirty));
  expect_same(jit(value_and_grad(loss))(dirty));
}

TEST(ReverseTest, CotangentsAlongTheDimOfLengthsHaveNoPadding) {
  const Dim time("time", tensor({1, 2}, {batch()}));
  const auto loss = [&](const Tensor& x) {
    return sum(reverse(x, batch()) * reverse(2. * x, batch()));
  };
  const Tensor gradient = grad(loss)(tensor({1., kNan, 2., 3.}, {batch(), time}, f64));
  expect_values(mask_padding(gradient), {4, 0, 8, 12});
}

}  // namespace
}  // namespace reel
