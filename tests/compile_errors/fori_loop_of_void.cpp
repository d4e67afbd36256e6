// error: functions given to loops, branches and transformations return their results
#include "reel/reel.h"

using namespace reel;

auto run() {
  return fori_loop(
      0, 3, [](const Tensor&, const Tensor&) {}, scalar(0.));
}
