// Replaces libtorch.cpp in builds without libtorch.
#include "libtorch.h"

namespace reel::bench {

const Libtorch* libtorch() { return nullptr; }

}  // namespace reel::bench
