// Functions with nodes that have other forms in newer op sets, as models of each op set.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

/// Ops that take attributes as inputs of their nodes in newer op sets, and ops with sizes that a
/// run knows.
std::vector<Tensor> ops_of(const Tensor& x, const Tensor& w) {
  const Complex spectrum = rfft(x, 1);
  return {prod(x, {0}),
          max(x, {1}) - min(x, {1}),
          logsumexp(x, {0}),
          log_softmax(x, {1}),
          mean(x, {0}),
          sort(x, 1),
          pad(x, 0, 1, 2),
          spectrum.re,
          spectrum.im,
          irfft(spectrum, 1, x.dim(1)),
          cumsum(matmul(x, w), 0),
          cast(argmax(x, 1), f32),
          cast(x > 0, i32)};
}

struct Model {
  LstmCell cell;
  Linear readout;
};
struct Training {
  Model model;
  Adam<Model> optimiser;
};

void add_op_set(std::vector<SavedCase>& cases, std::int64_t op_set) {
  const auto name = [&](const char* what) { return str("op set ", op_set, ": ", what); };
  manual_seed(61);
  const Tensor x = random_normal({4, 6}), w = random_normal({6, 6});
  cases.push_back(saved_case(name("ops"), ops_of, std::tuple{x, w}, {.op_set = op_set}));
  cases.push_back(saved_case(name("rows of any number"),
                             [](const Tensor& x) {
                               return std::pair{sum(x, {0}), max(x, {0})};
                             },
                             std::tuple{x}, {.any_length = {{0, 0}}, .op_set = op_set}));
  cases.push_back(saved_case(
      name("the gradient of a loop with an end of its own"),
      [](const Tensor& x, const Tensor& w) {
        const auto loss = [&](const Tensor& w) {
          return sum(while_loop([](const Tensor& s) { return sum(abs(s)) < 50; },
                                [&](const Tensor& s) { return tanh(matmul(s, w)) + s * 1.5; }, x));
        };
        return grad(loss)(w);
      },
      std::tuple{x, w}, {.op_set = op_set}));
  const Dim batch("batch", 3), in("in", 2), hidden("hidden", 4), classes("classes", 3);
  const Dim time("time", tensor({4, 2, 1}, {batch}));
  const Model model{LstmCell::init(in, hidden), Linear::init(hidden, classes)};
  const Tensor xs = random_normal({batch, time, in}), labels = tensor({0, 2, 1}, {batch});
  const auto step = [=](Training t, const Tensor& xs, const Tensor& labels) {
    const auto loss = [&](const Model& m) {
      const auto [outputs, state] = recur(m.cell, xs, time);
      return cross_entropy(m.readout(mean(outputs, xs.dim("time"))), labels, classes);
    };
    auto [value, gradient] = value_and_grad(loss)(t.model);
    t.optimiser.update(t.model, gradient);
    return std::pair{value, t};
  };
  cases.push_back(saved_case(name("a step of training over lengths"), step,
                             std::tuple{Training{model, Adam<Model>(model)}, xs, labels},
                             {.arguments = {"t", "xs", "labels"}, .op_set = op_set}));
  cases.push_back(saved_case(
      name("a recurrent layer"),
      [](const Model& m, const Tensor& xs) { return recur(m.cell, xs, xs.dim("time")).outputs; },
      std::tuple{model, xs}, {.arguments = {"", "xs"}, .parameters = {0}, .op_set = op_set}));
}

}  // namespace

std::vector<SavedCase> op_set_cases() {
  std::vector<SavedCase> cases;
  for (const std::int64_t op_set : {17, 18, 20, 23, 26}) add_op_set(cases, op_set);
  return cases;
}

}  // namespace reel
