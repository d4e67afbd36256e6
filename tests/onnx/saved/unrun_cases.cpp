// Loops that never run, with empty tensors and constants, as models.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

/// The result of a loop without iterations is its initial state; its ys have no elements.
void add_loops_without_iterations(std::vector<SavedCase>& cases) {
  manual_seed(92);
  const Tensor x = random_normal({3, 2}), none = zeros({0, 2}), w = random_normal({2, 2});
  const auto loop = [](const Tensor& xs, const Tensor& s, const Tensor& w) {
    return scan(Scan{.initial = s, .xs = xs, .body = [&](const Tensor& x, const Tensor& s) {
                       const Tensor next = tanh(matmul(s, w) + x) + full({2}, 0.5);
                       return std::pair{concat({next, zeros({1, 2})}, 0), next};
                     }});
  };
  const auto values = [&](const Tensor& xs, const Tensor& s, const Tensor& w) {
    const auto made = loop(xs, s, w);
    return std::tuple{sum(made.ys), made.state, sum(made.ys, {0})};
  };
  cases.push_back(saved_case("a scan over no element", values, std::tuple{none, x, w}));
  cases.push_back(saved_case("a scan over any number of elements, here none", values,
                             std::tuple{none, x, w}, {.any_length = {{0, 0}}}));
  cases.push_back(saved_case("the gradient of a scan over any number of elements, here none",
                             [&](const Tensor& xs, const Tensor& s, const Tensor& w) {
                               return value_and_grad([&](const std::pair<Tensor, Tensor>& at) {
                                 const auto made = loop(xs, at.first, at.second);
                                 return sum(square(made.state)) + sum(made.ys);
                               })(std::pair{s, w});
                             },
                             std::tuple{none, x, w}, {.any_length = {{0, 0}}}));
  const auto empty_state = [](const Tensor& n, const Tensor& x) {
    return fori_loop(
        0, n,
        [&](const Tensor& i, const std::tuple<Tensor, Tensor, Tensor>& s) {
          const auto& [a, b, c] = s;
          return std::tuple{a * 2 + zeros({0, 2}), b + sum(a) + cast(i, f32), c + 1};
        },
        std::tuple{zeros({0, 2}), x, full({2}, 3.)});
  };
  for (const int n : {0, 2})
    cases.push_back(saved_case(str("an empty state and a constant one, in ", n, " iterations"),
                               empty_state, std::tuple{scalar(n), x}));
  cases.push_back(saved_case(
      "the gradient of a while_loop that never runs",
      [](const Tensor& x, const Tensor& w) {
        return value_and_grad([&](const Tensor& w) {
          return sum(while_loop([](const Tensor& s) { return sum(abs(s)) < -1.; },
                                [&](const Tensor& s) { return matmul(s, w); }, x));
        })(w);
      },
      std::tuple{x, w}));
}

}  // namespace

std::vector<SavedCase> unrun_cases() {
  std::vector<SavedCase> cases;
  add_loops_without_iterations(cases);
  return cases;
}

}  // namespace reel
