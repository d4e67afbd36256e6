// error: the function given to map is called with a slice of xs, which has the type of xs
#include "reel/reel.h"

using namespace reel;

auto run() {
  return map([](const Tensor& x, const Tensor& y) { return x * y; }, ones({2}));
}
