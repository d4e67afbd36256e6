// error: the cond of scan is called with the state alone
#include "reel/reel.h"

using namespace reel;

auto run() {
  return scan(Scan{.initial = scalar(0.),
                   .xs = ones({3}),
                   .cond = [](const Tensor& x, const Tensor&, const Tensor&) { return x < 3; },
                   .body =
                       [](const Tensor& x, const Tensor& s) {
                         return std::pair{x, s};
                       }});
}
