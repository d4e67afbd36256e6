// A program that uses the installed reel::onnx, which shares per-thread state with the library.
#include <reel/onnx.h>
#include <reel/reel.h>

#include <map>
#include <string>
#include <utility>

namespace {

/// Sums tanh(s·x_t) over the time; its gradient reads residuals as `checkpoint` says.
auto loss_with(const reel::Checkpoint& checkpoint) {
  return [checkpoint](const reel::Tensor& x) {
    const auto body = [](const reel::Tensor& x_t, const reel::Tensor& s) {
      const reel::Tensor next = tanh(s * x_t);
      return std::pair{next, next};
    };
    return sum(reel::scan(reel::Scan{.initial = reel::scalar(1.),
                                     .xs = x,
                                     .body = body,
                                     .checkpoint = checkpoint})
                   .ys);
  };
}

}  // namespace

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
  // A model has no checkpoints: reel::onnx tells the library's loops to leave them out.
  const auto gradient_of = [](const auto& loss) {
    return reel::onnx_bytes(reel::grad(loss), reel::ones({6}));
  };
  const bool has_no_checkpoints =
      gradient_of(loss_with(reel::Checkpoint::every(2))) == gradient_of(loss_with({}));
  return is_caught && has_no_checkpoints && sum(outputs.begin()->second).item<float>() == 14 ? 0
                                                                                             : 1;
}
