// error: the branches of switch_case are functions without arguments
#include "reel/reel.h"

using namespace reel;

auto run() {
  return switch_case(
      0, [](const Tensor& x) { return x; }, [](const Tensor& x) { return -x; });
}
