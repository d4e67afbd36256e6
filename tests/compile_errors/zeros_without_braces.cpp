// error: zeros(int, int)
#include "reel/reel.h"

using namespace reel;

const Tensor wrong = zeros(2, 3);
