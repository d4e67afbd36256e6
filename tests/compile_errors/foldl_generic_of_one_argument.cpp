// error: the function given to foldl or foldr is called with (state, x)
#include "reel/reel.h"

using namespace reel;

auto run() {
  return foldl([](const auto& x) { return x; }, ones({2}), scalar(0.));
}
