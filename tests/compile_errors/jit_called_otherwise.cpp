// error: a jitted function is called with the arguments of f
#include "reel/reel.h"

using namespace reel;

auto wrong = jit([](const Tensor& x, const Tensor& y) { return x + y; })(ones({2}));
