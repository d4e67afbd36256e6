#include "reel/tests/cases/derivatives.h"

#include "reel/tests/gradients.h"

namespace reel {
namespace {

using CaseGradient = std::function<Tensors(const Tensors&)>;

Tensors each(const Tensors& x, const std::function<Tensor(const Tensor&)>& change) {
  Tensors result;
  for (const Tensor& t : x) result.push_back(is_float(t.dtype()) ? change(t) : t);
  return result;
}

/// Returns a sum with weights that differ by tensor and element. Equal weights would let errors
/// cancel.
Tensor weighted_sum(const Tensors& tensors, DType dtype) {
  Tensor total = scalar(0.0, dtype);
  double scale = 0.5;
  for (const Tensor& t : tensors) {
    scale += 0.25;
    if (!is_float(t.dtype())) continue;
    std::vector<double> weights;
    for (std::int64_t i = 0; i < t.numel(); ++i)
      weights.push_back(scale * (1.0 + 0.5 * double(i % 5)));
    total = total + sum(t * (t.rank() ? tensor(weights, t.dims(), dtype) : scalar(scale, dtype)));
  }
  return total;
}

struct Carried {
  Tensor k, total;
  Tensors x;
};
struct Collected {
  Tensor k;
  Tensors gradient;
};

/// The function inside of a loop, branch or scan, and the factor by which its value grows there.
struct Place {
  const char* name;
  CaseFunction f;
  double times;
};
std::vector<Place> places_of(const CaseFunction& f) {
  const auto zero = [](const Tensors& x) {
    for (const Tensor& t : x)
      if (is_float(t.dtype())) return scalar(0.0, t.dtype());
    return scalar(0.0);
  };
  const auto in_a_body = [=](const Tensors& x) {
    return std::get<1>(while_loop([](Tensor k, Tensor) { return k < 2; },
                                  [&](Tensor k, Tensor total) {
                                    return std::tuple{k + 1, total + f(x)};
                                  },
                                  std::tuple{0, zero(x)}));
  };
  const auto on_a_state = [=](const Tensors& x) {
    return while_loop([](const Carried& s) { return s.k < 2; },
                      [&](const Carried& s) {
                        return Carried{s.k + 1, s.total + f(s.x),
                                       each(s.x, [](const Tensor& t) { return t * 1.0; })};
                      },
                      Carried{scalar(0), zero(x), x})
        .total;
  };
  const auto in_a_branch = [=](const Tensors& x) {
    return std::get<1>(while_loop([](Tensor k, Tensor) { return k < 3; },
                                  [&](Tensor k, Tensor total) {
                                    const Tensor term = cond(
                                        k == 1, [&] { return f(x); }, [&] { return zero(x); });
                                    return std::tuple{k + 1, total + term};
                                  },
                                  std::tuple{0, zero(x)}));
  };
  const auto in_a_scan = [=](const Tensors& x) {
    Tensors copies;
    for (const Tensor& t : x) copies.push_back(stack({t, t, t}, Dim(3)));
    return sum(scan(Scan{.xs = copies, .body = f}).ys);
  };
  return {{"in a body", in_a_body, 2},
          {"on a state", on_a_state, 2},
          {"in a branch", in_a_branch, 1},
          {"in a scan", in_a_scan, 3}};
}

}  // namespace

void DerivativesInEveryMode::expect_derivatives(const CaseFunction& f, const Tensors& x,
                                                double value,
                                                const std::vector<std::vector<double>>& gradients,
                                                CaseOptions options, const char* file,
                                                int line) const {
  const auto compare = [&](const std::string& what, const Tensors& actual,
                           const std::vector<std::vector<double>>& expected, double times) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      std::vector<double> scaled = expected[i];
      for (double& number : scaled) number *= times;
      check_detail::compare(str(what, ", argument ", i), values_of(actual[i]), scaled,
                            options.tolerance, file, line);
    }
  };
  const auto both = run(value_and_grad(f));
  const auto on_tape = value_and_grad(CaseFunction(jit(f)));
  {
    const auto [y, g] = both(x);
    check_detail::compare("value", values_of(y), {value}, options.tolerance, file, line);
    compare("gradient", g, gradients, 1);
  }

  // At another point, with numbers that are not round, all forms must give the same bits, and
  // derivatives must agree with differences.
  const Tensors moved = each(x, [](const Tensor& t) { return t * 1.0371 + 0.003; });
  const auto [y, g] = value_and_grad(f)(moved);
  for (const auto& [y2, g2] : {both(moved), on_tape(moved)}) {
    const bool same = is_exact();
    if (same)
      expect_same_bits(y2, y, file, line);
    else
      expect_all_close(y2, y, options.tolerance, file, line);
    for (std::size_t i = 0; i < g.size(); ++i)
      if (same && options.has_same_bits)
        expect_same_bits(g2[i], g[i], file, line);
      else
        expect_all_close(g2[i], g[i], options.tolerance, file, line);
  }

  const Tensors x64 = each(x, [](const Tensor& t) { return cast(t, f64); });
  const auto second_of = [](const CaseFunction& f) {
    return CaseFunction([f](const Tensors& x) { return weighted_sum(grad(f)(x), f64); });
  };
  const auto second = run(grad(second_of(f)))(x64);
  std::vector<std::vector<double>> seconds;
  for (const Tensor& t : second) seconds.push_back(values_of(t));
  if (options.agrees_with_differences) {
    const Tensors at = each(moved, [](const Tensor& t) { return cast(t, f64); });
    expect_gradient_of(f, at, run(grad(f))(at), options.tolerance, file, line);
    expect_gradient_of(second_of(f), at, run(grad(second_of(f)))(at), 10 * options.tolerance, file,
                       line);
  }
  compare("second gradient of a jitted function", grad(second_of(CaseFunction(jit(f))))(x64),
          seconds, 1);

  for (const Place& place : places_of(f)) {
    SCOPED_TRACE(place.name);
    const CaseGradient first = run(grad(place.f)), twice = run(grad(second_of(place.f)));
    compare(str("gradient ", place.name), first(x64), gradients, place.times);
    compare(str("second gradient ", place.name), twice(x64), seconds, place.times);
    compare(str("gradient ", place.name, ", jitted"), grad(CaseFunction(jit(place.f)))(x64),
            gradients, place.times);
  }

  const CaseGradient taken_in_a_body = [f](const Tensors& x) {
    return while_loop([](const Collected& s) { return s.k < 2; },
                      [&](const Collected& s) {
                        const Tensors more = grad(f)(x);
                        Collected next{s.k + 1, s.gradient};
                        for (std::size_t i = 0; i < more.size(); ++i)
                          next.gradient[i] = next.gradient[i] + more[i];
                        return next;
                      },
                      Collected{scalar(0), grad([](const Tensors& x) {
                                  return 0.0 * weighted_sum(x, f64);
                                })(x)})
        .gradient;
  };
  compare("gradient taken in a body", run(taken_in_a_body)(x64), gradients, 2);
  const CaseFunction of_taken = [=](const Tensors& x) {
    return weighted_sum(taken_in_a_body(x), f64);
  };
  compare("gradient of one taken in a body", run(grad(of_taken))(x64), seconds, 2);
}

}  // namespace reel
