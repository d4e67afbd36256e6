// error: functions given to loops, branches and transformations return their results
#include "reel/reel.h"

using namespace reel;

auto run() {
  checkpoint([](const Tensor& x) { print(x); })(ones({2}));
}
