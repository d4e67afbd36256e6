// error: a tree is made of Tensor
#include "reel/reel.h"

#include <memory>

using namespace reel;

struct Model {
  std::shared_ptr<Tensor> weight;
};
auto wrong = grad([](const Model& m) { return sum(*m.weight); })(Model{});
