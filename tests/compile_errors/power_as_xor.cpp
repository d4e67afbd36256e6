// error: no match for
#include "reel/reel.h"

using namespace reel;

Tensor run(const Tensor& x) { return x ^ 2; }
