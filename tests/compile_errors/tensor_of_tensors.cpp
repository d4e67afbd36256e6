// error: tensors become one by stack(tensors, dim) or concat(tensors, dim)
#include "reel/reel.h"

using namespace reel;

auto wrong = tensor(std::vector<Tensor>{ones({2}), ones({2})});
