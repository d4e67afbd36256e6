// error: the body of fori_loop is called with (i, state)
#include "reel/reel.h"

using namespace reel;

auto run() {
  return fori_loop(
      0, 3, [](const auto& s) { return s + 1; }, ones({2}));
}
