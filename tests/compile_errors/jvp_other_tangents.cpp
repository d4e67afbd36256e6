// error: the tangents of jvp are a tree of the type of the primals
#include "reel/reel.h"

using namespace reel;

auto run() {
  return jvp([](const std::pair<Tensor, Tensor>& x) { return x.first; },
             std::pair{ones({2}), ones({2})}, ones({2}));
}
