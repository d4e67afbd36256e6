// error: scan calls body(x, state), body(state) without xs, or body(x) without a state: with xs and
// a state the body takes both
#include "reel/reel.h"

using namespace reel;

auto run() {
  return scan(Scan{.initial = scalar(0.), .xs = ones({3}), .body = [](const Tensor& s) {
                     return std::pair{s, s};
                   }});
}
