// Lists whose elements differ in size: residuals of loops in loops, TensorArrays, and gradients of
// ys with a dim of another size in every iteration.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

/// Doubles x until its sum is above a limit, by an unknown number of iterations.
Tensor doubled_above(const Tensor& x, double limit) {
  return while_loop([=](const Tensor& s) { return sum(s) < limit; },
                    [](const Tensor& s) { return s * 2 + sin(s); }, x);
}

/// A loop of unknown trip count in a loop: its gradient reads as many values as it ran iterations.
Tensor growing(const Tensor& x) {
  const auto body = [](const Tensor& x, const Tensor& s) {
    const Tensor next = doubled_above(s * 0.1 + x, 20);
    return std::pair{next, next};
  };
  return scan(Scan{.initial = x[0] * 0 + 1, .xs = x, .body = body}).ys;
}

auto gradient_of(Tensor (*f)(const Tensor&)) {
  return
      [=](const Tensor& x) { return grad([=](const Tensor& x) { return sum(square(f(x))); })(x); };
}

void add_loops(std::vector<SavedCase>& cases, const Tensor& x) {
  cases.push_back(saved_case("the gradient of a loop in a loop with other trip counts",
                             gradient_of(growing), x));
  cases.push_back(saved_case(
      "the second derivative of a loop in a loop",
      [](const Tensor& x) {
        return grad([](const Tensor& x) { return sum(square(gradient_of(growing)(x))); })(x);
      },
      x * 0.01));
  for (const double limit : {0., 10.})
    cases.push_back(saved_case(
        str("the gradient of such a loop in a branch, of x above ", limit),
        [=](const Tensor& x) {
          return grad([=](const Tensor& x) {
            return sum(cond(
                sum(x) > limit, [&] { return growing(x); }, [&] { return x * 3; }));
          })(x);
        },
        x));
}

/// A loop of unknown trip count in each step of a scan: products of the state with a matrix.
Tensor products(const Tensor& x, const Tensor& w) {
  const auto body = [&](const Tensor& x, const Tensor& s) {
    const Tensor next = while_loop(
        [](const Tensor& s) { return sum(s) < 8; },
        [&](const Tensor& s) { return s * 1.2 + tanh(matmul(s, w)) + 0.5; }, s * 0.1 + x);
    return std::pair{next, next};
  };
  return scan(Scan{.initial = x[0] * 0 + 1, .xs = x, .body = body}).ys;
}

/// A branch in a loop, and a branch around one: residuals of the products are lists of lists.
void add_products_in_branches(std::vector<SavedCase>& cases, const Tensor& x) {
  const Tensor w = random_uniform({3, 3}, 0.1, 0.4);
  for (const double limit : {0., 10.}) {
    cases.push_back(saved_case(
        str("the gradient of products of a loop in a loop in a branch, of x above ", limit),
        [=](const Tensor& x, const Tensor& w) {
          return value_and_grad([=](const Tensor& w) {
            return sum(cond(
                sum(x) > limit, [&] { return products(x, w); }, [&] { return x * 3; }));
          })(w);
        },
        std::tuple{x, w}));
    cases.push_back(saved_case(
        str("the gradient of such a branch in a loop, of s above ", limit * 3),
        [=](const Tensor& x, const Tensor& w) {
          return grad([=](const Tensor& w) {
            const auto body = [&](const Tensor& s) {
              return s +
                     cond(
                         sum(s) > limit * 3, [&] { return products(s, w); }, [&] { return s * 3; });
            };
            return sum(while_loop([](const Tensor& s) { return sum(s) < 200; }, body, x));
          })(w);
        },
        std::tuple{x, w}));
  }
}

void add_growing_state(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "the gradient of a state that grows",
      [](const Tensor& x) {
        return grad([](const Tensor& x) {
          return sum(while_loop([](const Tensor& s) { return sum(s) < 10; },
                                [](const Tensor& s) {
                                  return concat({s * s, s}, 0);
                                },
                                x, {.shape_invariants = {PartialShape{unknown}}}));
        })(x);
      },
      tensor({1., 2.})));
}

/// An array of the first k + 1 elements of each row k.
TensorArray beginnings(const Tensor& x, std::int64_t rows) {
  TensorArray array({f32, {Dim::unknown()}});
  for (std::int64_t k = 0; k < rows; ++k) array = array.push_back(slice(x[k], 0, 0, k + 1));
  return array;
}

