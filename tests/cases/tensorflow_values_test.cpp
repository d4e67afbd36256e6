// Values of while_loop that users of TensorFlow rely on.
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowValues = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowValues);

TEST_P(TensorFlowValues, V01_CountsToTenThousand) {
  const auto count = run([](Tensor start) {
    return while_loop([](Tensor x) { return x < 10000; }, [](Tensor x) { return x + 1; }, start,
                      {.parallel_iterations = 20});
  });
  expect_values(count(scalar(0)), {10000});
}

TEST_P(TensorFlowValues, V02_V03_SumsItsCounter) {
  const auto isum = run([](Tensor s) {
    const auto [i, sum] = while_loop([](Tensor i, Tensor) { return i < 10; },
                                     [](Tensor i, Tensor s) {
                                       return std::tuple{i + 1, i + s};
                                     },
                                     std::tuple{0, s});
    return sum;
  });
  expect_values(isum(scalar(0)), {45});
  expect_values(isum(tensor({1, 2, 3, 4, 5})), {46, 47, 48, 49, 50});
}

}  // namespace
}  // namespace reel
