// Loops with memory policies, prints and draws under several levels of vmap: rows have the bits of
// nested map, and policies change neither values nor gradients.
#include <vector>

#include "reel/tests/frontend/transforms/nested_rows.h"

namespace reel {
namespace {

Function slope_of(const Function& f) {
  return grad([f](const Tensor& x) -> Tensor { return sum(square(f(x))); });
}

/// Returns a scan over three elements with a memory policy.
Function scan_with(const Checkpoint& checkpoint, bool swaps = false) {
  return [=](const Tensor& x) -> Tensor {
    return scan(Scan{.initial = zeros({}, f64),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& s) {
                           const Tensor next = tanh(s * 0.5 + x);
                           return std::pair{next * x, next};
                         },
                     .checkpoint = checkpoint,
                     .swap_memory = swaps})
        .ys;
  };
}
/// Returns a loop with a memory policy. Its rows end at different iterations.
Function loop_with(const Checkpoint& checkpoint) {
  return [=](const Tensor& x) -> Tensor {
    return while_loop([](const Tensor& s) { return sum(s) < 4.0; },
                      [](const Tensor& s) { return s * 1.25 + sin(s) * 0.25; }, x,
                      {.checkpoint = checkpoint});
  };
}
/// Runs a scan in a scan, both with checkpoints.
Tensor loops_in_loops(const Tensor& x) {
  return scan(Scan{.initial = x,
                   .xs = x,
                   .body =
                       [](const Tensor& y, const Tensor& s) {
                         const Tensor inner = scan_with(Checkpoint::every(2))(s + y);
                         return std::pair{sum(inner), inner};
                       },
                   .checkpoint = Checkpoint::every(2)})
      .ys;
}

/// Returns [sizes..., 3] numbers between 0.5 and 1.5.
Tensor rows_of(const std::vector<std::int64_t>& sizes) { return sines(sizes, 3) * 0.5 + 1.0; }

class VmapPoliciesTest : public NestedRows {
 protected:
  void expect_slopes_of_map(const Function& f, const Tensor& x, int levels) {
    const Tensor of_rows = nested_map(slope_of(f), levels)(x);
    expect_all_close(run(nested(slope_of(f), levels))(x), of_rows, 1e-12);
    expect_all_close(run(slope_of(nested(f, levels)))(x), of_rows, 1e-12);
  }
};

TEST_P(VmapPoliciesTest, PoliciesOfScansHoldAtAllLevels) {
  const std::vector<Function> scans{
      scan_with({}), scan_with(Checkpoint::every(2)), scan_with(Checkpoint::budget(200)),
      scan_with(Checkpoint::every(1), true),
      scan_with(Checkpoint().where([](const StepValue&) { return Saving::recompute; }))};
  for (const Function& f : scans)
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{2}, {2, 2}, {2, 1, 2}}) {
      const int levels = static_cast<int>(sizes.size());
      expect_as_map(f, rows_of(sizes), levels);
      expect_slopes_of_map(f, rows_of(sizes), levels);
    }
}

TEST_P(VmapPoliciesTest, PoliciesOfLoopsWithOtherCountsInEachRowHoldAtAllLevels) {
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(2), Checkpoint::budget(200)}) {
    expect_as_map(loop_with(policy), rows_of({3}), 1);
    expect_as_map(loop_with(policy), rows_of({2, 3}), 2);
    expect_slopes_of_map(loop_with(policy), rows_of({2, 2}), 2);
  }
}

TEST_P(VmapPoliciesTest, PoliciesOfLoopsInLoopsHoldAtAllLevels) {
  expect_as_map(loops_in_loops, rows_of({2, 2}), 2);
  expect_slopes_of_map(loops_in_loops, rows_of({2, 2}), 2);
  const Function curvature = [](const Tensor& x) -> Tensor {
    return hvp([](const Tensor& x) -> Tensor { return sum(square(loops_in_loops(x))); }, x, cos(x));
  };
  expect_all_close(run(nested(curvature, 2))(rows_of({2, 2})),
                   nested_map(curvature, 2)(rows_of({2, 2})), 1e-10);
}

TEST_P(VmapPoliciesTest, FourLevelsHaveTheBitsOfMap) {
  const Tensor x = rows_of({2, 1, 2, 2});
  const std::vector<Function> functions{
      scan_with(Checkpoint::every(2)),
      loop_with(Checkpoint::every(2)),
      [](const Tensor& x) -> Tensor { return set_at(x, argmax(x, 0), sum(x), Axis(0)); },
      [](const Tensor& x) -> Tensor { return cumsum(sort(x, 0), 0); },
      [](const Tensor& x) -> Tensor { return softmax(x, 0) * top_k(x, 0, Dim(2)).values[0]; },
      [](const Tensor& x) -> Tensor {
        return cond(
            sum(x) > 3.0, [&] { return x * x; }, [&] { return sin(x); });
      },
  };
  for (const Function& f : functions) {
    expect_as_map(f, x, 4);
    expect_slopes_of_map(f, x, 4);
  }
}

TEST_P(VmapPoliciesTest, DrawsInLoopsAtFourLevelsHaveTheBitsOfMap) {
  const Function f = [](const Tensor& x) -> Tensor {
    return fori_loop(
        0, 2, [](const Tensor&, const Tensor& s) { return s + random_normal({3}, f64); }, x);
  };
  const Tensor x = rows_of({2, 1, 2, 2});
  manual_seed(7);
  const Tensor expected = nested_map(f, 4)(x);
  manual_seed(7);
  expect_same_bits(run(nested(f, 4))(x), expected);
}

REEL_IN_EVERY_MODE(VmapPoliciesTest);

}  // namespace
}  // namespace reel
