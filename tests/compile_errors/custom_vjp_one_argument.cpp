// error: the backward function of custom_vjp is called with (residuals, cotangent of the result)
#include "reel/reel.h"

using namespace reel;

auto wrong = custom_vjp(
    [](const Tensor& x) {
      return std::pair{x, x};
    },
    [](const Tensor& y) { return y; })(ones({2}));
