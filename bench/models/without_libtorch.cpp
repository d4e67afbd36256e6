// Stands in for libtorch_models.cpp where libtorch is missing.
#include "libtorch_models.h"

namespace reel::bench {

const LibtorchModels* libtorch_models() { return nullptr; }

}  // namespace reel::bench
