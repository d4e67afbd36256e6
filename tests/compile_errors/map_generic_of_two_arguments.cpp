// error: the function given to map is called with a slice of xs
#include "reel/reel.h"

using namespace reel;

auto run() {
  return map([](const auto& x, const auto& y) { return x * y; }, ones({2}));
}
