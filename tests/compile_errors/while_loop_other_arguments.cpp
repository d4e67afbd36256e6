// error: cond and body are called with the state, or with the members of a tuple or pair
#include "reel/reel.h"

using namespace reel;

auto run() {
  return while_loop([](const Tensor& i) { return i < 3; },
                    [](const Tensor& i, const Tensor&) { return i; }, scalar(0));
}
