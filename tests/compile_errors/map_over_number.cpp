// error: map runs over the slices of tensors, not over a number
#include "reel/reel.h"

using namespace reel;

auto wrong = map([](const Tensor& x) { return x; }, 3);