void add_arrays(std::vector<SavedCase>& cases) {
  manual_seed(17);
  const Tensor x = random_normal({3, 4});
  cases.push_back(saved_case(
      "the gradient of joined elements",
      [](const Tensor& x) {
        return grad(
            [](const Tensor& x) { return sum(square(TensorArray::unstack(x, 0).concat())); })(x);
      },
      ones({2, 3})));
  cases.push_back(saved_case(
      "an element that a shorter one replaces, stacked",
      [](const Tensor& x) {
        const TensorArray array = TensorArray({f32, {Dim::unknown()}}).push_back(x[0]);
        return array.write(0, slice(x[1], 0, 0, 2)).stack();
      },
      x));
  cases.push_back(saved_case(
      "the gradient of an unstacked array that grows",
      [](const Tensor& x) {
        return grad([](const Tensor& x) {
          return sum(square(TensorArray::unstack(x, 0).push_back(x[1] * 2).stack()));
        })(x);
      },
      x));
  cases.push_back(saved_case(
      "elements of different sizes, joined",
      [](const Tensor& x) { return beginnings(x, 3).concat(); }, x));
  cases.push_back(saved_case(
      "the gradient of elements of different sizes, joined",
      [](const Tensor& x) {
        return grad([](const Tensor& x) {
          const Tensor all = beginnings(x, 3).concat();
          return sum(square(all) + exp(all));
        })(x);
      },
      x));
  cases.push_back(saved_case(
      "reads of elements of different sizes, and their gradient",
      [](const Tensor& x, const Tensor& index) {
        return value_and_grad([&](const Tensor& x) {
          const TensorArray array = beginnings(x, 3);
          return sum(square(array.read(index))) + sum(array.read(2) * 3);
        })(x);
      },
      std::tuple{x, scalar(1)}));
  cases.push_back(saved_case(
      "an array split into elements of given lengths, read in a loop",
      [](const Tensor& x, const Tensor& lengths) {
        return grad([&](const Tensor& x) {
          const TensorArray array = TensorArray::split(x, lengths);
          return fori_loop(
              0, 3,
              [&](const Tensor& i, const Tensor& s) { return s * 0.5 + sum(exp(array.read(i))); },
              scalar(0.f));
        })(x);
      },
      std::tuple{random_normal({6}), tensor({1, 0, 5})}));
  cases.push_back(saved_case(
      "an array that a loop fills with elements of different sizes",
      [](const Tensor& x) {
        return value_and_grad([](const Tensor& x) {
          const auto [last, all] =
              while_loop([](const Tensor&, const TensorArray& all) { return all.size() < 3; },
                         [](const Tensor& last, const TensorArray& all) {
                           const Tensor next = concat({last, last * 2}, 0);
                           return std::tuple{next, all.push_back(next)};
                         },
                         std::tuple{x, TensorArray({f32, {Dim::unknown()}})},
                         {.shape_invariants = {PartialShape{unknown}, PartialShape{unknown}}});
          return sum(square(all.concat()));
        })(x);
      },
      tensor({0.5, -1., 2.})));
}

void add_varying_ys(std::vector<SavedCase>& cases) {
  const Dim steps("time", 4);
  cases.push_back(saved_case(
      "the gradient of maps to vectors of different sizes",
      [](const Tensor& counts, const Tensor& w) {
        return grad([&](const Tensor& w) {
          const Tensor ys =
              map([&](const Tensor& n) { return exp(cast(range(Dim("place", n)), f32) * w); },
                  counts, {.spatial_dim = counts.dim("time")});
          return sum(square(ys));
        })(w);
      },
      std::tuple{tensor({2, 0, 3, 1}, {steps}), scalar(0.5f)}));
  cases.push_back(saved_case(
      "the gradient of packed elements of each slice",
      [](const Tensor& x) {
        return grad([](const Tensor& x) {
          return sum(square(scan(Scan{.spatial_dim = x.dim("time"),
                                      .xs = x,
                                      .body = [](const Tensor& x) { return pack(x, x > 0) * 10; }})
                                .ys));
        })(x);
      },
      tensor({1., -2., 3., 4.}, {Dim("time", 2), Dim("batch", 2)})));
}

}  // namespace

std::vector<SavedCase> uneven_cases() {
  std::vector<SavedCase> cases;
  manual_seed(5);
  add_loops(cases, random_uniform({4, 3}, 0.1, 1));
  add_growing_state(cases);
  add_products_in_branches(cases, random_uniform({4, 3}, 0.1, 1));
  add_arrays(cases);
  add_varying_ys(cases);
  return cases;
}

}  // namespace reel
