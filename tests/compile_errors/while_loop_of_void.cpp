// error: functions given to loops, branches and transformations return their results
#include "reel/reel.h"

using namespace reel;

auto run() {
  return while_loop([](const Tensor& i) { return i < 3; }, [](const Tensor&) {}, scalar(0));
}
