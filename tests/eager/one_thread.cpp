// A program that sets one thread first starts no other, so that counts of references are not
// atomic. Exits with 0 if that holds and the results are right.
#include <sys/single_threaded.h>

#include <cstdio>

#include "reel/reel.h"

int main() {
  using namespace reel;
  if (!__libc_single_threaded) {
    std::puts("left out: a thread runs already, perhaps a sanitizer's");
    return 0;
  }
  set_threads(1);
  const Tensor x = ones({300, 300});
  const auto step = [&](const Tensor& w) { return w - 0.5f * matmul(x, w); };
  const Tensor traced = jit(step)(x), eager = step(x);
  if (max(traced).item<float>() != -149 || max(eager).item<float>() != -149) {
    std::puts("the results are wrong");
    return 2;
  }
  if (!__libc_single_threaded) {
    std::puts("a thread was started");
    return 1;
  }
}
