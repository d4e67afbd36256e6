// error: jvp(f, primals, tangents) calls f with the primals
#include "reel/reel.h"

using namespace reel;

auto run() {
  return jvp([](const Tensor& x, const Tensor& y) { return x * y; }, ones({2}), ones({2}));
}
