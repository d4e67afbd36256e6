// An optimiser's update of a parameter is one pass over the parameter, its moments and its
// gradient.
#include <gtest/gtest.h>

#include <algorithm>

#include "reel/core/ops/control/fused.h"
#include "reel/reel.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

struct Model {
  LstmCell cell;
  Tensor readout;
};

/// Returns the ops of a plan that read a tensor.
std::vector<const Op*> readers_of(const Graph& graph, ValueId value) {
  std::vector<const Op*> result;
  for (const OpRecord& record : graph.records) {
    const auto in = graph.inputs_of(record);
    if (std::find(in.begin(), in.end(), value) != in.end()) result.push_back(record.op);
  }
  return result;
}

/// moments: their number per parameter.
template <class Optimiser>
void expect_one_pass(const Optimiser& optimiser, const Model& model, const Dim& in, int moments) {
  const Dim batch("batch", 2), time("time", 5);
  const auto step = jit([&](Model m, Optimiser o, const Tensor& x) {
    const auto loss = [&](const Model& m) {
      const auto body = [&](const Tensor& x, const LstmCell::State& state) {
        return std::pair{None{}, m.cell(x, state).second};
      };
      const auto last = scan(Scan{.spatial_dim = time,
                                  .initial = m.cell.initial_state({batch}),
                                  .xs = x,
                                  .body = body})
                            .state;
      return mean(square(matmul(last.h, m.readout, m.cell.hidden)));
    };
    const auto [value, gradient] = value_and_grad(loss)(m);
    o.update(m, clip_by_global_norm(gradient, 1.0).first);
    return std::tuple{m, o, value};
  });
  step(model, optimiser, ones({batch, time, in}));

  const Optimised planned = optimise_for_plan(step.graph(), {});
  const Graph& graph = *planned.graph;
  int parameters = 0, of_optimiser = 0;
  for (const ValueId v : graph.inputs) {
    const TensorType& type = graph.types[v];
    if (type.dtype() != f32 || type.rank() == 3) continue;  // skips dims, scalars of a step, and x
    const std::vector<const Op*> readers = readers_of(graph, v);
    EXPECT_EQ(std::count(readers.begin(), readers.end(), &fused_op), 1) << type << '\n' << graph;
    // The model reads parameters as well.
    ++(readers.size() == 1 ? of_optimiser : parameters);
    EXPECT_TRUE(
        std::none_of(readers.begin(), readers.end(), [](const Op* op) { return op->pointwise; }))
        << type << '\n'
        << graph;
  }
  EXPECT_EQ(parameters, 4);
  EXPECT_EQ(of_optimiser, 4 * moments);
}

class FusedUpdatesTest : public ::testing::Test {
 protected:
  const Dim in_{"in", 3}, hidden_{"hidden", 4};
  const Model model_{LstmCell::init(in_, hidden_), ones({hidden_})};
};

TEST_F(FusedUpdatesTest, AdamUpdatesInOneFusedOp) { expect_one_pass(Adam(model_), model_, in_, 2); }
TEST_F(FusedUpdatesTest, AdamWUpdatesInOneFusedOp) {
  expect_one_pass(AdamW(model_), model_, in_, 2);
}
TEST_F(FusedUpdatesTest, SgdWithMomentumUpdatesInOneFusedOp) {
  expect_one_pass(Sgd(model_, {.momentum = 0.9}), model_, in_, 1);
}
TEST_F(FusedUpdatesTest, SgdWithNesterovsMomentumUpdatesInOneFusedOp) {
  expect_one_pass(Sgd(model_, {.momentum = 0.9, .nesterov = true}), model_, in_, 1);
}
TEST_F(FusedUpdatesTest, SgdWithDecayUpdatesInOneFusedOp) {
  expect_one_pass(Sgd(model_, {.momentum = 0.9, .weight_decay = 0.1}), model_, in_, 1);
}
TEST_F(FusedUpdatesTest, AdagradUpdatesInOneFusedOp) {
  expect_one_pass(Adagrad(model_), model_, in_, 1);
}
TEST_F(FusedUpdatesTest, LionUpdatesInOneFusedOp) {
  expect_one_pass(Lion(model_, {.weight_decay = 0.1}), model_, in_, 1);
}
TEST_F(FusedUpdatesTest, RmsPropUpdatesInOneFusedOp) {
  expect_one_pass(RmsProp(model_), model_, in_, 1);
}
TEST_F(FusedUpdatesTest, CenteredRmsPropUpdatesInOneFusedOp) {
  expect_one_pass(RmsProp(model_, {.momentum = 0.9, .centered = true}), model_, in_, 3);
}

}  // namespace
}  // namespace reel
