// error: in place of a constructor, give each member its initial value
#include "reel/reel.h"

using namespace reel;

struct Model {
  Model() : a(zeros({3})) {}
  Tensor a;
};
const auto wrong = flatten(Model{});
