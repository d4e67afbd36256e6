// Loops, branches, trees and errors in forms that every compiler takes.
#include "expect.h"

using namespace reel;

namespace {

struct Point {
  Tensor x, y;
};
struct State {  // named fields, nested, in containers
  Point at;
  std::vector<Tensor> history;
  std::map<std::string, Tensor> table;
};

void names_of_fields() {
  const State state{{scalar(1.), scalar(2.)}, {scalar(3.)}, {{"key", scalar(4.)}}};
  expect(tree_paths(state) == std::vector<std::string>{"at.x", "at.y", "history.0", "table.key"});
  struct Local {
    Tensor only;
  };
  expect(tree_paths(Local{scalar(0.f)}) == std::vector<std::string>{"only"});
}

void while_and_fori() {
  const auto doubled = [](const Tensor& limit) {
    const auto [steps, value] =
        while_loop([&](const Tensor&, const Tensor& v) { return v < limit; },
                   [](const Tensor& n, const Tensor& v) {
                     return std::tuple{n + 1, v * 2};
                   },
                   std::tuple{scalar(0), scalar(1)});
    return std::pair{steps, value};
  };
  expect_values(doubled(scalar(1000)).first, {10});
  expect_values(jit(doubled)(scalar(1000)).second, {1024});
  const auto power = [](const Tensor& w) {
    return fori_loop(
        0, 3, [&](const Tensor&, const Tensor& h) { return h * w; }, tensor(1.));
  };
  expect_values(grad(grad(power))(scalar(2.)), {12});
}

void folds_and_branches() {
  const Tensor x = tensor({1., 4., 2.});
  const auto larger = [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
  expect_values(foldl(larger, x), {4});
  expect_values(foldr(larger, x, scalar(5.)), {5});
  expect_values(map([](const Tensor& e) { return e * e; }, x), {1, 16, 4});
  expect_values(associative_scan([](const Tensor& a, const Tensor& b) { return a + b; }, x, 0),
                {1, 5, 7});
  const auto branch = jit([](const Tensor& t) {
    return cond(
        sum(t) > 0, [&] { return t; }, [&] { return -t; });
  });
  expect_values(branch(-x), {1, 4, 2});
  expect_values(switch_case(
                    1, [&] { return x; }, [&] { return x + 1; }),
                {2, 5, 3});
}

void scan_with_written_arguments() {
  const Dim time("time", 3), in("in", 1);
  const Tensor x = tensor({1., 2., 3.}, {time, in});
  const auto body = [](const Tensor& x_t, const Tensor& s) { return std::pair{s + x_t, s + x_t}; };
  const auto [ys, last, dim] = scan(Scan<Tensor, Tensor, None, None, decltype(body)>{
      .spatial_dim = time, .initial = zeros({in}), .xs = x, .body = body});
  expect_values(ys, {1, 3, 6});
  expect_values(last, {6});
}

void errors() {
  try {
    matmul(zeros({2, 3}), zeros({4, 5}));
    expect(false);
  } catch (const ShapeError& error) {
    expect(error.message().find("matmul") != std::string::npos);
  }
}

}  // namespace

int main() {
  names_of_fields();
  while_and_fori();
  folds_and_branches();
  scan_with_written_arguments();
  errors();
}
