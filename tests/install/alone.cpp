// A program that uses the installed library.
#include <reel/reel.h>

int main() {
  const auto square = reel::jit([](const reel::Tensor& x) { return x * x; });
  return square(reel::scalar(3.)).item<float>() == 9 ? 0 : 1;
}
