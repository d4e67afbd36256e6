// error: cond and body are called with the state
#include "reel/reel.h"

using namespace reel;

auto run() {
  const std::function<Tensor(Tensor, Tensor)> body = [](const Tensor& i, const Tensor&) {
    return i;
  };
  return while_loop([](const Tensor& i) { return i < 3; }, body, scalar(0));
}
