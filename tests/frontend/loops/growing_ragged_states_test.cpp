// States that grow in a ragged scan and have another ragged dim. An entry that has ended may be
// longer along it than all running ones: its values and cotangents stay in the state.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class GrowingRaggedStatesTest : public InEveryMode {};
REEL_IN_EVERY_MODE(GrowingRaggedStatesTest);

TEST_P(GrowingRaggedStatesTest, FinishedEntriesKeepElementsThatNoRunningEntryHas) {
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

// Debug builds check the types of graphs that recompute steps.
TEST_P(GrowingRaggedStatesTest, StepsAreRecomputedBesideACaptureWithDimsOfTheState) {
  const auto loss = [](const Tensor& x, const Tensor& captured, const Checkpoint& policy) {
    const Dim none("hist", scalar(1));
    Dims dims = captured.dims();
    dims.push_back(none);
    const auto grow = [&](const Tensor& i, const Tensor& s, const Dim& before) {
      const auto longer = cum_concat(captured * 0.5 + sum(square(s), {before}), tanh(s), before);
      return std::tuple{i + 1, longer.first, longer.second};
    };
    const auto made =
        while_loop([](const Tensor& i, const Tensor&, const Dim&) { return i < 2; }, grow,
                   std::tuple{scalar(0), expand(x, dims), none}, {.checkpoint = policy});
    return sum(captured + sum(std::get<1>(made), {std::get<2>(made)}));
  };
  const Dim batch("batch", 3), time("time", tensor({2, 1, 1}, {batch}));
  const Tensor captured = mask_padding(cumsum(full({time, batch}, 0.3, f64), batch));
  const auto gradient = [&](const Checkpoint& policy) {
    return run(grad([&](const Tensor& x) { return loss(x, captured, policy); }))(scalar(0.25, f64));
  };
  for (const Checkpoint& policy : {Checkpoint::every(1), Checkpoint::budget(700)})
    expect_all_close(gradient(policy), gradient({}), 1e-12);
}

}  // namespace
}  // namespace reel
