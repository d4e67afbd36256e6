// Derivatives of a loop with a saving rule around a scan. The scan's history has a length per
// entry. The rule recomputes the scan, so that an iteration makes the dim of the history twice.
#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {
namespace {

class PoliciesAroundHistoriesTest : public InEveryMode {};
REEL_IN_EVERY_MODE(PoliciesAroundHistoriesTest);

using Arguments = std::pair<Tensor, Tensor>;  ///< x over time and batch, a scalar

Tensor last_and_sum_of_history(const Tensor& x) {
  const Dim time = x.dim("time"), batch = x.dim("batch");
  const Dim none("hist", zeros({batch}, i32));
  const auto made = scan(Scan{.spatial_dim = time,
                              .initial = std::pair{zeros({batch, none}, f64), none},
                              .xs = x,
                              .body = [](const Tensor& x, const std::pair<Tensor, Dim>& state) {
                                const auto longer = cum_concat(x, tanh(state.first), state.second);
                                return std::pair{sum(longer.first, {longer.second}), longer};
                              }});
  return sum(made.state.first, {made.state.second}) + sum(made.ys, {made.dim});
}

/// Returns a loop of two iterations. Each multiplies x by the state, and returns the least or the
/// greatest entry as the next state.
auto two_iterations(const Checkpoint& checkpoint, bool takes_least) {
  return [checkpoint, takes_least](const Arguments& arguments) {
    const Tensor& x = arguments.first;
    const auto body = [&](const Tensor& state) {
      const Tensor entries = last_and_sum_of_history(x * state);
      const Dim batch = x.dim("batch");
      return takes_least ? min(entries, {batch}) : max(entries, {batch});
    };
    return while_loop([](const Tensor&) { return true; }, body, arguments.second,
                      {.checkpoint = checkpoint, .maximum_iterations = 2});
  };
}

/// Returns the derivative in the direction of ones.
template <class F>
auto along_ones(const F& f) {
  return [f](const Arguments& at) {
    return jvp(f, at, Arguments{ones_like(at.first), ones_like(at.second)}).second;
  };
}

Checkpoint keeping(Saving loops, Saving others) {
  return Checkpoint().where([=](const StepValue& value) {
    return value.op == std::string_view("loop") ? loops : others;
  });
}

Arguments arguments() {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  return {tensor({0.5, 0.3, 0.2, 0.0}, {time, batch}, f64), scalar(0.8, f64)};
}

std::vector<Checkpoint> rules() {
  return {keeping(Saving::recompute, Saving::keep), keeping(Saving::recompute, Saving::spill),
          keeping(Saving::recompute, Saving::by_default), keeping(Saving::keep, Saving::recompute)};
}

// The least entry has one element x: two iterations make (2 x)^2 s of the scalar s.
TEST_P(PoliciesAroundHistoriesTest, DerivativesOfTheShortEntry) {
  for (const Checkpoint& rule : rules()) {
    const auto f = two_iterations(rule, true);
    expect_all_close(run(along_ones(f))(arguments()), scalar(8 * 0.3 * 0.8 + 4 * 0.09, f64), 1e-12);
    expect_all_close(run(along_ones(along_ones(f)))(arguments()), scalar(8 * 0.8 + 16 * 0.3, f64),
                     1e-12);
    expect_all_close(run(along_ones(along_ones(along_ones(f))))(arguments()), scalar(24.0, f64),
                     1e-12);
    expect_all_close(run(grad(along_ones(f)))(arguments()).second, scalar(8 * 0.3, f64), 1e-12);
    expect_all_close(along_ones(along_ones(run(f)))(arguments()), scalar(8 * 0.8 + 16 * 0.3, f64),
                     1e-12);
  }
}

TEST_P(PoliciesAroundHistoriesTest, DerivativesOfTheLongEntryAreThoseOfALoopWithoutARule) {
  const auto kept = two_iterations(Checkpoint(), false);
  for (const Checkpoint& rule : rules()) {
    const auto f = two_iterations(rule, false);
    expect_all_close(run(along_ones(along_ones(f)))(arguments()),
                     along_ones(along_ones(kept))(arguments()), 1e-12);
    const Arguments actual = run(grad(along_ones(f)))(arguments()),
                    expected = grad(along_ones(kept))(arguments());
    expect_all_close(mask_padding(actual.first), mask_padding(expected.first), 1e-12);
    expect_all_close(actual.second, expected.second, 1e-12);
  }
}

}  // namespace
}  // namespace reel
