// Requirements on every op, tested with its samples: no test here knows an op by name.
#include <cmath>
#include <limits>
#include <random>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/tests/check.h"
#include "reel/tests/core/sample_values.h"

namespace reel {
namespace {

/// Returns the tests of an op that samples cannot describe, or a null pointer. Lists are values of
/// their own type; loops, conds and custom vjps hold graphs. The named tests run in every mode.
const char* tested_elsewhere(const Op& op) {
  if (op.name == "loop" || op.name == "cond")
    return "tests/frontend: while_loop_test, scan_test, cond_test";
  if (op.name == "recompute" || op.name == "checkpointed")
    return "tests/frontend: checkpoint_policy_test, checkpointed_test";
  if (op.name == "fused") return "tests/trace: fuse_pointwise_test";
  if (op.name == "custom_vjp") return "tests/frontend: custom_vjp_test";
  if (op.name.starts_with("list_")) return "tests/frontend: tensor_array_test";
  if (op.name.find("ranked") != op.name.npos) return "tests/frontend: unknown_rank_test";
  return nullptr;
}

class EveryOp : public ::testing::TestWithParam<const Op*> {
 protected:
  const Op& op() const { return *GetParam(); }
  OpSamples samples() const { return op().samples ? op().samples() : OpSamples{}; }

  static Tensors draw(const OpSample& sample, bool as_f64) { return draw_sample(sample, as_f64); }
  Tensors apply(const OpSample& sample, const Tensors& inputs) const {
    return bind_all(op(), inputs, sample.attrs);
  }

  /// Returns the sum of all valid elements of floating outputs, weighted by fixed random numbers.
  /// Equal weights would let errors cancel.
  static Tensor weighted_sum(const Tensors& outputs) {
    Tensor total = scalar(0.0, f64);
    std::uint32_t seed = 23;
    for (const Tensor& output : outputs) {
      ++seed;
      if (!is_float(output.dtype())) continue;
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> real(0.5, 1.5);
      std::vector<double> weights(static_cast<std::size_t>(output.type().numel()));
      for (double& w : weights) w = real(random) * (random() % 2 ? 1 : -1);
      total = total + sum(cast(output, f64) * tensor_of(weights, output.dims()));
    }
    return total;
  }
  /// True if an output is rounded to f32, as by a cast: its differences are too coarse for
  /// derivatives.
  bool rounds_to_f32(const OpSample& sample) const {
    for (const Tensor& output : apply(sample, draw(sample, true)))
      if (output.dtype() == f32) return true;
    return false;
  }
  static bool is_differentiable(const OpSample& sample, std::size_t i) {
    return sample.inputs[i].differentiable && is_float(sample.inputs[i].type.dtype());
  }
  /// Returns 1 for elements within their entry's length, and 0 for padding.
  static std::vector<double> valid_of(const Tensor& x) {
    return values_of(mask_padding(ones_like(cast(x, f64))));
  }
};

std::string name_of_op(const ::testing::TestParamInfo<const Op*>& info) {
  return std::string(info.param->name);
}
INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         name_of_op);

TEST_P(EveryOp, HasSamplesAndAVjpOrAReason) {
  EXPECT_TRUE(tested_elsewhere(op()) || !samples().empty()) << "no samples";
  EXPECT_TRUE(op().vjp || op().no_vjp) << "neither a vjp nor a reason for having none";
  EXPECT_TRUE(op().type && op().kernel);
}

/// Collectives are known by their results: no op of the library may be taken for one.
TEST_P(EveryOp, AnEffectReturnsTheInput) {
  if (op().has_effect) {
    EXPECT_EQ(op().storage, OpStorage::input);
  }
  EXPECT_FALSE(is_collective(op()));
}

TEST_P(EveryOp, ResultHasTheTypeOfTheTypeRule) {
  for (const OpSample& sample : samples()) {
    if (op().kernel_decides_types) continue;
    const Tensors inputs = draw(sample, false);
    TypeList in, out;
    for (const Tensor& input : inputs) in.push_back(input.type());
    TypeArgs rule{op(), sample.attrs.get(), in, out};
    op().type(rule);
    const Tensors results = apply(sample, inputs);
    ASSERT_EQ(results.size(), out.size());
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].type(), out[i]);
  }
}

