// error: scan calls body(x, state), body(state) without xs, or body(x) without a state
#include "reel/reel.h"

using namespace reel;

auto run() {
  return scan(
      Scan{.initial = scalar(0.),
           .xs = ones({3}),
           .body = [](const Tensor& x, const Tensor&, const Tensor&, const Tensor&) { return x; }});
}
