// error: could not convert
#include "reel/reel.h"

using namespace reel;

const Linear wrong(Dim("in", 2), Dim("out", 3));
