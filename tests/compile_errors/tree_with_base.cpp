// error: a tree is made of Tensor
#include "reel/reel.h"

using namespace reel;

struct Base {
  Tensor a;
};
struct Model : Base {
  Tensor b;
};
const auto wrong = flatten(Model{});
