// tests/trace/plan/sorted_rows.h — SortedRowsTest, the fixture of tests of plans that may sort the
// rows of a ragged batch.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reel/tests/trace/plan/explained.h"
#include "reel/tests/trace/plan/row_cuts.h"

namespace reel {

struct Parameters {
  Tensor x, w, h;
};

inline void expect_all_close(const TreeLeaves& made, const TreeLeaves& expected) {
  ASSERT_EQ(made.size(), expected.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    if (made[i].kind == TreeLeaf::Kind::tensor) {
      EXPECT_EQ(made[i].tensor.type(), expected[i].tensor.type());
      reel::expect_all_close(made[i].tensor, expected[i].tensor, 2e-5);
    }
}

inline const std::vector<int> kMixed{3, 7, 0, 5, 7, 2, 4, 1, 6, 3, 5, 2};

class SortedRowsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(7); }

  const Dim hidden{"hidden", 130}, next{"next", 130};

  Dim batch_of(const std::vector<int>& lengths) const {
    return Dim("batch", static_cast<std::int64_t>(lengths.size()));
  }
  Parameters parameters(const std::vector<int>& lengths = kMixed) const {
    const Dim batch = batch_of(lengths), time("time", tensor(lengths, {batch}));
    return {random_normal({time, batch, hidden}), random_normal({hidden, next}) * 0.1,
            random_normal({batch, hidden})};
  }
  /// Returns ys and the last state of a scan.
  std::pair<Tensor, Tensor> run(const Parameters& p, bool is_reverse = false) const {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = tanh(rename(matmul(h, p.w, hidden), next, hidden) + x);
      return std::pair{y * y, y};
    };
    const auto [ys, last, dim] = scan(Scan{.spatial_dim = p.x.dims()[0],
                                           .initial = p.h,
                                           .xs = p.x,
                                           .body = body,
                                           .reverse = is_reverse});
    return {ys, last};
  }
  Tensor loss(const Parameters& p) const {
    const auto [ys, last] = run(p);
    return sum(square(ys)) + sum(last * 0.1);
  }
  /// Returns the value, its gradients, and rows of all kinds.
  auto everything() const {
    return [this](const Parameters& p) {
      const auto [value, slope] =
          value_and_grad([this](const Parameters& p) { return loss(p); })(p);
      const auto [ys, last] = run(p, true);
      return std::tuple{value, mask_padding(slope.x), slope.w, slope.h, mask_padding(ys), last};
    };
  }
  /// Returns a function that computes `of` and a gradient with loops that may sort rows.
  template <class F>
  auto with(F of) const {
    return [this, of](const Parameters& p) {
      const Parameters slope = grad([this](const Parameters& p) { return loss(p); })(p);
      return std::pair{slope.w, of(p)};
    };
  }
  static bool is_sorted(const std::string& explained) { return has(explained, "rows: of batch="); }
};

}  // namespace reel
