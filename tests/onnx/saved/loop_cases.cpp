// Functions with loops and conds, as models.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

Tensor vector() { return tensor({0.5, -1., 2.}); }

void add_while_loops(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "while_loop",
      [](const Tensor& x) {
        return while_loop([](const Tensor& s) { return sum(abs(s)) < 100; },
                          [](const Tensor& s) { return s * 2; }, x);
      },
      vector()));
  cases.push_back(saved_case(
      "while_loop with a bound",
      [](const Tensor& x, const Tensor& bound) {
        return while_loop([](const Tensor& k, const Tensor&) { return k < 50; },
                          [](const Tensor& k, const Tensor& s) {
                            return std::tuple{k + 1, sin(s) + cast(k, f32)};
                          },
                          std::tuple{scalar(0), x}, {.maximum_iterations = bound});
      },
      std::tuple{vector(), scalar(3)}));
  cases.push_back(saved_case(
      "while_loop without iterations",
      [](const Tensor& x) {
        return while_loop([](const Tensor& s) { return sum(s) > 1000; },
                          [](const Tensor& s) { return s * 2; }, x);
      },
      vector()));
  cases.push_back(saved_case(
      "fori_loop",
      [](const Tensor& x) {
        return fori_loop(
            0, 5, [](const Tensor& i, const Tensor& s) { return s * 1.5 + cast(i, f32); }, x);
      },
      vector()));
  cases.push_back(saved_case(
      "a loop in a loop with a cond",
      [](const Tensor& x) {
        return fori_loop(
            0, 3,
            [&](const Tensor& i, const Tensor& s) {
              const Tensor inner = while_loop([](const Tensor& t) { return sum(t) < 10; },
                                              [&](const Tensor& t) { return t + abs(x); }, s);
              return cond(
                  sum(inner) > 11, [&] { return inner - 5; }, [&] { return inner + cast(i, f32); });
            },
            x);
      },
      vector()));
}

void add_conds(std::vector<SavedCase>& cases) {
  for (const double limit : {1., 2.})
    cases.push_back(saved_case(
        str("cond ", limit),
        [=](const Tensor& x) {
          return cond(
              sum(x) > limit,
              [&] {
                return std::pair{x * 2, sum(x)};
              },
              [&] {
                return std::pair{x, scalar(1.)};
              });
        },
        vector()));
}

void add_scans(std::vector<SavedCase>& cases) {
  manual_seed(3);
  const Tensor xs = random_normal({5, 3});
  const auto body = [](const Tensor& x, const Tensor& s) {
    const Tensor next = tanh(s * 0.5 + x);
    return std::pair{next * x, next};
  };
  for (const bool reverse : {false, true})
    cases.push_back(saved_case(
        str("scan, reverse: ", reverse),
        [=](const Tensor& xs, const Tensor& initial) {
          auto [ys, state, dim] =
              scan(Scan{.initial = initial, .xs = xs, .body = body, .reverse = reverse});
          return std::pair{ys, state};
        },
        std::tuple{xs, vector()}));
  cases.push_back(saved_case(
      "scan without a state",
      [](const Tensor& xs) {
        auto [ys, state, dim] =
            scan(Scan{.xs = xs, .body = [](const Tensor& x) { return sum(x * x); }});
        return ys;
      },
      xs));
  cases.push_back(saved_case(
      "scan of unknown length",
      [](const Tensor& x) {
        auto [ys, state, dim] = scan(Scan{.initial = x,
                                          .cond = [](const Tensor& s) { return sum(abs(s)) < 50; },
                                          .body =
                                              [](const Tensor& s) {
                                                return std::pair{s, s * 2};
                                              }});
        return std::pair{ys, state};
      },
      vector()));
}

void add_arrays(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "a TensorArray in the state",
      [](const Tensor& x) {
        TensorArray array(TensorType{f32, {3}}, {.size = 4});
        auto [a, s] = fori_loop(
            0, 4,
            [](const Tensor& i, const std::tuple<TensorArray, Tensor>& state) {
              const auto& [a, s] = state;
              return std::tuple{a.write(3 - i, s), s * 2};
            },
            std::tuple{array, x});
        return std::pair{a.stack(), a.read(1)};
      },
      vector()));
  cases.push_back(saved_case(
      "the gradient of a TensorArray that grows",
      [](const Tensor& x) {
        using State = std::tuple<TensorArray, Tensor>;
        return grad([](const Tensor& x) {
          auto [all, last] =
              while_loop([](const State& state) { return sum(std::get<1>(state)) < 20; },
                         [](const State& state) {
                           const auto& [array, x] = state;
                           return State{array.push_back(x), x * 2};
                         },
                         State{TensorArray(TensorType{f32, {3}}), x});
          return sum(square(all.stack()));
        })(x);
      },
      vector()));
}

struct Weights {
  Tensor w, b;
};

void add_gradients(std::vector<SavedCase>& cases) {
  manual_seed(4);
  const Weights weights{random_normal({3, 3}), random_normal({3})};
  const Tensor xs = random_normal({5, 3});
  const auto loss = [](const Weights& m, const Tensor& xs) {
    auto [ys, state, dim] =
        scan(Scan{.initial = zeros({3}), .xs = xs, .body = [&](const Tensor& x, const Tensor& s) {
                    const Tensor next = tanh(matmul(s, m.w) + m.b + x);
                    return std::pair{next, next};
                  }});
    return mean(square(ys)) + sum(state);
  };
  const SaveOnnxOptions options{.arguments = {"model", "xs"}};
  cases.push_back(saved_case(
      "the gradient of a scan",
      [=](const Weights& m, const Tensor& xs) {
        return value_and_grad([&](const Weights& m) { return loss(m, xs); })(m);
      },
      std::tuple{weights, xs}, options));
  cases.push_back(saved_case(
      "the second derivative of a scan",
      [=](const Weights& m, const Tensor& xs) {
        return grad([&](const Tensor& xs) {
          const Weights g = grad([&](const Weights& m) { return loss(m, xs); })(m);
          return sum(square(g.w)) + sum(g.b);
        })(xs);
      },
      std::tuple{weights, xs}, options));
  cases.push_back(saved_case(
      "the gradient of a while_loop",
      [](const Tensor& x) {
        return grad([](const Tensor& x) {
          return sum(while_loop([](const Tensor& s) { return sum(abs(s)) < 100; },
                                [&](const Tensor& s) { return s * 2 + sin(x); }, x));
        })(x);
      },
      vector()));
  cases.push_back(saved_case(
      "the gradient of loops in loops",
      [](const Tensor& x) {
        return grad([](const Tensor& x) {
          return sum(fori_loop(
              0, 3,
              [&](const Tensor&, const Tensor& s) {
                return fori_loop(
                    0, 2, [&](const Tensor&, const Tensor& t) { return sin(t) * x; }, s);
              },
              x));
        })(x);
      },
      vector()));
  cases.push_back(saved_case(
      "the gradient of a cond in a loop",
      [](const Tensor& x) {
        return grad([](const Tensor& x) {
          return sum(fori_loop(
              0, 4,
              [&](const Tensor&, const Tensor& s) {
                return cond(
                    sum(s) > 2, [&] { return s * 0.5; }, [&] { return s * s + x; });
              },
              x));
        })(x);
      },
      vector()));
}

}  // namespace

std::vector<SavedCase> loop_cases() {
  std::vector<SavedCase> cases;
  add_while_loops(cases);
  add_conds(cases);
  add_scans(cases);
  add_arrays(cases);
  add_gradients(cases);
  return cases;
}

}  // namespace reel
