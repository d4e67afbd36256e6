// Functions of practice under vmap: products, sorts, scans, convolutions, transforms, losses and
// attention have the results of map, and so do their derivatives.
#include <functional>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;
using Derivative = std::function<Function(const Function&)>;

struct NamedFunction {
  const char* name;
  Function f;
};

const Derivative kDerivatives[] = {
    [](const Function& f) -> Function { return f; },
    [](const Function& f) -> Function {
      return grad([f](const Tensor& x) -> Tensor { return sum(square(f(x))); });
    },
    [](const Function& f) -> Function {
      return [f](const Tensor& x) -> Tensor { return jvp(f, x, cos(x)).second; };
    },
    [](const Function& f) -> Function {
      return [f](const Tensor& x) -> Tensor {
        return hvp([f](const Tensor& x) -> Tensor { return sum(square(f(x))); }, x, cos(x));
      };
    },
};

/// Functions of a vector of four numbers.
const std::vector<NamedFunction>& plain_functions() {
  static const auto& all = *new std::vector<NamedFunction>{
      {"product",
       [](const Tensor& x) -> Tensor {
         return matmul(reshape(x, {2, 2}), reshape(sin(x), {2, 2}));
       }},
      {"outer",
       [](const Tensor& x) -> Tensor {
         return reshape(x, {4, 1}) * reshape(x, {1, 4}) + x;
       }},
      {"sort", [](const Tensor& x) -> Tensor { return sort(x, 0) * x; }},
      {"argsort", [](const Tensor& x) -> Tensor { return gather(x, argsort(x, 0), 0) * x; }},
      {"top_k",
       [](const Tensor& x) -> Tensor {
         const TopK best = top_k(x, 0, Dim(2));
         return best.values * cast(best.indices + 1, x.dtype());
       }},
      {"cumulative", [](const Tensor& x) -> Tensor { return cumsum(x, 0) * cumprod(x, 0); }},
      {"reverse", [](const Tensor& x) -> Tensor { return reverse(x, 0) * x; }},
      {"linear_scan",
       [](const Tensor& x) -> Tensor {
         return linear_scan(sin(x), x, 0) + linear_scan(cos(x), x, x[0], 0, {.reverse = true});
       }},
      {"slices",
       [](const Tensor& x) -> Tensor {
         return concat({slice(x, 0, 1, 3), pad(slice(x, 0, 0, 2), 0, 1, 0)}, 0);
       }},
      {"where", [](const Tensor& x) -> Tensor { return where(x > 1.0, sqrt(x), x * x * x); }},
      {"set_at", [](const Tensor& x) -> Tensor { return set_at(x, argmin(x, 0), sum(x)); }},
      {"scatter",
       [](const Tensor& x) -> Tensor {
         return scatter_add(zeros_like(x), tensor({0, 2, 2, 3}), x * x, 0);
       }},
      {"conv",
       [](const Tensor& x) -> Tensor {
         return conv(reshape(x, {4, 1}), reshape(slice(x, 0, 0, 3), {3, 1, 1}), {0});
       }},
      {"pool",
       [](const Tensor& x) -> Tensor {
         return max_pool(reshape(x, {4, 1}), 0, {.size = 2}) * mean(x, 0);
       }},
      {"rfft",
       [](const Tensor& x) -> Tensor {
         const Complex spectrum = rfft(x, 0);
         return square(spectrum.re) + square(spectrum.im) * 0.5;
       }},
      {"logsumexp", [](const Tensor& x) -> Tensor { return logsumexp(x, 0) * log_softmax(x, 0); }},
      {"prod", [](const Tensor& x) -> Tensor { return prod(x, 0) + max(x, 0) * x; }},
      {"scan of cond",
       [](const Tensor& x) -> Tensor {
         return scan(Scan{.initial = x,
                          .xs = x,
                          .body =
                              [](const Tensor& e, const Tensor& s) {
                                const Tensor next = cond(
                                    e > 1.0, [&] { return s * e; }, [&] { return sin(s) + e; });
                                return std::pair{sum(next), next};
                              }})
             .ys;
       }},
      {"loop in a cond",
       [](const Tensor& x) -> Tensor {
         return cond(
             sum(x) > 4.0,
             [&] {
               return fori_loop(
                   0, 3, [](const Tensor&, const Tensor& s) { return tanh(s) * 1.5; }, x);
             },
             [&] { return x; });
       }},
      {"array",
       [](const Tensor& x) -> Tensor {
         TensorArray array = TensorArray::unstack(x, 0).write(2, sum(x));
         return array.stack() * array[1];
       }},
      {"inner vmap",
       [](const Tensor& x) -> Tensor {
         const Function row = [&](const Tensor& y) -> Tensor { return sin(x) * y + y * y; };
         return sum(Tensor(vmap(row)(x)), 0);
       }},
      {"hessian",
       [](const Tensor& x) -> Tensor {
         return matmul(Tensor(hessian([](const Tensor& x) -> Tensor { return prod(x, 0); })(x)), x);
       }},
  };
  return all;
}

/// Returns [rows, 4] positive numbers.
Tensor rows_of(std::int64_t rows, DType dtype = f64) {
  return cast(reshape(sin(cast(range(rows * 4), f64) * 1.3) * 0.6 + 1.1, {rows, 4}), dtype);
}

class VmapOfOpsTest : public InEveryMode {};

TEST_P(VmapOfOpsTest, PlainRowsHaveTheDerivativesOfMap) {
  for (const NamedFunction& function : plain_functions()) {
    SCOPED_TRACE(function.name);
    for (std::size_t k = 0; k < std::size(kDerivatives); ++k) {
      SCOPED_TRACE(k);
      const Function f = kDerivatives[k](function.f);
      try {
        expect_all_close(run(Function(vmap(f)))(rows_of(3)), map(f, rows_of(3)), 1e-9);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

TEST_P(VmapOfOpsTest, RowsOfF32AreThoseOfMap) {
  for (const NamedFunction& function : plain_functions()) {
    SCOPED_TRACE(function.name);
    const Tensor x = rows_of(3, f32), expected = map(function.f, x),
                 actual = run(Function(vmap(function.f)))(x);
    EXPECT_EQ(actual.type(), expected.type());
    expect_all_close(actual, expected, 1e-4);
  }
}

TEST_P(VmapOfOpsTest, NestedRowsAreThoseOfMap) {
  for (const NamedFunction& function : plain_functions()) {
    SCOPED_TRACE(function.name);
    const Function f = kDerivatives[1](function.f);
    const Function inner = vmap(f), of_inner = [f](const Tensor&x) -> Tensor { return map(f, x); };
    const Tensor x = reshape(rows_of(4), {2, 2, 4});
    try {
      expect_all_close(run(Function(vmap(inner)))(x), map(of_inner, x), 1e-9);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST_P(VmapOfOpsTest, NoRowsHaveTheTypeOfRows) {
  for (const NamedFunction& function : plain_functions()) {
    SCOPED_TRACE(function.name);
    if (std::string(function.name) == "array") continue;  // its size is known after a run
    for (const std::size_t k : {0, 1}) {
      const Function f = kDerivatives[k](function.f);
      TensorType expected = map(f, rows_of(1)).type();
      Dims dims = expected.dims();
      dims[0] = Dim(0);
      try {
        EXPECT_EQ(run(Function(vmap(f)))(rows_of(0)).type(), expected.with(dims));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

REEL_IN_EVERY_MODE(VmapOfOpsTest);

}  // namespace
}  // namespace reel