TEST_P(EveryOp, MakesAViewIfItSaysSo) {
  if (op().kernel_decides_types) return;  // plans run such ops through the door
  for (const OpSample& sample : samples()) {
    const Tensors inputs = draw(sample, false);
    if (inputs.empty() || op().storage == OpStorage::any || inputs[0].type().is_list()) continue;
    const Tensors results = apply(sample, inputs);
    if (results.empty() || results[0].type().is_list() || !results[0].numel()) continue;
    const char* const begin = inputs[0].data<char>();
    const char* const at = results[0].data<char>();
    const bool is_view = at >= begin && at < begin + inputs[0].type().bytes();
    const OpCall call{op(), sample.attrs.get(), {&inputs[0].type(), 1}, {&results[0].type(), 1}};
    EXPECT_EQ(makes_view(call), is_view) << inputs[0].type() << " -> " << results[0].type();
  }
}

TEST_P(EveryOp, TracedGivesTheBitsOfEager) {
  for (const OpSample& sample : samples()) {
    const Tensors inputs = draw(sample, false);
    const Tensors eager = apply(sample, inputs);
    // With tensors of the outside: the ops are recorded, and the interpreter runs them.
    GraphBuilder builder("sample", "sample");
    Tensors outputs;
    Ref<Graph> graph;
    {
      ModeScope scope(builder.scope());
      outputs = apply(sample, inputs);
      graph = builder.finish(outputs);
    }
    verify(*graph, "recording a sample");
    DimEnv env;
    const Tensors traced = replay(*graph, builder.captured(), env);
    ASSERT_EQ(traced.size(), eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i) {
      EXPECT_EQ(traced[i].dtype(), eager[i].dtype());
      if (!eager[i].type().is_ragged()) expect_same_bits(traced[i], eager[i]);
      const auto valid = valid_of(eager[i]);
      const auto a = values_of(traced[i]), b = values_of(eager[i]);
      for (std::size_t k = 0; k < valid.size(); ++k) {
        EXPECT_TRUE(!valid[k] || a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) << k;
      }
    }
  }
}

TEST_P(EveryOp, VjpMatchesCentralDifferences) {
  if (!op().vjp) return;
  for (const OpSample& sample : samples()) {
    if (rounds_to_f32(sample)) continue;
    const Tensors inputs = draw(sample, true);
    if (!has_floating(inputs)) continue;
    const auto f = [&](const Tensors& x) { return weighted_sum(apply(sample, x)); };
    const Tensors gradient = grad(f)(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_differentiable(sample, i)) continue;
      const std::vector<double> got = values_of(gradient[i]), valid = valid_of(inputs[i]),
                                at = values_of(inputs[i]);
      ASSERT_EQ(gradient[i].type(), inputs[i].type());
      for (std::size_t k = 0; k < got.size(); ++k) {
        if (!valid[k]) continue;
        const double step = 1e-6 * std::max(1.0, std::abs(at[k]));
        const auto moved = [&](double by) {
          Tensors x = inputs;
          std::vector<double> values = at;
          values[k] += by;
          x[i] = tensor_of(values, inputs[i].dims());
          return f(x).item<double>();
        };
        const double expected = (moved(step) - moved(-step)) / (2 * step);
        EXPECT_NEAR(got[k], expected, 1e-6 * std::max({1.0, std::abs(expected), std::abs(got[k])}))
            << "input " << i << ", entry " << k << " at " << at[k] << ", step " << step
            << ", seed 7"
            << (std::isfinite(expected) ? ""
                                        : "; results of the sample are infinite or NaN: draw from "
                                          "another interval, or give the op finite results");
      }
    }
  }
}

