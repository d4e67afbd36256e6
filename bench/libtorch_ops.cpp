#include "libtorch_ops.h"

#include <torch/torch.h>

#include <functional>
#include <map>
#include <tuple>

namespace reel::bench {
namespace {

using Tensors = std::vector<torch::Tensor>;
using X = const Tensors&;
using Op = std::function<torch::Tensor(X)>;

torch::Tensor tensor_of(const OpInput& input, std::size_t number) {
  const std::vector<float> elements = elements_of(input, number);
  const torch::Tensor all = torch::tensor(elements).reshape(input.sizes);
  switch (input.values) {
    case OpInput::Values::boolean:
      return all.to(torch::kBool);
    case OpInput::Values::index:
      return all.to(torch::kLong);
    default:
      return all;
  }
}

/// Sizes of the case's first operand, and of results without operands.
struct Sizes {
  std::int64_t rows, columns;
};

std::map<std::string, Op> ops_of(const Sizes& s) {
  namespace t = torch;
  const auto per_row = [](X x) { return x[1].unsqueeze(1); };
  return {
      {"neg", [](X x) { return -x[0]; }},
      {"abs", [](X x) { return t::abs(x[0]); }},
      {"sign", [](X x) { return t::sign(x[0]); }},
      {"floor", [](X x) { return t::floor(x[0]); }},
      {"ceil", [](X x) { return t::ceil(x[0]); }},
      {"round", [](X x) { return t::round(x[0]); }},
      {"square", [](X x) { return t::square(x[0]); }},
      {"sqrt", [](X x) { return t::sqrt(x[0]); }},
      {"rsqrt", [](X x) { return t::rsqrt(x[0]); }},
      {"reciprocal", [](X x) { return t::reciprocal(x[0]); }},
      {"exp", [](X x) { return t::exp(x[0]); }},
      {"expm1", [](X x) { return t::expm1(x[0]); }},
      {"log", [](X x) { return t::log(x[0]); }},
      {"log1p", [](X x) { return t::log1p(x[0]); }},
      {"sin", [](X x) { return t::sin(x[0]); }},
      {"cos", [](X x) { return t::cos(x[0]); }},
      {"tanh", [](X x) { return t::tanh(x[0]); }},
      {"sigmoid", [](X x) { return t::sigmoid(x[0]); }},
      {"softplus", [](X x) { return t::softplus(x[0]); }},
      {"erf", [](X x) { return t::erf(x[0]); }},
      {"gelu", [](X x) { return t::gelu(x[0]); }},
      {"gelu by tanh", [](X x) { return t::gelu(x[0], "tanh"); }},
      {"relu", [](X x) { return t::relu(x[0]); }},
      {"logical_not", [](X x) { return t::logical_not(x[0]); }},
      {"isnan", [](X x) { return t::isnan(x[0]); }},
      {"isinf", [](X x) { return t::isinf(x[0]); }},
      {"isfinite", [](X x) { return t::isfinite(x[0]); }},
      {"cast to i32", [](X x) { return x[0].to(t::kInt); }},
      {"cast to f64", [](X x) { return x[0].to(t::kDouble); }},
      {"cast of booleans", [](X x) { return x[0].to(t::kFloat); }},
      {"add", [](X x) { return x[0] + x[1]; }},
      {"add a row", [](X x) { return x[0] + x[1]; }},
      {"sub", [](X x) { return x[0] - x[1]; }},
      {"mul", [](X x) { return x[0] * x[1]; }},
      {"mul by a number", [](X x) { return x[0] * 0.5; }},
      {"div", [](X x) { return x[0] / x[1]; }},
      {"mod", [](X x) { return t::remainder(x[0], x[1]); }},
      {"floor_divide", [](X x) { return t::floor_divide(x[0], x[1]); }},
      {"pow", [](X x) { return t::pow(x[0], x[1]); }},
      {"pow 2", [](X x) { return t::pow(x[0], 2); }},
      {"pow 3", [](X x) { return t::pow(x[0], 3); }},
      {"pow 0.5", [](X x) { return t::pow(x[0], 0.5); }},
      {"maximum", [](X x) { return t::maximum(x[0], x[1]); }},
      {"minimum", [](X x) { return t::minimum(x[0], x[1]); }},
      {"clip", [](X x) { return t::clamp(x[0], -1, 1); }},
      {"equal", [](X x) { return x[0] == x[1]; }},
      {"less", [](X x) { return x[0] < x[1]; }},
      {"logical_and", [](X x) { return t::logical_and(x[0], x[1]); }},
      {"logical_or", [](X x) { return t::logical_or(x[0], x[1]); }},
      {"logical_xor", [](X x) { return t::logical_xor(x[0], x[1]); }},
      {"where", [](X x) { return t::where(x[0], x[1], x[2]); }},
      {"sum", [](X x) { return t::sum(x[0]); }},
      {"sum of rows", [](X x) { return t::sum(x[0], 1); }},
      {"sum of columns", [](X x) { return t::sum(x[0], 0); }},
      {"prod of rows", [](X x) { return t::prod(x[0], 1); }},
      {"mean of rows", [](X x) { return t::mean(x[0], 1); }},
      {"variance of rows", [](X x) { return t::var(x[0], {1}, false); }},
      {"max of rows", [](X x) { return t::amax(x[0], 1); }},
      {"max of columns", [](X x) { return t::amax(x[0], 0); }},
      {"min of rows", [](X x) { return t::amin(x[0], 1); }},
      {"any of rows", [](X x) { return t::any(x[0], 1); }},
      {"all of rows", [](X x) { return t::all(x[0], 1); }},
      {"argmax of rows", [](X x) { return t::argmax(x[0], 1); }},
      {"argmin of rows", [](X x) { return t::argmin(x[0], 1); }},
      {"argmax of columns", [](X x) { return t::argmax(x[0], 0); }},
      {"logsumexp of rows", [](X x) { return t::logsumexp(x[0], 1); }},
      {"softmax of rows", [](X x) { return t::softmax(x[0], 1); }},
      {"log_softmax of rows", [](X x) { return t::log_softmax(x[0], 1); }},
      {"cumsum of rows", [](X x) { return t::cumsum(x[0], 1); }},
      {"cumsum of columns", [](X x) { return t::cumsum(x[0], 0); }},
      {"cumprod of rows", [](X x) { return t::cumprod(x[0], 1); }},
      {"cumprod of columns", [](X x) { return t::cumprod(x[0], 0); }},
      {"transpose", [](X x) { return x[0].transpose(0, 1).contiguous(); }},
      {"expand a row",
       [s](X x) {
         return x[0].expand({s.rows, s.columns}).contiguous();
       }},
      {"concat rows",
       [](X x) {
         return t::cat({x[0], x[1]}, 0);
       }},
      {"concat columns",
       [](X x) {
         return t::cat({x[0], x[1]}, 1);
       }},
      {"concat narrow columns",
       [](X x) {
         return t::cat({x[0], x[1]}, 1);
       }},
      {"stack",
       [](X x) {
         return t::stack({x[0], x[1]}, 0);
       }},
      {"stack last",
       [](X x) {
         return t::stack({x[0], x[1]}, 2);
       }},
      {"reverse rows", [](X x) { return t::flip(x[0], 0); }},
      {"reverse columns", [](X x) { return t::flip(x[0], 1); }},
      {"slice columns",
       [s](X x) { return x[0].slice(1, s.columns / 4, s.columns / 4 * 3).contiguous(); }},
      {"slice by step", [](X x) { return x[0].slice(1, 0, c10::nullopt, 2).contiguous(); }},
      {"pad columns",
       [](X x) {
         return t::constant_pad_nd(x[0], {1, 1});
       }},
      {"pad narrow columns",
       [](X x) {
         return t::constant_pad_nd(x[0], {1, 1});
       }},
      {"pad rows",
       [](X x) {
         return t::constant_pad_nd(x[0], {0, 0, 1, 1});
       }},
      {"gather rows", [](X x) { return t::index_select(x[0], 0, x[1]); }},
      {"gather narrow rows", [](X x) { return t::index_select(x[0], 0, x[1]); }},
      {"gather columns", [](X x) { return t::index_select(x[0], 1, x[1]); }},
      {"gather an element of each row",
       [per_row](X x) { return t::gather(x[0], 1, per_row(x)).squeeze(1); }},
      {"gather elements", [](X x) { return t::gather(x[0], 1, x[1]); }},
      {"scatter_add rows", [](X x) { return t::index_add(x[0], 0, x[1], x[2]); }},
      {"one_hot", [s](X x) { return t::one_hot(x[0], s.columns).to(t::kFloat); }},
      {"sort of rows", [](X x) { return std::get<0>(t::sort(x[0], 1)); }},
      {"argsort of rows", [](X x) { return t::argsort(x[0], int64_t{1}, false); }},
      {"top_k of rows",
       [s](X x) { return std::get<0>(t::topk(x[0], std::min<std::int64_t>(8, s.columns), 1)); }},
      {"matmul", [](X x) { return t::matmul(x[0], x[1]); }},
      {"layer_norm", [s](X x) { return t::layer_norm(x[0], {s.columns}, x[1], x[2]); }},
      {"random_normal",
       [s](X) {
         return t::randn({s.rows, s.columns});
       }},
      {"random_uniform",
       [s](X) {
         return t::rand({s.rows, s.columns});
       }},
      {"bernoulli",
       [s](X) {
         return t::empty({s.rows, s.columns}, t::kBool).bernoulli_(0.5);
       }},
      {"dropout", [](X x) { return t::dropout(x[0], 0.1, true); }},
      {"zeros",
       [s](X) {
         return t::zeros({s.rows, s.columns});
       }},
      {"full",
       [s](X) {
         return t::full({s.rows, s.columns}, 0.5);
       }},
      {"range", [s](X) { return t::arange(s.rows * s.columns, t::kInt); }},
  };
}

}  // namespace

OpRun libtorch_op(const OpCase& of, std::int64_t rows, std::int64_t columns) {
  const auto ops = ops_of({rows, columns});
  const auto found = ops.find(of.name);
  if (found == ops.end()) return {};
  Tensors operands;
  for (std::size_t i = 0; i < of.inputs.size(); ++i) operands.push_back(tensor_of(of.inputs[i], i));
  const auto make = [op = found->second, operands] {
    const torch::NoGradGuard no_gradient;
    return op(operands);
  };
  return {[make] { make(); },
          [make] {
            const torch::Tensor all = make().to(torch::kFloat).contiguous();
            return std::vector<float>(all.data_ptr<float>(), all.data_ptr<float>() + all.numel());
          }};
}

}  // namespace reel::bench
