// Running out of memory in a call on sorted rows: its arguments have their rows where they were.
#include <gtest/gtest.h>

#include <memory>
#include <tuple>
#include <utility>

#include "reel/tests/frontend/errors/failed_attempts.h"

namespace reel {
namespace {

struct Batch {
  Tensor x, h, w, scale;
};

Batch ragged_batch() {
  const Dim batch("batch", 9), time("time", tensor({1, 4, 0, 2, 5, 3, 2, 4, 1}, {batch}));
  const Dim in("in", 24), out("out", 24);
  manual_seed(5);
  return {random_normal({time, batch, in}), random_normal({batch, in}),
          random_normal({in, out}) * 0.1, random_normal({batch})};
}

Tensor loss(const Batch& b) {
  const Dim time = b.x.dim("time");
  const auto step = [&](const Tensor& x, const Tensor& h) {
    const Tensor next =
        tanh(rename(matmul(h, b.w, h.dim("in")), b.w.dim("out"), h.dim("in")) + x * b.scale);
    return std::pair{next, next};
  };
  return sum(square(scan(Scan{.spatial_dim = time, .initial = b.h, .xs = b.x, .body = step}).ys));
}

/// A gradient step with a moved-in batch, which draws random numbers for each row.
Attempt step_of_batch(bool is_recorded) {
  const auto state = std::make_shared<Batch>(ragged_batch());
  const auto step = [](Batch b) {
    const Batch slope = grad(loss)(b);
    return Batch{b.x - slope.x, b.h - slope.h * random_uniform(b.h.dims()), b.w, b.scale * 0.5};
  };
  const auto fast = jit(step, {.passes = {.block_rows = 4}});
  if (is_recorded) {
    fast(*state);
    EXPECT_NE(fast.explain().find("rows: of batch=9, sorted"), std::string::npos);
  }
  const auto leaves = [state] { return tensors_of(flatten(*state)); };
  const auto attempt = [=] {
    manual_seed(5);
    *state = fast(std::move(*state));
  };
  return {attempt, leaves, leaves};
}

TEST(FailedAllocationsOfSortedRowsTest, MovedArgumentsAreAsTheyWere) {
  for (const bool is_recorded : {true, false})
    for (const Fails fails : {Fails::once, Fails::for_good})
      expect_no_harm(
          is_recorded ? "recorded" : "first", [=] { return step_of_batch(is_recorded); }, fails);
}

}  // namespace
}  // namespace reel
