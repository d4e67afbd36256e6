// error: no matching function for call to
#include "reel/reel.h"

using namespace reel;

double run(const Tensor& x) { return x.item(); }
