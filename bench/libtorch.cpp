// Files that include libtorch's headers take half a minute to compile.
#include "libtorch.h"

#include "libtorch_ops.h"

#include <dlfcn.h>
#include <torch/torch.h>

#include <cstdlib>
#include <sstream>

namespace reel::bench {
namespace {

/// Returns a function of OpenBLAS; null if libtorch uses another BLAS.
template <class F>
F* find_openblas(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

Floats to_floats(const torch::Tensor& tensor) {
  const torch::Tensor whole = tensor.detach().contiguous();
  return {whole.data_ptr<float>(), whole.data_ptr<float>() + whole.numel()};
}

torch::Tensor multiply(torch::Tensor y, const torch::Tensor& factor, int ops) {
  for (int i = 0; i < ops; ++i) y = y * factor;
  return y;
}

/// A parameter, with the name of its gradient; empty if no other library has that gradient.
struct Parameter {
  std::string name;
  torch::Tensor value;
  std::function<torch::Tensor(const torch::Tensor&)> as_ours = [](const torch::Tensor& gradient) {
    return gradient;
  };
};

struct State {
  torch::Tensor h, c;
};

State lstm_step(const torch::Tensor& gates, const State& s) {
  const std::vector<torch::Tensor> part = gates.chunk(4, 1);
  const torch::Tensor c =
      torch::sigmoid(part[1]) * s.c + torch::sigmoid(part[0]) * torch::tanh(part[2]);
  return {torch::sigmoid(part[3]) * torch::tanh(c), c};
}

State custom_step(const torch::Tensor& gates, const State& s) {
  const std::vector<torch::Tensor> part = gates.chunk(4, 1);
  const torch::Tensor keep = torch::sigmoid(part[0]), open = torch::sigmoid(part[2]);
  const torch::Tensor c = keep * s.c + (1 - keep) * (part[1] / (1 + torch::abs(part[1])));
  return {open * torch::tanh(c) + (1 - open) * (torch::sigmoid(part[3]) * s.h), c};
}

/// CELL is replaced by the name of a cell.
constexpr const char* kScript = R"(
def lstm_step(gates: Tensor, h: Tensor, c: Tensor):
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c

def custom_step(gates: Tensor, h: Tensor, c: Tensor):
    f, n, o, k = gates.chunk(4, 1)
    keep = torch.sigmoid(f)
    opened = torch.sigmoid(o)
    c = keep * c + (1 - keep) * (n / (1 + torch.abs(n)))
    return opened * torch.tanh(c) + (1 - opened) * (torch.sigmoid(k) * h), c

def outputs(x: Tensor, w: Tensor, u: Tensor, b: Tensor, h: Tensor, c: Tensor):
    hs: List[Tensor] = []
    for x_t in x.unbind(0):
        h, c = CELL_step(torch.addmm(torch.addmm(b, x_t, w), h, u), h, c)
        hs.append(h)
    return torch.stack(hs)
)";

std::string script_of(Cell cell) {
  std::string script = kScript;
  const std::string place = "CELL";
  return script.replace(script.find(place), place.size(), cell == Cell::lstm ? "lstm" : "custom");
}

/// The parameters' values for one layer.
class Problem {
 public:
  explicit Problem(const RnnProblem& p) : p_(p) {}

  torch::Tensor x() const { return array("x", {p_.steps, p_.batch, p_.in}).requires_grad_(); }
  torch::Tensor cotangent() const { return array("cotangent", {p_.steps, p_.batch, p_.hidden}); }
  torch::Tensor zero_state() const { return torch::zeros({p_.batch, p_.hidden}); }
  Parameter input_weight() const { return parameter("cell.input_weight", {p_.in, columns()}); }
  Parameter recurrent_weight() const {
    return parameter("cell.recurrent_weight", {p_.hidden, columns()});
  }
  Parameter bias() const { return parameter("cell.bias", {columns()}); }
  torch::Tensor candidate_bias() const { return array("cell.candidate_bias", {p_.hidden}); }

 private:
  int columns() const { return p_.gates() * p_.hidden; }
  torch::Tensor array(const std::string& name, std::vector<std::int64_t> sizes) const {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return torch::tensor(p_.draw(name, static_cast<std::size_t>(count))).reshape(sizes);
  }
  Parameter parameter(const std::string& name, const std::vector<std::int64_t>& sizes) const {
    return {name, array(name, sizes).requires_grad_()};
  }

