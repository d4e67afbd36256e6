// error: a jitted function returns its results, a tree of tensors, not void
#include "reel/reel.h"

using namespace reel;

auto run() {
  jit([](const Tensor& x) { print(x); })(ones({2}));
}
