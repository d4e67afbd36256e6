// Decisions D1 to D26, in which Reel differs from RETURNN, that no row of the cases covers. D1, D3,
// D4, D7, D10, D13, D20, D24 and D25 are in scan_unknown_test.cpp; D2, D3 and D5 in
// scan_test.cpp; D9 in while_test.cpp; D23 and D26 in packing_test.cpp; D8,
// D15, D16, D18, D19 and D21 in errors_test.cpp.
#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

using ReturnnDecisions = ReturnnCase;
REEL_IN_EVERY_MODE(ReturnnDecisions);

TEST_P(ReturnnDecisions, D6_AnArrayIsAValue) {
  const auto f = run([&](const Tensor& a, const Tensor& b) {
    const TensorArray empty({f32, {batch}});
    const TensorArray one = empty.push_back(a);
    const TensorArray grown = while_loop([](const TensorArray& s) { return s.size() < 4; },
                                         [&](const TensorArray& s) { return s.push_back(b); }, one);
    return std::tuple{empty.size(), one.size(), grown.size(), one[0], grown[0], grown[3]};
  });
  const Tensor a = tensor({1., 2., 3.}, {batch}), b = a * 10.0;
  const auto [none, one, four, first, kept, last] = f(a, b);
  expect_values(none, {0});
  expect_values(one, {1});
  expect_values(four, {4});
  expect_values(first, {1, 2, 3});
  expect_values(kept, {1, 2, 3});
  expect_values(last, {10, 20, 30});
}

TEST_P(ReturnnDecisions, D11_D12_DimsNeverChangeAndAreEqualToThemselvesOnly) {
  const Dim three("three", 3), other("three", 3), copy = three;
  EXPECT_TRUE(three == copy);
  EXPECT_FALSE(three == other);
  EXPECT_FALSE(Dim("time", time.lengths()) == time);  // the same lengths are another dim
  EXPECT_TRUE(time + 1 == time + 1);
  // Every run makes a new dim for its result; the former one does not change.
  const auto f = run([&](const Tensor& targets) {
    return scan(Scan{.cond_dims = {batch},
                     .initial = zeros({batch}, i32),
                     .cond = [&](const Tensor& s) { return s < targets; },
                     .body =
                         [](const Tensor& s) {
                           return std::pair{s, s + 1};
                         }})
        .dim;
  });
  const Dim first = f(tensor({0, 1, 3}, {batch})), second = f(tensor({1, 1, 4}, {batch}));
  EXPECT_FALSE(first == second);
  expect_values(first.lengths(), {0, 1, 3});
  EXPECT_EQ(first.size(), 3);
  expect_values(second.lengths(), {1, 1, 4});
}

TEST_P(ReturnnDecisions, D14_ABodyCannotChangeTheStateOfItsCaller) {
  using List = std::vector<Tensor>;
  const List start{zeros({batch}), scalar(1.0)};
  const auto f = run([&](const Tensor& x, const List& start) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = start,
                     .xs = x,
                     .body =
                         [](const Tensor& x, List s) {  // its own copy
                           s[0] = s[0] + x;
                           s[1] = s[1] * 2.0;
                           return std::pair{None{}, s};
                         }})
        .state;
  });
  for (const double padding : kPaddings) {
    const List last = f(x2(padding), start);
    expect_values(last[0], {6, 9, 7});  // finished entries stay as they were
    expect_values(last[1], {8});
    expect_values(start[0], {0, 0, 0});
    expect_values(start[1], {1});
  }
}

TEST_P(ReturnnDecisions, D17_YsNeedNoTemplate) {
  const Dim none("time", tensor({0, 0, 0}, {batch})), feature("feature", 2);
  const auto f = [&](const auto& ys) {
    return run([&, ys](const Tensor& x) {
      const auto result = scan(Scan{
          .spatial_dim = x.dim("time"),
          .initial = zeros({batch, feature}),
          .xs = x,
          .ys = ys,
          .body =
              [](const Tensor& x, const Tensor& s) {
                const Tensor next = s + x;
                return std::pair{std::pair{next, next > 0.0}, next};
              },
      });
      return result.ys;
    });
  };
  const auto check = [&](const auto& pair, const Dim& along) {
    EXPECT_EQ(pair.first.type(), TensorType(f32, {along, batch, feature}));
    EXPECT_EQ(pair.second.type(), TensorType(boolean, {along, batch, feature}));
  };
  const std::pair given{TensorType(f32, {batch, feature}), TensorType(boolean, {batch, feature})};
  for (const Dim& along : {none, time}) {  // also without iterations
    const Tensor x = zeros({batch, along});
    check(f(None{})(x), along);
    check(f(given)(x), along);
  }
  // y gets the order of dims of its template.
  const auto turned = f(std::pair{TensorType(f32, {feature, batch}),
                                  TensorType(boolean, {feature, batch})})(zeros({batch, time}));
  EXPECT_EQ(turned.first.dims(), (Dims{time, feature, batch}));
}

TEST_P(ReturnnDecisions, D22_NegativeIndicesOfArrays) {
  const auto read = [&](int index) {
    return run([=](const Tensor& x) { return TensorArray::unstack(x, 0)[index]; })(
        tensor({1., 2., 3.}));
  };
  expect_values(read(-1), {3});
  expect_values(read(-3), {1});
  EXPECT_EQ(message_of<IndexError>([&] { read(-4); }),
            "TensorArray read: index -4 is out of range for 3 elements");
  EXPECT_EQ(message_of<IndexError>([&] { read(3); }),
            "TensorArray read: index 3 is out of range for 3 elements");
}

}  // namespace
}  // namespace reel
