#include "ops.h"

#include <cmath>

#include "reel/reel.h"

namespace reel::bench {

std::vector<float> elements_of(const OpInput& input, std::size_t number) {
  std::int64_t count = 1;
  for (const std::int64_t size : input.sizes) count *= size;
  std::vector<float> result(static_cast<std::size_t>(count));
  std::uint64_t state = 0x9E3779B97F4A7C15ull * (number + 1);
  const auto next = [&] {  // splitmix64, from 0 to 1
    std::uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  };
  for (float& element : result) {
    double value = 0;
    switch (input.values) {
      case OpInput::Values::normal:
        value = std::sqrt(-2 * std::log(1 - next())) * std::cos(2 * M_PI * next());
        break;
      case OpInput::Values::positive:
        value = 0.1 + 1.9 * next();
        break;
      case OpInput::Values::boolean:
        value = next() < 0.5;
        break;
      case OpInput::Values::index:
        value = std::floor(next() * static_cast<double>(input.below));
        break;
    }
    element = static_cast<float>(value);
  }
  return result;
}

std::vector<OpCase> op_cases(std::int64_t rows, std::int64_t columns) {
  using V = OpInput::Values;
  const OpInput a{{rows, columns}, V::normal}, row{{columns}, V::normal},
      positive{{rows, columns}, V::positive}, yes{{rows, columns}, V::boolean},
      row_index{{rows}, V::index, rows}, index{{rows, columns}, V::index, columns},
      label{{rows}, V::index, columns};
  const OpInput narrow{{rows * columns / 16, 16}, V::normal},
      narrow_index{{rows * columns / 16}, V::index, rows * columns / 16};
  const std::int64_t k = std::min<std::int64_t>(8, columns);
  using X = const Tensors&;
  std::vector<OpCase> result{
      // Element-wise ops of one operand.
      {"neg", {a}, [](X x) { return -x[0]; }},
      {"abs", {a}, [](X x) { return abs(x[0]); }},
      {"sign", {a}, [](X x) { return sign(x[0]); }},
      {"floor", {a}, [](X x) { return floor(x[0]); }},
      {"ceil", {a}, [](X x) { return ceil(x[0]); }},
      {"round", {a}, [](X x) { return round(x[0]); }},
      {"square", {a}, [](X x) { return square(x[0]); }},
      {"sqrt", {positive}, [](X x) { return sqrt(x[0]); }},
      {"rsqrt", {positive}, [](X x) { return rsqrt(x[0]); }},
      {"reciprocal", {positive}, [](X x) { return reciprocal(x[0]); }},
      {"exp", {a}, [](X x) { return exp(x[0]); }},
      {"expm1", {a}, [](X x) { return expm1(x[0]); }},
      {"log", {positive}, [](X x) { return log(x[0]); }},
      {"log1p", {positive}, [](X x) { return log1p(x[0]); }},
      {"sin", {a}, [](X x) { return sin(x[0]); }},
      {"cos", {a}, [](X x) { return cos(x[0]); }},
      {"tanh", {a}, [](X x) { return tanh(x[0]); }},
      {"sigmoid", {a}, [](X x) { return sigmoid(x[0]); }},
      {"softplus", {a}, [](X x) { return softplus(x[0]); }},
      {"erf", {a}, [](X x) { return erf(x[0]); }},
      {"gelu", {a}, [](X x) { return gelu(x[0]); }},
      {"gelu by tanh", {a}, [](X x) { return gelu(x[0], GeluForm::tanh); }},
      {"relu", {a}, [](X x) { return relu(x[0]); }},
      {"logical_not", {yes}, [](X x) { return !x[0]; }},
      {"isnan", {a}, [](X x) { return isnan(x[0]); }},
      {"isinf", {a}, [](X x) { return isinf(x[0]); }},
      {"isfinite", {a}, [](X x) { return isfinite(x[0]); }},
      {"cast to i32", {a}, [](X x) { return cast(x[0], i32); }},
      {"cast to f64", {a}, [](X x) { return cast(x[0], f64); }},
      {"cast of booleans", {yes}, [](X x) { return cast(x[0], f32); }},
      // Ops on two and three operands.
      {"add", {a, a}, [](X x) { return x[0] + x[1]; }},
      {"add a row", {a, row}, [](X x) { return x[0] + x[1]; }},
      {"sub", {a, a}, [](X x) { return x[0] - x[1]; }},
      {"mul", {a, a}, [](X x) { return x[0] * x[1]; }},
      {"mul by a number", {a}, [](X x) { return x[0] * 0.5; }},
      {"div", {a, positive}, [](X x) { return x[0] / x[1]; }},
      {"mod", {a, positive}, [](X x) { return mod(x[0], x[1]); }},
      {"floor_divide", {a, positive}, [](X x) { return floor_divide(x[0], x[1]); }},
      {"pow", {positive, a}, [](X x) { return pow(x[0], x[1]); }},
      {"pow 2", {a}, [](X x) { return pow(x[0], 2.); }},
      {"pow 3", {a}, [](X x) { return pow(x[0], 3.); }},
      {"pow 0.5", {positive}, [](X x) { return pow(x[0], 0.5); }},
      {"maximum", {a, a}, [](X x) { return maximum(x[0], x[1]); }},
      {"minimum", {a, a}, [](X x) { return minimum(x[0], x[1]); }},
      {"clip", {a}, [](X x) { return clip(x[0], -1., 1.); }},
      {"equal", {a, a}, [](X x) { return x[0] == x[1]; }},
      {"less", {a, a}, [](X x) { return x[0] < x[1]; }},
      {"logical_and", {yes, yes}, [](X x) { return x[0] && x[1]; }},
      {"logical_or", {yes, yes}, [](X x) { return x[0] || x[1]; }},
      {"logical_xor", {yes, yes}, [](X x) { return logical_xor(x[0], x[1]); }},
      {"where", {yes, a, a}, [](X x) { return where(x[0], x[1], x[2]); }},
      // Reductions: of all elements, of each row, of each column.
      {"sum", {a}, [](X x) { return sum(x[0]); }},
      {"sum of rows", {a}, [](X x) { return sum(x[0], 1); }},
      {"sum of columns", {a}, [](X x) { return sum(x[0], 0); }},
      {"prod of rows", {positive}, [](X x) { return prod(x[0], 1); }},
      {"mean of rows", {a}, [](X x) { return mean(x[0], 1); }},
      {"variance of rows", {a}, [](X x) { return variance(x[0], 1); }},
      {"max of rows", {a}, [](X x) { return max(x[0], 1); }},
      {"max of columns", {a}, [](X x) { return max(x[0], 0); }},
      {"min of rows", {a}, [](X x) { return min(x[0], 1); }},
      {"any of rows", {yes}, [](X x) { return any(x[0], 1); }},
      {"all of rows", {yes}, [](X x) { return all(x[0], 1); }},
      {"argmax of rows", {a}, [](X x) { return argmax(x[0], 1); }},
      {"argmin of rows", {a}, [](X x) { return argmin(x[0], 1); }},
      {"argmax of columns", {a}, [](X x) { return argmax(x[0], 0); }},
      {"logsumexp of rows", {a}, [](X x) { return logsumexp(x[0], 1); }},
      {"softmax of rows", {a}, [](X x) { return softmax(x[0], 1); }},
      {"log_softmax of rows", {a}, [](X x) { return log_softmax(x[0], 1); }},
      {"cumsum of rows", {a}, [](X x) { return cumsum(x[0], 1); }},
      {"cumsum of columns", {a}, [](X x) { return cumsum(x[0], 0); }},
      {"cumprod of rows", {positive}, [](X x) { return cumprod(x[0], 1); }},
      {"cumprod of columns", {positive}, [](X x) { return cumprod(x[0], 0); }},
      // Shapes.
      {"transpose",
       {a},
       [](X x) {
         return transpose(x[0], {1, 0});
       }},
      {"expand a row",
       {row},
       [rows](X x) {
         return expand(reshape(x[0], {1, x[0].type().sizes()[0]}), {rows, x[0].type().sizes()[0]});
       }},
      {"concat rows",
       {a, a},
       [](X x) {
         return concat({x[0], x[1]}, 0);
       }},
      {"concat columns",
       {a, a},
       [](X x) {
         return concat({x[0], x[1]}, 1);
       }},
      {"concat narrow columns",
       {narrow, narrow},
       [](X x) {
         return concat({x[0], x[1]}, 1);
       }},
      {"stack",
       {a, a},
       [](X x) {
         return stack({x[0], x[1]}, 0);
       }},
      {"stack last",
       {a, a},
       [](X x) {
         return stack({x[0], x[1]}, 2);
       }},
      {"reverse rows", {a}, [](X x) { return reverse(x[0], 0); }},
      {"reverse columns", {a}, [](X x) { return reverse(x[0], 1); }},
      {"slice columns",
       {a},
       [columns](X x) { return slice(x[0], 1, columns / 4, columns / 4 * 3); }},
      {"slice by step", {a}, [](X x) { return slice(x[0], 1, 0, {}, 2); }},
      {"pad columns", {a}, [](X x) { return pad(x[0], 1, 1, 1); }},
      {"pad narrow columns", {narrow}, [](X x) { return pad(x[0], 1, 1, 1); }},
      {"pad rows", {a}, [](X x) { return pad(x[0], 0, 1, 1); }},
      // Indices.
      {"gather rows", {a, row_index}, [](X x) { return gather(x[0], x[1], 0); }},
      {"gather narrow rows", {narrow, narrow_index}, [](X x) { return gather(x[0], x[1], 0); }},
      {"gather columns", {a, label}, [](X x) { return gather(x[0], x[1], 1); }},
      {"gather an element of each row",
       {a, label},
       [](X x) { return gather(x[0], x[1], 1, {.batch_dims = 1}); }},
      {"gather elements", {a, index}, [](X x) { return gather(x[0], x[1], 1, {.batch_dims = 1}); }},
      {"scatter_add rows", {a, row_index, a}, [](X x) { return scatter_add(x[0], x[1], x[2], 0); }},
      {"one_hot", {label}, [columns](X x) { return one_hot(x[0], Dim(columns)); }},
      {"sort of rows", {a}, [](X x) { return sort(x[0], 1); }},
      {"argsort of rows", {a}, [](X x) { return argsort(x[0], 1); }, true},
      {"top_k of rows", {a}, [k](X x) { return top_k(x[0], 1, Dim(k)).values; }},
      // Products and layers.
      {"matmul", {a, {{columns, columns}}}, [](X x) { return matmul(x[0], x[1]); }},
      {"layer_norm",
       {a, row, row},
       [rows = Dim("rows", rows), feature = Dim("feature", columns)](X x) {
         const LayerNorm norm{reshape(x[1], {feature}), reshape(x[2], {feature}), feature};
         return norm(reshape(x[0], {rows, feature}));
       }},
      // Random numbers.
      {"random_normal",
       {},
       [=](X) {
         return random_normal({rows, columns});
       },
       true},
      {"random_uniform",
       {},
       [=](X) {
         return random_uniform({rows, columns});
       },
       true},
      {"bernoulli",
       {},
       [=](X) {
         return bernoulli(0.5, {rows, columns});
       },
       true},
      {"dropout", {a}, [](X x) { return dropout(x[0], 0.1); }, true},
      // Numbers without operands.
      {"zeros",
       {},
       [=](X) {
         return zeros({rows, columns});
       }},
      {"full",
       {},
       [=](X) {
         return full({rows, columns}, 0.5);
       }},
      {"range", {}, [=](X) { return range(rows * columns); }},
  };
  return result;
}

}  // namespace reel::bench
