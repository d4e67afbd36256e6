// error: returns a Tensor, the scalar to take the gradient of
#include "reel/reel.h"

using namespace reel;

auto wrong = grad([](const Tensor& x) { return std::tuple{sum(x), x}; })(ones({2}));
