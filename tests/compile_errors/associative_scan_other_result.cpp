// error: the function given to associative_scan returns a tree of the type of xs
#include "reel/reel.h"

using namespace reel;

auto run() {
  return associative_scan(
      [](const Tensor& x, const Tensor& y) {
        return std::pair{x, y};
      },
      ones({3}), 0);
}
