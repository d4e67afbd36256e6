// error: take an example for each argument of f, a std::tuple of them or the only one
#include "reel/onnx.h"
#include "reel/reel.h"

using namespace reel;

const auto wrong = onnx_bytes([](const Tensor& a, const Tensor& b) { return a + b; }, ones({2}));
