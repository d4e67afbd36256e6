// Functions without loops, as models.
#include <limits>
#include "reel/core/ops/reductions/norm.h"

#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

Tensor matrix() { return tensor({{1., -2., 0.5}, {0., 4., -0.25}}); }
Tensor vector() { return tensor({0.5, -1., 2.}); }

void add_elementwise(std::vector<SavedCase>& cases) {
  const Tensor x = matrix(), positive = square(x) + 0.5;
  cases.push_back(saved_case(
      "functions of one number",
      [](const Tensor& x) {
        return std::tuple{tanh(x),  sigmoid(x), relu(x),  gelu(x), erf(x),    softplus(x),
                          expm1(x), exp(x),     sin(x),   cos(x),  square(x), sign(x),
                          abs(x),   -x,         floor(x), ceil(x), round(x),  arctan(x)};
      },
      x));
  cases.push_back(saved_case(
      "functions of a positive number",
      [](const Tensor& x) {
        return std::tuple{log(x), log1p(x), log1p(x * 1e-6), sqrt(x), expm1(x * 1e-6)};
      },
      positive));
  cases.push_back(saved_case(
      "arithmetic of two tensors",
      [](const Tensor& x, const Tensor& v) {
        return std::tuple{x + v,
                          x - v,
                          x * v,
                          x / v,
                          pow(abs(x) + 1, v),
                          maximum(x, v),
                          minimum(x, v),
                          mod(x, v),
                          floor_divide(x, v),
                          clip(x, -1, v)};
      },
      std::tuple{x, vector()}));
  const Tensor a = tensor({7, -7, 5}), b = tensor({2, 2, -3});
  cases.push_back(saved_case(
      "arithmetic of integers",
      [](const Tensor& a, const Tensor& b) {
        return std::tuple{a / b, mod(a, b),    floor_divide(a, b), remainder(a, b), maximum(a, b),
                          a * b, cast(a, f32), cast(a, i64),       relu(a)};
      },
      std::tuple{a, b}));
  cases.push_back(saved_case(
      "comparisons and logic",
      [](const Tensor& x, const Tensor& v) {
        const Tensor less = x < v, equal = x == v, more = x >= v;
        return std::tuple{less,
                          equal,
                          more,
                          x != v,
                          x <= v,
                          x > v,
                          less && more,
                          less || equal,
                          !less,
                          where(less, x, v),
                          where(less, equal, more)};
      },
      std::tuple{x, vector()}));
}

void add_reductions(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "reductions",
      [](const Tensor& x) {
        return std::tuple{sum(x),           sum(x, {1}),      mean(x, {0}),     max(x, {1}),
                          min(x),           prod(x, {0}),     variance(x, {1}), logsumexp(x, {1}),
                          any(x > 2, {1}),  all(x > -3, {0}), argmax(x, 1),     argmin(x, 0),
                          euclidean_norm(x)};
      },
      matrix()));
  cases.push_back(saved_case(
      "softmax and running sums",
      [](const Tensor& x) {
        return std::tuple{softmax(x, {1}),
                          softmax(x, {0, 1}),
                          log_softmax(x, {0}),
                          log_softmax(x, {0, 1}),
                          cumsum(x, 1),
                          cumsum(x, 0, {.exclusive = true}),
                          cumsum(x, 1, {.reverse = true}),
                          logcumsumexp(x, 0),
                          logcumsumexp(x, 1, {.exclusive = true, .reverse = true})};
      },
      matrix()));
  cases.push_back(saved_case(
      "shifts along each axis",
      [](const Tensor& x) {
        return std::tuple{shift(x, 0, 1, -1.25), shift(x, 1, -1), shift(x, 2, 2, 7)};
      },
      reshape(range(12, f32), {2, 3, 2})));
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  cases.push_back(saved_case(
      "rows of -inf",
      [](const Tensor& x) {
        return std::tuple{softmax(x, {1}),     softmax(x, {0, 1}),     softmax(x, {0}),
                          log_softmax(x, {1}), log_softmax(x, {0}),    logsumexp(x, {1}),
                          max(x, {1}),         log_softmax(x, {0, 1}), logsumexp(x, {0, 1})};
      },
      tensor({{kNothing, kNothing, kNothing}, {1., kNothing, 2.}})));
  const Dim batch("batch", 2), time("time", tensor({2, 0}, {batch}));
  cases.push_back(saved_case(
      "rows of -inf along a ragged dim",
      [](const Tensor& x) {
        const Dim time = x.dim("time");
        const Tensor nothing = where(x > 0, x, kNothing);
        return std::tuple{softmax(nothing, time), log_softmax(nothing, time),
                          logsumexp(nothing, time)};
      },
      tensor({-1., -2., 0., 0.}, {batch, time})));
}

void add_products(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 2), in("in", 3), out("out", 4), head("head", 2);
  manual_seed(1);
  const Tensor x = random_normal({batch, in}), w = random_normal({in, out}),
               many = random_normal({batch, head, in}),
               more = random_normal({out, batch, in, head});
  cases.push_back(saved_case(
      "products of matrices",
      [](const Tensor& a, const Tensor& b, const Tensor& v) {
        return std::tuple{matmul(a, b), matmul(a, v), matmul(v, b)};
      },
      std::tuple{random_normal({3, 3}), random_normal({3, 3}), vector()}));
  cases.push_back(saved_case(
      "products along named dims",
      [=](const Tensor& x, const Tensor& w, const Tensor& many, const Tensor& more) {
        return std::tuple{matmul(x, w, in), matmul(many, w, in), matmul(many, more, in),
                          matmul(x, x, in)};
      },
      std::tuple{x, w, many, more}));
}

