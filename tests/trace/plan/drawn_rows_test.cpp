// Random draws of batches with rows that a plan sorts: each row draws its own numbers.
#include "reel/tests/trace/plan/sorted_rows.h"

namespace reel {
namespace {

class DrawnRowsTest : public SortedRowsTest {};

TEST_F(DrawnRowsTest, RowsDrawTheNumbersThatTheyDrawInTheirPlaces) {
  const auto f = with([this](const Parameters& p) {
    const Dim time = p.x.dims()[0], batch = p.h.dims()[0], three("three", 3);
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y =
          tanh(rename(matmul(h, p.w, hidden), next, hidden) + x) * random_uniform({batch, hidden});
      const auto inner = [&](const Tensor& s) {
        const Tensor noise = s + random_normal({hidden, batch}) * 0.1;
        return std::pair{None{}, noise};
      };
      return std::pair{y * sum(truncated_normal({batch, time}), time),
                       scan(Scan{.spatial_dim = three, .initial = y, .body = inner}).state};
    };
    const auto [ys, last, dim] =
        scan(Scan{.spatial_dim = time, .initial = p.h, .xs = p.x, .body = body});
    return std::tuple{mask_padding(ys), last, mask_padding(p.x * random_uniform(p.x.dims())),
                      random_normal({next, batch})};
  });
  const auto planned = jit(f), interpreted = jit(f, {.executor = Executor::interpreter});
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{
           kMixed, {2, 7, 0, 5, 7, 2, 4, 1, 6}, {7, 5, 5, 4, 3, 2, 1, 0}}) {
    const Parameters p = parameters(lengths);
    manual_seed(3);
    const TreeLeaves made = flatten(planned(p));
    EXPECT_EQ(is_sorted(planned.explain()), lengths.size() > 8);
    manual_seed(3);
    expect_all_close(made, flatten(interpreted(p)));
  }
}

TEST_F(DrawnRowsTest, RaggedDrawsInLoops) {
  const auto loop = [](bool ends, bool reads_x) {
    return [=](const Parameters& p) {
      const Dim time = p.x.dims()[0], batch = p.h.dims()[0], steps("steps", 5);
      const auto next = [=](const Tensor& x, const Tensor& h) {
        const Tensor drawn = sum(random_uniform({batch, time}), time);
        const Tensor y = h * 0.5 + x * drawn;
        return reads_x ? y + sum(p.x, time) : y;
      };
      if (ends)
        return scan(Scan{.spatial_dim = time,
                         .initial = p.h,
                         .xs = p.x,
                         .body =
                             [=](const Tensor& x, const Tensor& h) {
                               return std::pair{None{}, next(x, h)};
                             }})
            .state;
      return scan(Scan{.spatial_dim = steps,
                       .initial = p.h,
                       .body =
                           [=](const Tensor& h) {
                             return std::pair{None{}, next(h, h)};
                           }})
          .state;
    };
  };
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{kMixed, {2, 3}})
    for (const bool ends : {true, false})
      for (const bool reads_x : {true, false})
        for (const int block_rows : {0, 1, 4}) {
          const auto f = with(loop(ends, reads_x));
          const Parameters p = parameters(lengths);
          manual_seed(3);
          const TreeLeaves made = flatten(jit(f, {.passes = {.block_rows = block_rows}})(p));
          manual_seed(3);
          expect_all_close(made, flatten(jit(f, {.executor = Executor::interpreter})(p)));
        }
}

TEST_F(DrawnRowsTest, GradientsOfDrawsInLoops) {
  const auto f = [this](const Parameters& p) {
    return value_and_grad([this](const Parameters& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor kept = where(random_uniform(h.dims()) < 0.8, h / 0.8, 0.0);
        const Tensor y = tanh(rename(matmul(kept, p.w, hidden), next, hidden) + x);
        return std::pair{y * y, y};
      };
      const auto [ys, last, dim] =
          scan(Scan{.spatial_dim = p.x.dims()[0], .initial = p.h, .xs = p.x, .body = body});
      return sum(square(ys) * random_uniform(ys.dims())) + sum(last);
    })(p);
  };
  const Parameters p = parameters();
  const auto planned = jit(f);
  manual_seed(3);
  const auto [value, slope] = planned(p);
  EXPECT_TRUE(is_sorted(planned.explain())) << planned.explain();
  manual_seed(3);
  const auto [expected, expected_slope] = f(p);
  reel::expect_all_close(value, expected, 1e-5);
  expect_all_close(
      flatten(std::tuple{mask_padding(slope.x), slope.w, slope.h}),
      flatten(std::tuple{mask_padding(expected_slope.x), expected_slope.w, expected_slope.h}));
}

}  // namespace
}  // namespace reel
