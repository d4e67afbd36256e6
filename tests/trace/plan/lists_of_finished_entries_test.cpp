// Gradients of loops over ragged batches whose iterations pack elements, so that residuals are
// lists.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

/// Takes the sine of the positive elements of a sequence in each of an entry's iterations. Sums the
/// states before and after them.
Tensor sum_of_states(const Tensors& x) {
  const auto body = [](const Tensor&, const Tensor& s) {
    return std::pair{s, unpack(sin(pack(s, s > 0)), 0, s > 0, s)};
  };
  const auto made =
      scan(Scan{.spatial_dim = x[1].dim("steps"), .initial = x[0], .xs = x[1], .body = body});
  return sum(made.ys) + sum(made.state);
}

/// Returns sequences of 0.5, and an x for each entry's iterations.
Tensors batch_of(const std::vector<int>& times, const std::vector<int>& steps) {
  const Dim batch("batch", std::ssize(times));
  return {full({batch, Dim("time", tensor(times, {batch}))}, 0.5),
          full({batch, Dim("steps", tensor(steps, {batch}))}, 0.25)};
}

/// Returns the gradient of an element after so many iterations: of each state, by the chain rule.
float expected_slope(int steps) {
  double total = 1, slope = 1, x = 0.5;
  for (int i = 0; i < steps; ++i) {
    if (i > 0) total += slope;
    slope *= std::cos(x);
    x = std::sin(x);
  }
  return static_cast<float>(steps ? total + slope : 1);
}

// The list of an iteration has sizes of the running entries, and contradicted the state's dims: the
// plan of the whole function failed, without a word.
TEST(ListsOfFinishedEntriesTest, GradientsHaveAPlanAroundTheirLoop) {
  const auto f = jit(grad(sum_of_states));
  const std::vector<std::pair<std::vector<int>, std::vector<int>>> batches = {
      {{3, 2}, {0, 1}},
      {{1, 0}, {0, 1}},
      {{0, 0}, {0, 0}},
      {{2, 3, 1}, {1, 2, 0}},
      {{2, 2}, {1, 1}}};
  for (const auto& [times, steps] : batches) {
    const Tensor slope = f(batch_of(times, steps))[0];
    const std::vector<float> elements = slope.to_vector<float>();
    const int longest = *std::max_element(times.begin(), times.end());
    for (std::size_t row = 0; row < times.size(); ++row)
      for (int i = 0; i < times[row]; ++i)
        EXPECT_NEAR(elements[row * static_cast<std::size_t>(longest) + static_cast<std::size_t>(i)],
                    expected_slope(steps[row]), 1e-6);
    EXPECT_EQ(f.explain().find("its plan failed"), std::string::npos) << f.explain();
  }
}

TEST(ListsOfFinishedEntriesTest, ExplainTellsTheReason) {
  const auto f = jit(grad(sum_of_states));
  f(batch_of({3, 2}, {0, 1}));
  EXPECT_NE(f.explain().find("run by the interpreter, because list elements have other sizes where "
                             "some entries have finished"),
            std::string::npos)
      << f.explain();
}

}  // namespace
}  // namespace reel
