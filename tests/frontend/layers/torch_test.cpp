// Layers and losses compared with libtorch's, values and gradients, if libtorch is installed.
#include <torch/torch.h>

#include "reel/tests/modes.h"

namespace reel {
namespace {

at::Tensor to_torch(const Tensor& x) {
  std::vector<std::int64_t> sizes = x.shape();
  std::vector<double> values = values_of(x);
  return torch::from_blob(values.data(), sizes, torch::kFloat64).clone();
}
std::vector<double> values_of(const at::Tensor& x) {
  const at::Tensor flat = x.detach().contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}
/// Expects libtorch's values in the same order of elements.
void expect_same(const Tensor& ours, const at::Tensor& theirs, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  expect_values(ours, values_of(theirs), 1e-12, file, line);
}

class TorchTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, in{"in", 4}, hidden{"hidden", 5};
  const std::vector<int> lengths{6, 2, 4};
  const Dim time{"time", tensor(lengths, {batch})};
  Tensor x;
  void SetUp() override {
    manual_seed(10);
    x = random_normal({batch, time, in}, f64);
  }

  template <class Cell>
  static Tensor energy(const Cell& cell, const Tensor& x) {
    auto [outputs, state] = recur(cell, x, x.dim("time"));
    return sum(square(outputs));
  }
  /// Returns libtorch's energy, which gets each sequence alone.
  template <class Net>
  at::Tensor energy_of_torch(Net& net) const {
    at::Tensor total = torch::zeros({}, torch::kFloat64);
    const at::Tensor frames = to_torch(x);
    for (int b = 0; b < 3; ++b)
      total =
          total +
          std::get<0>(net->forward(frames[b].slice(0, 0, lengths[b]).unsqueeze(1))).square().sum();
    return total;
  }
};
REEL_IN_EVERY_MODE(TorchTest);

void set(at::Tensor& parameter, const at::Tensor& value) {
  torch::NoGradGuard guard;
  parameter.copy_(value);
}

TEST_P(TorchTest, LstmAgreesWithTorch) {
  LstmCell cell = LstmCell::init(in, hidden, {.dtype = f64});
  cell.bias = random_normal({cell.gate}, f64);
  torch::nn::LSTM net(torch::nn::LSTMOptions(4, 5));
  net->to(torch::kFloat64);
  auto parameters = net->named_parameters();
  set(parameters["weight_ih_l0"], to_torch(cell.input_weight).t());
  set(parameters["weight_hh_l0"], to_torch(cell.recurrent_weight).t());
  set(parameters["bias_ih_l0"], to_torch(cell.bias));
  set(parameters["bias_hh_l0"], torch::zeros({20}, torch::kFloat64));
  const at::Tensor theirs = energy_of_torch(net);
  theirs.backward();
  const auto [value, gradient] = run(value_and_grad(energy<LstmCell>))(cell, x);
  expect_same(value, theirs);
  expect_same(gradient.input_weight, parameters["weight_ih_l0"].grad().t());
  expect_same(gradient.recurrent_weight, parameters["weight_hh_l0"].grad().t());
  expect_same(gradient.bias, parameters["bias_ih_l0"].grad());
}

TEST_P(TorchTest, GruWithTheResetAfterTheProduct) {
  GruCell cell = GruCell::init(in, hidden, {.dtype = f64});
  cell.bias = random_normal({cell.gate}, f64);
  cell.candidate_bias = random_normal({hidden}, f64);
  torch::nn::GRU net(torch::nn::GRUOptions(4, 5));
  net->to(torch::kFloat64);
  auto parameters = net->named_parameters();
  set(parameters["weight_ih_l0"], to_torch(cell.input_weight).t());
  set(parameters["weight_hh_l0"], to_torch(cell.recurrent_weight).t());
  set(parameters["bias_ih_l0"], to_torch(cell.bias));
  set(parameters["bias_hh_l0"],
      torch::cat({torch::zeros({10}, torch::kFloat64), to_torch(*cell.candidate_bias)}));
  const at::Tensor theirs = energy_of_torch(net);
  theirs.backward();
  const auto [value, gradient] = run(value_and_grad(energy<GruCell>))(cell, x);
  expect_same(value, theirs);
  expect_same(gradient.input_weight, parameters["weight_ih_l0"].grad().t());
  expect_same(gradient.recurrent_weight, parameters["weight_hh_l0"].grad().t());
  expect_same(gradient.bias, parameters["bias_ih_l0"].grad());
  expect_same(*gradient.candidate_bias, parameters["bias_hh_l0"].grad().slice(0, 10));
}

TEST_P(TorchTest, LayerNormAndLosses) {
  const Tensor y = random_normal({batch, in}, f64);
  const at::Tensor frames = to_torch(y).requires_grad_();
  const auto compare = [&](const auto& ours, const at::Tensor& theirs) {
    const auto [value, gradient] = run(value_and_grad(ours))(y);
    expect_same(value, theirs);
    expect_same(gradient, torch::autograd::grad({theirs}, {frames})[0]);
  };
  const Tensor q = softmax(random_normal({batch, in}, f64), in);
  const Tensor targets = tensor({3, 0, 1}, {batch});
  namespace nn = torch::nn::functional;
  compare(
      [&](const Tensor& y) -> Tensor { return sum(LayerNorm::init(in, {.dtype = f64})(y) * q); },
      (nn::layer_norm(frames, nn::LayerNormFuncOptions({4})) * to_torch(q)).sum());
  compare(
      [&](const Tensor& y) -> Tensor {
        return cross_entropy(y, targets, in, {.label_smoothing = 0.2});
      },
      nn::cross_entropy(frames, torch::tensor({3, 0, 1}, torch::kLong),
                        nn::CrossEntropyFuncOptions().label_smoothing(0.2)));
  compare([&](const Tensor& y) -> Tensor { return cross_entropy(y, q, in); },
          nn::cross_entropy(frames, to_torch(q)));
  compare([&](const Tensor& y) -> Tensor { return binary_cross_entropy(y, q); },
          nn::binary_cross_entropy_with_logits(frames, to_torch(q)));
  compare([&](const Tensor& y) -> Tensor { return mean_squared_error(y, q); },
          nn::mse_loss(frames, to_torch(q)));
}

TEST_P(TorchTest, CtcLossAgreesWithTorch) {
  // No alignment of the second entry's two frames spells its three labels.
  const Dim spelling("spelling", tensor({2, 3, 0}, {batch}));
  const Tensor labels = tensor({1, 1, 0, 3, 2, 3, 0, 0, 0}, {batch, spelling});
  const at::Tensor logits = to_torch(x).requires_grad_();
  const at::Tensor theirs =
      torch::ctc_loss(torch::log_softmax(logits, 2).transpose(0, 1),
                      torch::tensor({1, 1, 0, 3, 2, 3, 0, 0, 0}, torch::kLong).view({3, 3}),
                      std::vector<std::int64_t>{6, 2, 4}, std::vector<std::int64_t>{2, 3, 0}, 0,
                      at::Reduction::Sum, true) /
      3;
  theirs.backward();
  const auto [value, gradient] = run(value_and_grad([&](const Tensor& x) -> Tensor {
    return ctc_loss(x, labels, {time, spelling, in}, {.zero_infinity = true});
  }))(x);
  expect_same(value, theirs);
  expect_same(gradient, logits.grad());
}

}  // namespace
}  // namespace reel
