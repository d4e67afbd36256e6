// error: rows become a tensor by ragged(rows, dims), also if they have one length
#include "reel/reel.h"

using namespace reel;

auto wrong = tensor(std::vector<std::vector<float>>{{1, 2}, {3, 4}});
