// error: takes them by value or by const reference, not as Tensor&
#include "reel/reel.h"

using namespace reel;

auto wrong = jit([](Tensor& x) { return x = x + 1; })(ones({2}));
