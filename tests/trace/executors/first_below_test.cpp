// FirstBelow, compared with a linear search from the front.
#include "reel/trace/executors/plan/base/first_below.h"

#include <gtest/gtest.h>

#include <random>

namespace reel {
namespace {

TEST(FirstBelowTest, AgreesWithASearchFromTheFront) {
  std::mt19937 random(7);
  for (const std::size_t count : {0, 1, 2, 3, 8, 9, 33, 100}) {
    std::vector<int> numbers(count);
    for (int& number : numbers) number = static_cast<int>(random() % 20) - 1;
    FirstBelow below(numbers);
    for (int twice = 0; twice < 2; ++twice) {
      below.begin();
      std::vector<bool> is_out(count);
      for (std::size_t step = 0; step < 2 * count + 2; ++step) {
        const int limit = static_cast<int>(random() % 22) - 2;
        std::size_t expected = 0;
        while (expected < count && (is_out[expected] || numbers[expected] > limit)) ++expected;
        ASSERT_EQ(below.find(limit), expected) << "of " << count << ", limit " << limit;
        if (expected == count) continue;
        below.leave_out(expected);
        is_out[expected] = true;
      }
    }
  }
}

}  // namespace
}  // namespace reel
