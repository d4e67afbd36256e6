// error: cannot decompose
#include "reel/reel.h"

using namespace reel;

Tensor sum_of_rows(const Tensor& x) {
  auto [first, second] = x;
  return first + second;
}
