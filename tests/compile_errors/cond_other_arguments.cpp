// error: both branches of cond are called with the arguments behind them
#include "reel/reel.h"

using namespace reel;

const auto twice = [](const Tensor& x) { return x * 2; };
auto wrong = cond(true, twice, twice, ones({2}), ones({2}));