TEST_P(EveryOp, VjpOfOneInputAloneHasTheBitsOfAll) {
  if (!op().vjp) return;
  for (const OpSample& sample : samples()) {
    const Tensors inputs = draw(sample, false);
    if (!has_floating(inputs)) continue;
    const auto f = [&](const Tensors& x) { return weighted_sum(apply(sample, x)); };
    const Tensors all = grad(f)(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_differentiable(sample, i)) continue;
      const Tensor alone = grad([&](const Tensor& x) {
        Tensors some = inputs;
        some[i] = x;
        return f(some);
      })(inputs[i]);
      expect_same_bits(mask_padding(alone), mask_padding(all[i]));
    }
  }
}

TEST_P(EveryOp, SecondVjpMatchesCentralDifferencesOfTheFirst) {
  if (!op().vjp) return;
  for (const OpSample& sample : samples()) {
    if (rounds_to_f32(sample)) continue;
    const Tensors inputs = draw(sample, true);
    if (!has_floating(inputs)) continue;
    const auto first = [&](const Tensors& x) {
      const Tensors gradient =
          grad([&](const Tensors& y) { return weighted_sum(apply(sample, y)); })(x);
      Tensors differentiable;
      for (std::size_t i = 0; i < gradient.size(); ++i)
        if (is_differentiable(sample, i)) differentiable.push_back(gradient[i]);
      return weighted_sum(differentiable);
    };
    const Tensors second = grad(first)(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_differentiable(sample, i)) continue;
      const std::vector<double> got = values_of(second[i]), valid = valid_of(inputs[i]),
                                at = values_of(inputs[i]);
      for (std::size_t k = 0; k < got.size(); ++k) {
        if (!valid[k]) continue;
        const double step = 1e-5 * std::max(1.0, std::abs(at[k]));
        const auto moved = [&](double by) {
          Tensors x = inputs;
          std::vector<double> values = at;
          values[k] += by;
          x[i] = tensor_of(values, inputs[i].dims());
          return first(x).item<double>();
        };
        const double expected = (moved(step) - moved(-step)) / (2 * step);
        EXPECT_NEAR(got[k], expected, 1e-5 * std::max({1.0, std::abs(expected), std::abs(got[k])}))
            << "input " << i << ", entry " << k << " at " << at[k];
      }
    }
  }
}

TEST_P(EveryOp, NanInPaddingChangesNoValidResultAndNoGradient) {
  for (const OpSample& sample : samples()) {
    Tensors clean = draw(sample, true), dirty = clean;
    bool has_padding = false;
    for (std::size_t i = 0; i < clean.size(); ++i) {
      if (!clean[i].type().is_ragged() || !is_float(clean[i].dtype())) continue;
      has_padding = true;
      clean[i] = mask_padding(clean[i]);
      dirty[i] = mask_padding(clean[i], std::numeric_limits<double>::quiet_NaN());
    }
    if (!has_padding) continue;
    // Padding reaches a reducing op only after the public function has masked it. Samples of these
    // ops have no padding, or the op itself masks.
    const auto f = [&](const Tensors& x) { return weighted_sum(apply(sample, x)); };
    const Tensors a = apply(sample, clean), b = apply(sample, dirty);
    for (std::size_t i = 0; i < a.size(); ++i)
      expect_same_bits(mask_padding(a[i]), mask_padding(b[i]));
    if (!op().vjp) continue;
    const Tensors ga = grad(f)(clean), gb = grad(f)(dirty);
    for (std::size_t i = 0; i < ga.size(); ++i)
      if (is_differentiable(sample, i)) expect_same_bits(mask_padding(ga[i]), mask_padding(gb[i]));
  }
}

}  // namespace
}  // namespace reel
