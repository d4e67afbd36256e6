// error: could not convert
#include "reel/reel.h"

using namespace reel;

void run(const Tensor& x) {
  if (x > 0) return;
}