  RnnProblem p_;
};

/// Returns a run that computes hs and the gradients of outputs().
RnnRun run_of(const std::function<torch::Tensor()>& outputs, const torch::Tensor& cotangent,
              const std::vector<Parameter>& parameters) {
  struct Results {
    torch::Tensor hs;
    std::vector<torch::Tensor> gradients;
  };
  const auto last = std::make_shared<Results>();
  return {[=] {
            *last = {};
            std::vector<torch::Tensor> values;
            for (const Parameter& parameter : parameters) values.push_back(parameter.value);
            const torch::Tensor hs = outputs();
            *last = {hs, torch::autograd::grad({hs}, values, {cotangent})};
          },
          [=] {
            Numbers numbers{{"hs", to_floats(last->hs)}};
            for (std::size_t i = 0; i < parameters.size(); ++i)
              if (!parameters[i].name.empty())
                numbers[parameters[i].name] = to_floats(parameters[i].as_ours(last->gradients[i]));
            return numbers;
          }};
}

/// libtorch's layers store weights transposed, and have two biases. A GRU needs a third of the
/// second one.
template <class Layer>
RnnRun layer_of(const Problem& problem, Layer layer, bool has_candidate_bias) {
  const auto transposed = [](const torch::Tensor& t) { return t.t(); };
  const torch::NoGradGuard no_gradient;
  auto parameters = layer->named_parameters();
  parameters["weight_ih_l0"].copy_(problem.input_weight().value.t());
  parameters["weight_hh_l0"].copy_(problem.recurrent_weight().value.t());
  parameters["bias_ih_l0"].copy_(problem.bias().value);
  parameters["bias_hh_l0"].zero_();
  Parameter second_bias{"", parameters["bias_hh_l0"]};
  if (has_candidate_bias) {
    second_bias.value.chunk(3, 0)[2].copy_(problem.candidate_bias());
    second_bias.name = "cell.candidate_bias";
    second_bias.as_ours = [](const torch::Tensor& t) { return t.chunk(3, 0)[2]; };
  }
  const torch::Tensor x = problem.x();
  return run_of([=]() mutable { return std::get<0>(layer->forward(x)); }, problem.cotangent(),
                {{"x", x},
                 {"cell.input_weight", parameters["weight_ih_l0"], transposed},
                 {"cell.recurrent_weight", parameters["weight_hh_l0"], transposed},
                 {"cell.bias", parameters["bias_ih_l0"]},
                 second_bias});
}

class TheLibtorch final : public Libtorch {
 public:
  std::string describe() const override {
    std::ostringstream text;
    text << "libtorch: " << TORCH_VERSION << ", " << at::get_num_threads() << " thread(s)";
    std::istringstream config(torch::show_config());
    for (std::string line; std::getline(config, line);)
      for (const std::string wanted : {"  - CPU capability", "  - Intel(R) MKL-DNN"})
        if (line.starts_with(wanted)) text << ", " << line.substr(4);
    const auto blas = find_openblas<const char*()>("openblas_get_config");
    const auto threads = find_openblas<int()>("openblas_get_num_threads");
    if (blas && threads)
      text << ", " << blas() << ", " << threads() << " thread(s)";
    else
      text << ", a BLAS that is not OpenBLAS";
    if (const char* kernels = std::getenv("OPENBLAS_CORETYPE"))
      text << ", OPENBLAS_CORETYPE=" << kernels;
    return text.str();
  }

  void set_threads(int count) const override {
    at::set_num_threads(count);
    if (at::get_num_interop_threads() != count) at::set_num_interop_threads(count);
    if (const auto set = find_openblas<void(int)>("openblas_set_num_threads")) set(count);
  }

  std::function<void()> multiply_chain(Chain what, int floats, int ops) const override {
    const c10::InferenceMode inference(what == Chain::in_inference_mode);
    const torch::Tensor x = torch::ones({floats}), factor = torch::ones({floats});
    switch (what) {
      case Chain::without_tape:
        return [=] {
          const torch::NoGradGuard no_gradient;
          multiply(x, factor, ops);
        };
      case Chain::in_inference_mode:
        return [=] {
          const c10::InferenceMode inference;
          multiply(x, factor, ops);
        };
      case Chain::recorded:
        x.requires_grad_();
        return [=] { multiply(x, factor, ops); };
      case Chain::forward_and_backward:
        x.requires_grad_();
        return [=] {
          const torch::Tensor y = multiply(x, factor, ops);
          torch::autograd::grad({y}, {x}, {torch::ones_like(y)});
        };
    }
    return {};
  }

  OpRun op(const OpCase& of, std::int64_t rows, std::int64_t columns) const override {
    return libtorch_op(of, rows, columns);
  }

  RnnRun layer(const RnnProblem& p) const override {
    if (p.cell == Cell::lstm) return layer_of(Problem(p), torch::nn::LSTM(p.in, p.hidden), false);
    return layer_of(Problem(p), torch::nn::GRU(p.in, p.hidden), true);
  }

  RnnRun in_ops(const RnnProblem& p) const override {
    const Problem problem(p);
    const torch::Tensor x = problem.x();
    const Parameter w = problem.input_weight(), u = problem.recurrent_weight(), b = problem.bias();
    const auto step = p.cell == Cell::lstm ? lstm_step : custom_step;
    const auto outputs = [=] {
      State state{problem.zero_state(), problem.zero_state()};
      std::vector<torch::Tensor> hs;
      for (const torch::Tensor& x_t : x.unbind(0)) {
        // addmm adds the product to its first argument: faster than matmul and +.
        state = step(torch::addmm(torch::addmm(b.value, x_t, w.value), state.h, u.value), state);
        hs.push_back(state.h);
      }
      return torch::stack(hs);
    };
    return run_of(outputs, problem.cotangent(), {{"x", x}, w, u, b});
  }

  RnnRun in_torchscript(const RnnProblem& p) const override {
    const Problem problem(p);
    const torch::Tensor x = problem.x();
    const Parameter w = problem.input_weight(), u = problem.recurrent_weight(), b = problem.bias();
    const auto module = torch::jit::compile(script_of(p.cell));
    const auto outputs = [=] {
      return module
          ->run_method("outputs", x, w.value, u.value, b.value, problem.zero_state(),
                       problem.zero_state())
          .toTensor();
    };
    const RnnRun rnn = run_of(outputs, problem.cotangent(), {{"x", x}, w, u, b});
    for (int i = 0; i < 4; ++i) rnn.run();  // TorchScript profiles and compiles itself
    return rnn;
  }
};

}  // namespace

const Libtorch* libtorch() {
  static const TheLibtorch the_libtorch;
  return &the_libtorch;
}

}  // namespace reel::bench