void add_shapes(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "other arrangements of the same elements",
      [](const Tensor& x) {
        return std::tuple{transpose(x, {1, 0}), reshape(x, {3, -1}), reshape(x, {6}),
                          expand(x, {4, 2, 3}), slice(x, 1, 1),      slice(x, 1, -2, -1),
                          pad(x, 1, 2, 1, 0.5), reverse(x, 0),       concat({x, x}, 0),
                          stack({x, x}, 1),     split(x, 1, 3)[1],   unstack(x, 0)[1]};
      },
      matrix()));
  const Dim row("row", 2), column("column", 3), more("more", 2);
  const Tensor named = reshape(matrix(), {row, column});
  cases.push_back(saved_case(
      "operands in another order of dims",
      [=](const Tensor& x, const Tensor& y) {
        return std::tuple{x + y, x * sum(y, row), expand(x, {more, column, row})};
      },
      std::tuple{named, transpose(named, {column, row})}));
}

void add_indexing(std::vector<SavedCase>& cases) {
  const Dim batch("batch", 2), classes("classes", 3), beam("beam", 2), width("width", 2);
  manual_seed(2);
  const Tensor table = random_normal({classes, width}), scores = random_normal({batch, classes});
  const Tensor indices = tensor({{2, 0}, {1, 1}}, {batch, beam});
  cases.push_back(saved_case(
      "elements by index",
      [=](const Tensor& table, const Tensor& scores, const Tensor& indices) {
        return std::tuple{gather(table, indices, classes), gather(scores, indices, classes),
                          gather(scores, slice(indices, beam, 0, 1), classes),
                          one_hot(indices, classes)};
      },
      std::tuple{table, scores, indices}));
  cases.push_back(saved_case(
      "updates by index",
      [=](const Tensor& table, const Tensor& indices) {
        const Tensor rows = gather(table, indices, classes);
        return scatter_add(table, indices, rows, classes);
      },
      std::tuple{table, indices}));
  cases.push_back(saved_case(
      "positions in the order of the elements",
      [](const Tensor& x) {
        return std::tuple{argsort(x, 1), argsort(x, 0, true)};
      },
      matrix()));
  cases.push_back(saved_case(
      "new tensors",
      [](const Tensor& x) {
        return std::tuple{zeros_like(x), ones({2, 2}), x + range(3, f32), tensor({1, 2, 3}),
                          x * 0.1};
      },
      matrix()));
}

void add_recurrences(std::vector<SavedCase>& cases) {
  manual_seed(11);
  const Tensor a = random_uniform({4, 3}, -1, 1), b = random_normal({4, 3});
  for (const bool reverse : {false, true})
    cases.push_back(saved_case(
        str("linear_scan and its gradient, reverse: ", reverse),
        [=](const Tensor& a, const Tensor& b, const Tensor& initial) {
          const auto f = [&](const std::tuple<Tensor, Tensor, Tensor>& in) {
            const auto& [a, b, initial] = in;
            return sum(square(linear_scan(a, b, initial, 0, {.reverse = reverse})));
          };
          return value_and_grad(f)(std::tuple{a, b, initial});
        },
        std::tuple{a, b, vector()}));
  cases.push_back(saved_case(
      "running products and their gradient",
      [](const Tensor& x) {
        const auto f = [](const Tensor& x) { return sum(cumprod(x, 1)) + sum(prod(x, {0})); };
        return std::pair{cumprod(x, 0), grad(f)(x)};
      },
      matrix()));
}

void add_transforms(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "checkpoint and stop_gradient",
      [](const Tensor& x) {
        const auto f = checkpoint([](const Tensor& x) { return sin(x) * x; });
        return grad([&](const Tensor& x) { return sum(f(f(x)) * stop_gradient(x)); })(x);
      },
      matrix()));
  cases.push_back(saved_case(
      "the gradient of elements by index",
      [](const Tensor& table, const Tensor& indices) {
        return grad([&](const Tensor& table) { return sum(square(gather(table, indices, 0))); })(
            table);
      },
      std::tuple{matrix(), tensor({1, 0, 1})}));
  cases.push_back(saved_case(
      "the largest elements",
      [](const Tensor& x) {
        const auto best = top_k(x, 1, 2);
        return std::pair{best.values, best.indices};
      },
      matrix()));
}

}  // namespace

std::vector<SavedCase> plain_cases() {
  std::vector<SavedCase> cases;
  add_elementwise(cases);
  add_reductions(cases);
  add_products(cases);
  add_shapes(cases);
  add_indexing(cases);
  add_recurrences(cases);
  add_transforms(cases);
  const Tensor w = tensor({{1., -1.}, {0.5, 2.}, {0., 1.}});
  cases.push_back(saved_case(
      "a captured matrix", [=](const Tensor& x) { return matmul(x, w); }, matrix()));
  return cases;
}

}  // namespace reel
