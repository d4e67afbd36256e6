// Memory policies of loops with gradients that sum terms other than products over iterations: parts
// of a capture that differ by entry, and sums in branches. Terms that a rule recomputes are added
// where they would be added if they had been saved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "reel/tests/frontend/policies/policies.h"

namespace reel {
namespace {

struct Model {
  Tensor w, u, v;  ///< [units, to]
  Tensor b;        ///< [units]
  Tensor c;        ///< of entries and units
  Tensor x;        ///< over time
};
/// Returns an output and the next state.
using Step =
    std::function<std::pair<Tensor, Tensor>(const Model&, const Tensor& x, const Tensor& h)>;

Tensor times(const Tensor& a, const Tensor& weight) {
  const Dim from = weight.dims()[0], to = weight.dims()[1];
  return rename(matmul(a, weight, from), to, from);
}
/// This product with the matrix transposed.
Tensor times_turned(const Tensor& a, const Tensor& weight) {
  const Dim to = weight.dims()[0], from = weight.dims()[1];
  return matmul(rename(a, to, from), weight, from);
}

std::vector<std::pair<const char*, Step>> all_steps() {
  return {
      {"terms of what waits and of what does not",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor n = tanh(times(h, m.w) * m.c + x);
         const Tensor q = n + sum(times(n, m.u) * m.c, h.dims()[0]) * 0.1;
         return std::pair{times(q, m.v) * m.c, tanh(q)};
       }},
      {"terms of what no step waits for",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor n = tanh(times(h, m.w) + times(x, m.u));
         return std::pair{times(cumsum(n, h.dims()[0]), m.v) * m.c, n};
       }},
      {"a chain of products behind a term",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor q = cumsum(times(x, m.u) * h, h.dims()[0]);
         return std::pair{times(times(q * m.c, m.v), m.u), tanh(times(q, m.w) * m.c)};
       }},
      // The cotangent of `next` is a product with a recomputed value, and the previous step waits
      // for it.
      {"a product of a cotangent and of what was saved",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor q = softmax(times(h, m.w) + x, h.dims()[0]);
         const Tensor next = tanh(times(q, m.u) + m.c);
         return std::pair{times(next, m.v) / (1. + square(q)), next};
       }},
      // Under a rule the gate and `next` are recomputed in each iteration, and their readers wait
      // for them.
      {"a gated readout, its matrix read the other way",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor next = tanh(times(h, m.w) + x);
         return std::pair{sigmoid(times_turned(next, m.v)) * next, next};
       }},
      // Its cotangents are zero for finished entries, although several entries contribute to them.
      {"rows times what all entries have",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor q = cumsum(times(x, m.w), h.dims()[1]);
         const Tensor next = q * (sum(x * cumsum(x, h.dims()[1]), h.dims()[0]) * 0.1);
         return std::pair{x * next, tanh(next)};
       }},
      // Recomputed products could leave the gradient loop, but no term leaves it because of them.
      {"a term beside products that wait for nothing",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor q = square(cumsum(x, h.dims()[1]));
         const Tensor gate = sigmoid(times(times_turned(q, m.w), m.w));
         return std::pair{q * m.c, tanh(gate * q * m.c)};
       }},
      {"a product by each entry's own number",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor q = times_turned(h, m.w) * m.b;
         const Tensor number = matmul(times_turned(x * m.c, m.v), m.b, m.b.dims()[0]);
         return std::pair{q * number, tanh(q)};
       }},
      {"terms beside a loop inside that keeps few steps",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor q = fori_loop(
             0, 3, [&](const Tensor&, const Tensor& h) { return tanh(times(h, m.v) + x); }, h,
             {.checkpoint = Checkpoint::every(2)});
         return std::pair{times_turned(h, m.w) * m.c, tanh(q * m.c)};
       }},
      // The cotangent of x leaves the gradient loop, which therefore runs in chunks, or it would
      // have left.
      {"no products, and sums over units",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor q = tanh(cumsum(h * m.c, h.dims()[1]));
         return std::pair{q * x, tanh(q)};
       }},
      {"no products",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor next = tanh(h * m.c + x * m.b);
         return std::pair{sigmoid(next * m.b + x) * m.c * m.b, next};
       }},
      {"a loop inside",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor next = fori_loop(
             0, 3, [&](const Tensor&, const Tensor& h) { return tanh(h * m.c + x * m.b); }, h);
         return std::pair{next * m.b, next};
       }},
      // Only recomputed values leave its gradient loop.
      {"a sum in a branch",
       [](const Model& m, const Tensor& x, const Tensor& h) {
         const Tensor next = cond(
             sum(x) < 0., [&] { return tanh(h * m.c + x * sum(x * x, h.dims()[1])); },
             [&] { return tanh(h * m.c); });
         return std::pair{next, next};
       }},
  };
}

