// error: write what f returns, a tree of tensors, not void
#include "reel/onnx.h"
#include "reel/reel.h"

using namespace reel;

void wrong() {
  save_onnx(
      "model.onnx", [](const Tensor& x) { x + 1; }, ones({2}));
}
