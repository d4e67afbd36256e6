// A program that uses the installed reel::onnx.
#include <reel/onnx.h>
#include <reel/reel.h>

#include <map>
#include <string>

int main() {
  const auto square = [](const reel::Tensor& x) { return x * x; };
  const std::string bytes = reel::onnx_bytes(square, reel::ones({3}));
  const reel::OnnxModel model = reel::load_onnx_bytes(bytes);
  const std::map<std::string, reel::Tensor> inputs{
      {model.input_names().front(), reel::tensor({1.f, 2.f, 3.f})}};
  const auto outputs = reel::jit(model)(inputs);
  bool is_caught = false;
  try {
    reel::load_onnx_bytes("no model");
  } catch (const reel::OnnxError&) {
    is_caught = true;
  }
  return is_caught && sum(outputs.begin()->second).item<float>() == 14 ? 0 : 1;
}