/// has_xs: the loop runs over m.x; otherwise over as many iterations.
auto loss(const Step& step, const LoopPolicy& policy, bool has_xs = true) {
  return [step, policy, has_xs](const Model& m) {
    const Dim time = m.x.dims()[m.x.dims()[0].is_ragged() || m.x.dims()[1].is_ragged()];
    const auto run = [&](auto xs, const auto& body) {
      const auto made = scan(Scan{.spatial_dim = time,
                                  .initial = m.c * 0.1,
                                  .xs = xs,
                                  .body = body,
                                  .checkpoint = policy.checkpoint,
                                  .swap_memory = policy.swap_memory});
      return sum(square(made.ys)) + sum(made.state * m.c);
    };
    if (has_xs) return run(m.x, [&](const Tensor& x, const Tensor& h) { return step(m, x, h); });
    return run(None(), [&](const None&, const Tensor& h) { return step(m, h, h); });
  };
}

struct Sizes {
  std::int64_t steps, entries, units;
};
Model model(const Sizes& n, bool is_ragged) {
  manual_seed(5);
  const Dim batch("batch", n.entries), unit("unit", n.units), to("to", n.units);
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < n.entries; ++i)
    lengths.push_back((i * 31 + n.steps) % (n.steps + 1));
  // A plan sorts more rows for loops without a policy, and adds in that order.
  if (n.entries >= 8) std::sort(lengths.begin(), lengths.end(), std::greater<>());
  const Dim time = is_ragged ? Dim("time", tensor(lengths, {batch})) : Dim("time", n.steps);
  const auto drawn = [](const Dims& dims) { return cast(random_normal(dims), f64); };
  const double scale = 0.8 / std::sqrt(static_cast<double>(n.units));
  const Dims square{unit, to};
  return {
      drawn(square) * scale, drawn(square) * scale,
      drawn(square) * scale, drawn({unit}),
      drawn({batch, unit}),  drawn(is_ragged ? Dims{batch, time, unit} : Dims{time, batch, unit})};
}

std::vector<std::pair<const char*, LoopPolicy>> all_policies() {
  const auto recompute = [](const StepValue&) { return Saving::recompute; };
  return {
      {"every 4", {Checkpoint::every(4)}},
      {"a file", {{}, true}},
      {"recompute all", {Checkpoint().where(recompute)}},
      {"keep products", {Checkpoint().where([](const StepValue& v) {
         return v.op == "dot" ? Saving::keep : Saving::recompute;
       })}},
      {"recompute products", {Checkpoint().where([](const StepValue& v) {
         return v.op == "dot" ? Saving::recompute : Saving::by_default;
       })}},
      {"every 7, recompute all", {Checkpoint::every(7).where(recompute)}},
  };
}

void expect_bits_of_keeping_all(const char* name, const Step& step, const Model& m,
                                bool has_xs = true) {
  SCOPED_TRACE(str(name, ", x: ", m.x.type()));
  const auto gradient = [&](const LoopPolicy& policy) {
    return jit(grad(loss(step, policy, has_xs)))(m);
  };
  const Model expected = gradient({}), eager = grad(loss(step, {}, has_xs))(m);
  expect_all_close(expected.c, eager.c, 1e-9);
  expect_all_close(expected.u, eager.u, 1e-9);
  for (const auto& [of_policy, policy] : all_policies()) {
    SCOPED_TRACE(of_policy);
    expect_same_leaves(gradient(policy), expected);
  }
}

