// error: invalid initialization of reference of type
#include "reel/reel.h"

using namespace reel;

Tensor run(const Tensor& a, const Tensor& b) { return concat(a, b, 0); }
