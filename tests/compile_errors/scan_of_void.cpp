// error: functions given to loops, branches and transformations return their results
#include "reel/reel.h"

using namespace reel;

auto run() {
  return scan(
      Scan{.initial = scalar(0.), .xs = ones({3}), .body = [](const Tensor&, const Tensor&) {}});
}
