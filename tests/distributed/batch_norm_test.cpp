// BatchNorm over the batches of all ranks, against the whole batch on one.
#include <cmath>
#include <limits>
#include <vector>

#include "world_of_tests.h"

namespace reel {
namespace {

class BatchNormOfRanksTest : public InEveryMode {
 protected:
  using In = std::pair<BatchNorm, Tensor>;

  const Dim channel = Dim("channel", 2);
  const BatchNorm layer = {tensor({1.5, -0.5}, {channel}, f64), tensor({0.25, 2.}, {channel}, f64),
                           channel, 0.25, 0.1};
  const BatchNorm::State state{tensor({1., -1.}, {channel}, f64), tensor({2., 3.}, {channel}, f64)};

  /// Returns how many sequences a rank has; none on the second one.
  static int count_of(int rank) { return (rank + 2) % 3; }
  static int begin_of(int rank) {
    int begin = 0;
    for (int r = 0; r < rank; ++r) begin += count_of(r);
    return begin;
  }
  /// Returns sequences of several lengths, with NaN behind their ends.
  Tensor sequences(int begin, int count) const {
    std::vector<std::vector<double>> rows;
    for (int i = begin; i < begin + count; ++i) {
      rows.emplace_back();
      for (int t = 0; t < (i + 2) % 4; ++t) rows.back().push_back(std::sin(7 * i + 3 * t) + i);
    }
    const Tensor x = ragged(rows, {Dim("batch", count), Dim("time")}, f64);
    Dims dims = x.dims();
    dims.push_back(channel);
    const Tensor all = expand(x, dims) * tensor({1., 2.5}, {channel}, f64);
    return where(mask(x.dims()[1]), all, std::numeric_limits<double>::quiet_NaN());
  }
  /// Returns the elements within the lengths, in order.
  static std::vector<double> elements(const Tensor& x) {
    return values_of(pack(x, expand(mask(x.dim("time")), {x.dim("batch"), x.dim("time")})));
  }
  static Tensors over_ranks(const Tensors& sums) { return world().all_reduce(sums); }

  template <class Sum>
  auto loss_of(const Sum& over) const {
    return [this, over](const In& in) -> Tensor {
      return sum(sin(in.first(in.second, state, {}, over).first) *
                 tensor({1., 3.}, {channel}, f64));
    };
  }
  Tensor own() const { return sequences(begin_of(world().rank()), count_of(world().rank())); }
  Tensor whole() const { return sequences(0, begin_of(world().size())); }
  /// Returns this rank's share of the whole batch's elements.
  std::vector<double> own_share(const Tensor& of_whole) const {
    std::vector<double> result;
    const std::vector<double> all = elements(of_whole);
    std::size_t at = 0;
    for (int i = 0; i < begin_of(world().rank() + 1); ++i)
      for (int k = 0; k < 2 * ((i + 2) % 4); ++k, ++at)
        if (i >= begin_of(world().rank())) result.push_back(all[at]);
    return result;
  }
};
REEL_IN_EVERY_MODE(BatchNormOfRanksTest);

TEST_P(BatchNormOfRanksTest, ResultsAndStateAreOfTheWholeBatch) {
  const auto [y, next] = run([&](const Tensor& x) {
    return layer(x, state, {}, &BatchNormOfRanksTest::over_ranks);
  })(own());
  const auto [expected, expected_next] = layer(whole(), state);
  const std::vector<double> actual = elements(y), share = own_share(expected);
  ASSERT_EQ(actual.size(), share.size());
  for (std::size_t i = 0; i < share.size(); ++i) EXPECT_NEAR(actual[i], share[i], 1e-12);
  expect_all_close(next.mean, expected_next.mean, 1e-12);
  expect_all_close(next.variance, expected_next.variance, 1e-12);
}

TEST_P(BatchNormOfRanksTest, GradientsAreOfTheSumOfAllRanksLosses) {
  const auto f = run([&](const BatchNorm& layer, const Tensor& x) {
    In gradient = grad(loss_of(&BatchNormOfRanksTest::over_ranks))(In{layer, x});
    gradient.first = world().all_reduce(gradient.first);
    return gradient;
  });
  const In actual = f(layer, own());
  const In expected = grad(loss_of(BatchNorm::SumOverRanks()))(In{layer, whole()});
  expect_all_close(actual.first.scale, expected.first.scale, 1e-11);
  expect_all_close(actual.first.bias, expected.first.bias, 1e-11);
  const std::vector<double> of_x = elements(actual.second), share = own_share(expected.second);
  ASSERT_EQ(of_x.size(), share.size());
  for (std::size_t i = 0; i < share.size(); ++i) EXPECT_NEAR(of_x[i], share[i], 1e-11);
}

TEST_P(BatchNormOfRanksTest, SecondDerivativesAreOfTheSumOfAllRanksLosses) {
  const auto slope_of = [&](const auto& over) {
    return [this, over](const Tensor& x) {
      const auto loss = loss_of(over);
      const Tensor g = grad([&](const Tensor& x) { return loss(In{layer, x}); })(x);
      return sum(square(mask_padding(g)));
    };
  };
  const auto f = run(grad(slope_of(&BatchNormOfRanksTest::over_ranks)));
  const Tensor actual = f(own());
  const Tensor expected = grad(slope_of(BatchNorm::SumOverRanks()))(whole());
  const std::vector<double> of_x = elements(actual), share = own_share(expected);
  ASSERT_EQ(of_x.size(), share.size());
  for (std::size_t i = 0; i < share.size(); ++i) EXPECT_NEAR(of_x[i], share[i], 1e-10);
}

}  // namespace
}  // namespace reel