class PoliciesOfTermsTest : public ::testing::TestWithParam<bool> {};

TEST_P(PoliciesOfTermsTest, GradientsHaveTheBitsOfKeepingAll) {
  for (const auto& [name, step] : all_steps())
    for (const Sizes n : {Sizes{0, 3, 6}, Sizes{21, 2, 6}, Sizes{21, 5, 40}, Sizes{9, 17, 64}})
      expect_bits_of_keeping_all(name, step, model(n, GetParam()));
}
// Enough iterations for several chunks.
TEST_P(PoliciesOfTermsTest, ManyIterationsHaveTheBitsOfKeepingAll) {
  for (const auto& [name, step] : all_steps())
    expect_bits_of_keeping_all(name, step, model({1500, 3, 24}, GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Lengths, PoliciesOfTermsTest, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "OfEachEntry" : "OfAll"; });

// No chunk divides the loop without slices; under a policy it stacks its products iteration by
// iteration.
TEST(PoliciesWithoutSlicesTest, FewRowsAndAMatrixThatIsReadTheOtherWay) {
  const Step step = [](const Model& m, const Tensor&, const Tensor& h) {
    const Tensor next = tanh(times_turned(h, m.w) + m.c);
    return std::pair{times_turned(next, m.v), next};
  };
  for (const Sizes n : {Sizes{21, 1, 6}, Sizes{21, 2, 6}, Sizes{40, 5, 40}, Sizes{300, 2, 100}})
    expect_bits_of_keeping_all("turned", step, model(n, false), false);
  const auto traced = jit(loss(step, {}, false));
  traced(model({21, 2, 6}, false));
  EXPECT_NE(traced.explain().find("sunk: dot"), std::string::npos) << traced.explain();
}

// The residuals are in lists, from which nothing is batched across iterations.
TEST(PoliciesWithoutSlicesTest, TermsOfEntriesThatFinishHaveTheBitsOfKeepingAll) {
  const Step step = [](const Model& m, const Tensor&, const Tensor& h) {
    const Tensor next = tanh(times(h, m.w));
    return std::pair{next * m.c, next};
  };
  for (const Sizes n : {Sizes{40, 1, 6}, Sizes{40, 5, 24}})
    expect_bits_of_keeping_all("terms", step, model(n, true), false);
}

// A readout of few rows that is recomputed from slices alone is computed as in the loop.
TEST(PoliciesOfFewRowsTest, AReadoutThatIsReadTheOtherWay) {
  const Step step = [](const Model& m, const Tensor& x, const Tensor& h) {
    const Tensor next = tanh(h * 0.5 + x);
    return std::pair{square(times_turned(next * x, m.v)), next};
  };
  for (const Sizes n : {Sizes{40, 1, 6}, Sizes{40, 2, 24}, Sizes{40, 5, 64}})
    expect_bits_of_keeping_all("readout", step, model(n, false));
}

// The inner loop has unknown length and an unused result. It must not keep other ops from being
// batched across iterations.
TEST(PoliciesOfDeadLoopsTest, GradientsHaveTheBitsOfKeepingAll) {
  const Step step = [](const Model& m, const Tensor& x, const Tensor& h) {
    const auto goes_on = [](const Tensor& k, const Tensor& h) { return k < 2 || sum(h) > 1e9; };
    const auto body = [&](const Tensor& k, const Tensor& h) {
      return std::tuple{k + 1, tanh(times(h, m.u))};
    };
    while_loop(goes_on, body, std::tuple{0, h});
    const Tensor next = tanh(times_turned(x, m.w) + times(h, m.v) * m.b);
    return std::pair{next * m.c, next};
  };
  for (const Sizes n : {Sizes{21, 2, 8}, Sizes{40, 5, 40}})
    expect_bits_of_keeping_all("dead", step, model(n, false));
  const auto traced = jit(grad(loss(step, {})));
  traced(model({21, 2, 8}, false));
  EXPECT_EQ(traced.explain().find("of unknown trip count"), std::string::npos) << traced.explain();
}

}  // namespace
}  // namespace reel
