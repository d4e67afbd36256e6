// vmap, derivatives of each kind and functions with their own gradients, as models.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

Tensor vector() { return tensor({0.5, -1., 2.}); }
Tensor rows() { return tensor({{0.5, -1., 2.}, {1., 0.25, -0.5}, {3., 1., 0.}, {0.1, 0.2, 0.3}}); }

/// Costly enough that only the rows that take this branch compute it.
Tensor costly(const Tensor& x, const Tensor& w) {
  return fori_loop(
      0, 8, [&](const Tensor&, const Tensor& s) { return tanh(matmul(w, s)); }, x);
}

void add_rows(std::vector<SavedCase>& cases) {
  manual_seed(41);
  const Tensor w = random_normal({3, 3});
  cases.push_back(saved_case(
      "vmap of ops",
      [](const Tensor& rows, const Tensor& v) {
        return vmap([&](const Tensor& x) {
          return std::pair{softmax(x, 0) * v, sum(square(x - v))};
        })(rows);
      },
      std::tuple{rows(), vector()}));
  cases.push_back(saved_case(
      "vmap of a loop with an end for each row",
      [](const Tensor& rows) {
        return vmap([](const Tensor& x) {
          return while_loop([](const Tensor& s) { return sum(abs(s)) < 20; },
                            [](const Tensor& s) { return s * 2 + 0.25; }, x);
        })(rows);
      },
      rows()));
  cases.push_back(saved_case(
      "vmap of a cheap branch",
      [](const Tensor& rows) {
        return vmap([](const Tensor& x) {
          return cond(
              sum(x) > 1, [&] { return x * 2; }, [&] { return x - 1; });
        })(rows);
      },
      rows()));
  cases.push_back(saved_case(
      "the gradient of vmap of a cheap branch",
      [](const Tensor& rows) {
        return grad([](const Tensor& rows) {
          return sum(square(vmap([](const Tensor& x) {
            return cond(
                sum(x) > 1, [&] { return x * x; }, [&] { return sin(x); });
          })(rows)));
        })(rows);
      },
      rows()));
  for (const double limit : {1., 100., -100.})
    cases.push_back(saved_case(
        str("vmap of a costly branch, limit ", limit),
        [=](const Tensor& rows, const Tensor& w) {
          return vmap([&](const Tensor& x) {
            return cond(
                sum(x) > limit, [&] { return costly(x, w); }, [&] { return x; });
          })(rows);
        },
        std::tuple{rows(), w}));
  cases.push_back(saved_case(
      "the gradient of vmap of a costly branch",
      [](const Tensor& rows, const Tensor& w) {
        const auto loss = [&](const Tensor& w) {
          return sum(square(vmap([&](const Tensor& x) {
            return cond(
                sum(x) > 1, [&] { return costly(x, w); }, [&] { return x * sum(w); });
          })(rows)));
        };
        return value_and_grad(loss)(w);
      },
      std::tuple{rows(), w}));
  const Dim batch("batch", 2), beam("beam", 2), feature("feature", 3), other("other", 3);
  cases.push_back(saved_case(
      "vmap over two dims",
      [=](const Tensor& x, const Tensor& w) {
        return vmap(
            [&](const Tensor& row) {
              return cond(
                  sum(row) > 1,
                  [&] {
                    return fori_loop(
                        0, 8,
                        [&](const Tensor&, const Tensor& s) {
                          return rename(tanh(matmul(w, s, feature)), other, feature);
                        },
                        row);
                  },
                  [&] { return row; });
            },
            Dims{batch, beam})(x);
      },
      std::tuple{reshape(rows(), {batch, beam, feature}), random_normal({other, feature})}));
  cases.push_back(saved_case(
      "gradients of each row",
      [](const Tensor& rows, const Tensor& v) {
        return vmap([&](const Tensor& x) {
          return grad([&](const Tensor& v) { return sum(sin(v * x)); })(v);
        })(rows);
      },
      std::tuple{rows(), vector()}));
  const Dim sequence("sequence", 3), time("time", tensor({3, 1, 2}, {sequence}));
  cases.push_back(saved_case(
      "vmap over sequences of different lengths",
      [=](const Tensor& xs) {
        return vmap(
            [](const Tensor& x) {
              return foldl([](const Tensor& s, const Tensor& x) { return tanh(s + x); }, x,
                           scalar(0.5), {.spatial_dim = x.dim("time")});
            },
            xs.dim("sequence"))(xs);
      },
      random_normal({sequence, time})));
}

void add_derivatives(std::vector<SavedCase>& cases) {
  const auto f = [](const Tensor& x) { return sin(x) * sum(square(x)); };
  const auto loop = [](const Tensor& x) {
    return fori_loop(
        0, 3, [&](const Tensor&, const Tensor& s) { return tanh(s) * x + s; }, x);
  };
  cases.push_back(saved_case(
      "tangents",
      [=](const Tensor& x, const Tensor& v) {
        return std::pair{jvp(f, x, v), jvp(loop, x, v)};
      },
      std::tuple{vector(), tensor({1., 0.5, -2.})}));
  cases.push_back(saved_case(
      "Jacobians",
      [=](const Tensor& x) {
        return std::tuple{jacobian(f)(x), jacfwd(f)(x), jacobian(loop)(x)};
      },
      vector()));
  cases.push_back(saved_case(
      "second derivatives",
      [=](const Tensor& x, const Tensor& v) {
        const auto loss = [=](const Tensor& x) { return sum(loop(x) * f(x)); };
        return std::tuple{hessian(loss)(x), hvp(loss, x, v)};
      },
      std::tuple{vector(), tensor({1., 0.5, -2.})}));
  cases.push_back(saved_case(
      "gradients of the user",
      [](const Tensor& x) {
        const auto clipped = custom_vjp(
            [](const Tensor& x) {
              return std::pair{exp(x), x};
            },
            [](const Tensor& x, const Tensor& cotangent) { return clip(cotangent * x, -1, 1); });
        const auto smooth = custom_jvp([](const Tensor& x) { return abs(x); },
                                       [](const auto& x, const auto& t) -> Tensor {
                                         return std::get<0>(t) * tanh(std::get<0>(x) * 10.0);
                                       });
        return grad([&](const Tensor& x) { return sum(clipped(x)) + sum(smooth(x)); })(x);
      },
      vector()));
  cases.push_back(saved_case(
      "the gradient of a batch in parts",
      [](const Tensor& w, const Tensor& rows) {
        GradientSum<Tensor> sum_of(w);
        for (int i = 0; i < 2; ++i)
          sum_of.add(
              [](const Tensor& w, const Tensor& x) {
                return Weighted{sum(square(tanh(x) * w)), scalar(2.)};
              },
              w, slice(rows, 0, 2 * i, 2 * i + 2));
        return sum_of.mean();
      },
      std::tuple{vector(), rows()}));
}

}  // namespace

std::vector<SavedCase> transform_cases() {
  std::vector<SavedCase> cases;
  add_rows(cases);
  add_derivatives(cases);
  return cases;
}

}  // namespace reel
