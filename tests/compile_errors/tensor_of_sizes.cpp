// error: a tensor's elements are float, double, bool or integers that std::int64_t holds
#include "reel/reel.h"

using namespace reel;

auto wrong = tensor(std::vector<std::size_t>{1, 2});
