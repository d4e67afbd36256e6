// error: a tree is made of Tensor
#include "reel/reel.h"

#include <unordered_map>

using namespace reel;

const auto wrong = flatten(std::unordered_map<std::string, Tensor>{});
