// States that grow in a ragged scan and have another ragged dim. An entry that has ended may be
// longer along it than all running ones: its values and cotangents stay in the state.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class GrowingRaggedStatesTest : public InEveryMode {};
REEL_IN_EVERY_MODE(GrowingRaggedStatesTest);

TEST_P(GrowingRaggedStatesTest, EndedEntriesKeepElementsThatNoRunningEntryHas) {
  const auto loss = [](const Tensor& x) {
    const Dim batch = x.dim("batch"), none("hist", zeros({batch}, i32));
    const auto grow = [](const Tensor& x_t, const std::pair<Tensor, Dim>& s) {
      const auto longer = cum_concat(x_t, tanh(s.first), s.second);
      return std::pair{sum(longer.first, {longer.second}), longer};
    };
    const auto made =
        scan(Scan{.spatial_dim = x.dim("steps"),
                  .initial = std::pair{zeros({batch, x.dim("time"), none}, f64), none},
                  .xs = x,
                  .body = grow});
    return sum(sin(sum(made.state.first, {made.state.second}) + sum(made.ys, {made.dim})));
  };
  const auto gradient = run(grad(loss));
  for (const std::vector<int>& times :
       std::vector<std::vector<int>>{{0, 1}, {1, 2}, {2, 2}, {2, 0}})
    for (const std::vector<int>& lengths : std::vector<std::vector<int>>{{2, 1}, {1, 3}, {0, 2}}) {
      SCOPED_TRACE(str(times[0], ' ', times[1], ", ", lengths[0], ' ', lengths[1]));
      const Dim batch("batch", 2), time("time", tensor(times, {batch})),
          steps("steps", tensor(lengths, {batch}));
      const Tensor x = mask_padding(cumsum(full({steps, batch, time}, 0.3, f64), steps));
      const Tensor actual = mask_padding(gradient(x));
      expect_all_close(actual, mask_padding(grad(loss)(x)), 1e-12);
      expect_gradient_of(loss, x, actual, 1e-6);
      const auto in_mode = run(loss);
      expect_all_close(mask_padding(grad(in_mode)(x)), actual, 1e-12);
    }
}

}  // namespace
}  // namespace reel
