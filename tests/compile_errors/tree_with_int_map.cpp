// error: a map in a tree has std::string as keys
#include "reel/reel.h"

using namespace reel;

auto run() { return flatten(std::map<int, Tensor>{{1, ones({2})}}); }
