// Dims that a trace defines from the lengths of another dim: the plan knows their sizes.
#include <gtest/gtest.h>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

const Dim batch("batch", 3), feature("feature", 4);

/// Attention of each frame to all frames of its entry.
Tensor attention(const Tensor& x) {
  const Dim time = x.dim("time"), keys("keys", time.lengths());
  const Tensor k = rename(x, time, keys);
  return matmul(softmax(matmul(x, k, feature), keys), k, keys);
}

Tensor frames(const std::vector<int>& lengths) {
  manual_seed(static_cast<std::uint64_t>(lengths[0]));
  return random_normal({batch, Dim("time", tensor(lengths, {batch})), feature});
}

TEST(DefinedDimsTest, AllValuesBehindADimOfKnownLengthsLieInThePlansMemory) {
  const auto f = jit([](const Tensor& x) { return sum(attention(x)); });
  f(frames({3, 1, 2}));
  const std::string text = f.explain();
  EXPECT_NE(text.find("values with their own allocation: 0 B\n"), std::string::npos) << text;
}

TEST(DefinedDimsTest, EachCallHasTheLengthsOfItsArgument) {
  const auto f = jit(value_and_grad([](const Tensor& x) { return sum(square(attention(x))); }));
  for (const std::vector<int>& lengths :
       {std::vector{3, 1, 2}, {1, 3, 2}, {2, 2, 3}, {5, 4, 1}, {0, 0, 0}, {3, 1, 2}}) {
    const Tensor x = frames(lengths);
    const auto [loss, gradient] = f(x);
    const auto [eager_loss, eager_gradient] =
        value_and_grad([](const Tensor& x) { return sum(square(attention(x))); })(x);
    EXPECT_NEAR(loss.item<float>(), eager_loss.item<float>(), 1e-4);
    expect_all_close(mask_padding(gradient), mask_padding(eager_gradient), 1e-4);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(DefinedDimsTest, EachCallMakesADimOfItsOwn) {
  const auto f = jit([](const Tensor& x) {
    const Dim time = x.dim("time");
    return rename(x * 2.f, time, Dim("copy", time.lengths()));
  });
  const Tensor x = frames({3, 1, 2});
  const Tensor first = f(x), second = f(x);
  const Dim a = first.dim("copy"), b = second.dim("copy");
  EXPECT_FALSE(a == b);
  EXPECT_FALSE(a == x.dim("time"));
  EXPECT_EQ(a.lengths().to_vector<int>(), (std::vector{3, 1, 2}));
  EXPECT_EQ(b.lengths().to_vector<int>(), (std::vector{3, 1, 2}));
}

TEST(DefinedDimsTest, TwoDimsOfTheSameLengthsStayApart) {
  const auto f = jit([](const Tensor& x) {
    const Dim time = x.dim("time"), a("a", time.lengths()), b("b", time.lengths());
    const Tensor p = rename(x, time, a), q = rename(x, time, b);
    return sum(matmul(p, q, feature), b);  // {batch, a}
  });
  const Tensor x = frames({3, 1, 2}), y = f(x);
  const Tensor eager = matmul(x, sum(x, x.dim("time")), feature);
  const auto values_of = [](const Tensor& of) {
    return tensor(mask_padding(of).to_vector<float>());
  };
  expect_all_close(values_of(y), values_of(eager), 1e-4);
}

TEST(DefinedDimsTest, ADimOfASingleLengthIsKnownToo) {
  const auto f = jit([](const Tensor& x) {
    const Dim time = x.dim("time");
    return sum(rename(x, time, Dim("copy", time.lengths())));
  });
  for (const int steps : {2, 5}) {
    const Tensor x = ones({Dim("time", scalar(steps)), feature});
    EXPECT_EQ(f(x).item<float>(), 4.f * static_cast<float>(steps));
  }
  EXPECT_EQ(f.trace_count(), 1);
  const std::string text = f.explain();
  EXPECT_NE(text.find("values with their own allocation: 0 B\n"), std::string::npos) << text;
}

TEST(DefinedDimsTest, InALoopsBodyLengthsAreThoseOfTheIteration) {
  const Tensor keys = frames({3, 1, 2});
  const auto f = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Dim time = keys.dim("time"), copy("copy", time.lengths());
      const Tensor k = rename(keys, time, copy);
      const Tensor next = tanh(h + x + matmul(softmax(matmul(k, h, feature), copy), k, copy));
      return std::pair{next, next};
    };
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({batch, feature}),
                     .xs = x,
                     .body = body})
        .ys;
  };
  const Tensor x = frames({2, 4, 1});
  expect_all_close(mask_padding(jit(f)(x)), mask_padding(f(x)), 1e-5);
}

}  // namespace
}  // namespace reel
