// error: a struct in a tree has members that can be assigned
#include "reel/reel.h"

using namespace reel;

struct Model {
  const Tensor a;
  Tensor b;
};
const auto wrong = jit([](const Model& model) { return model; })(Model{});
