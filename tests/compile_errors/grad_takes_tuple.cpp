// error: are called with the arguments of f, f(x, rest...)
#include "reel/reel.h"

using namespace reel;

auto wrong = grad([](const std::tuple<Tensor, Tensor>& x) { return sum(std::get<0>(x)); })(
    ones({2}), ones({2}));
