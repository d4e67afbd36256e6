// Loops whose entries finish one by one: only what a run uses has a plan.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/plan/explain/plan_view.h"
#include "reel/trace/passes/pipeline.h"
#include "reel/trace/traced_function.h"

namespace reel {
namespace {

/// The plan of a recorded function, run with inputs of other lengths in turn.
class UnplannedLoopsTest : public ::testing::Test {
 protected:
  using Function = std::function<Tensor(const Tensor& x)>;

  void SetUp() override { manual_seed(5); }

  const Dim feature{"feature", 96}, hidden{"hidden", 96}, next{"next", 96};
  const Tensor u = random_normal({hidden, next}) * 0.1;

  Tensor batch(const std::vector<int>& lengths) const {
    const Dim batch("batch", std::ssize(lengths)), time("time", tensor(lengths, {batch}));
    return random_normal({time, batch, feature});
  }

  /// States that attend to the whole of `memory`, whose length is in the body's types.
  Tensor attended(const Tensor& x, const Tensor& memory) const {
    const auto body = [&](const Tensor& x_t, const Tensor& h) {
      const Tensor query = rename(matmul(h, u, hidden), next, feature) + x_t;
      const Tensor read = matmul(
          memory, softmax(matmul(memory, query, feature), memory.dim("time")), memory.dim("time"));
      const Tensor y = tanh(rename(read, feature, hidden) + h * 0.5);
      return std::pair{y, y};
    };
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch"), hidden}),
                     .xs = x,
                     .body = body})
        .ys;
  }

  /// Runs f(x) by a plan that is resized from the run before.
  Tensor run(const Function& f, const Tensor& x) {
    if (!traced_)
      traced_.emplace(
          "f",
          [this](const GraphRef& graph, Tensors&& inputs) {
            return run_resized(graph, std::move(inputs));
          },
          [](const Graph&, const Graph&) { return std::string(); });
    TreeLeaves arguments = flatten(x);
    const auto function = [&](const TreeLeaves& promises) {
      Tensor inside = x;
      detail::fill_tree(detail::TreeSlot(inside), promises);
      const Tensor result = f(inside);
      return TracedFunction::Recorded{{flatten(result), detail::prototype_of(result)}, {}, {}};
    };
    return (*traced_)(typeid(Tensor), arguments, function).leaves[0].tensor;
  }

  std::vector<const LoopPlan*> loops() const {
    std::vector<const LoopPlan*> result;
    for (const PlanView::Instruction& at : PlanView::instructions(*plan_))
      if (at.kind == PlanView::Kind::loop) result.push_back(&PlanView::loop_of(*plan_, at));
    return result;
  }

 private:
  Tensors run_resized(const GraphRef& recorded, Tensors&& all) {
    if (!graph_) {
      Optimised optimised = optimise_for_plan(*recorded, {});
      graph_ = std::move(optimised.graph);
      captures_ = std::move(optimised.kept_captures);
    }
    Tensors inputs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(recorded->formal_count));
    for (const int i : captures_)
      inputs.push_back(all[recorded->formal_count + static_cast<std::size_t>(i)]);
    std::vector<TensorType> types;
    for (const Tensor& input : inputs) types.push_back(input.type());
    const std::unique_ptr<Plan> before = std::move(plan_);
    plan_ = std::make_unique<Plan>(
        *graph_, types, DimEnv(),
        std::vector<Plan::Outputs>(graph_->outputs.size(), Plan::Outputs::blocks),
        Plan::Inputs::lent, PlanContext{}, before.get());
    for (std::size_t i = 0; i < inputs.size(); ++i) plan_->set_input(i, inputs[i]);
    plan_->run();
    Tensors results;
    for (std::size_t k = 0; k < graph_->outputs.size(); ++k)
      results.push_back(plan_->take_output(k));
    return results;
  }

  std::optional<TracedFunction> traced_;
  GraphRef graph_;
  std::vector<int> captures_;
  std::unique_ptr<Plan> plan_;
};

TEST_F(UnplannedLoopsTest, BatchesThatShrinkNeedNeitherTheWholeNorRowBlocks) {
  const Function f = [this](const Tensor& x) { return mask_padding(attended(x, x)); };
  for (const int longest : {30, 41, 20}) {
    std::vector<int> lengths;
    for (int row = 0; row < 16; ++row) lengths.push_back(1 + (row * 5) % longest);
    const Tensor x = batch(lengths);
    expect_same_bits(run(f, x), jit(f)(x));
    ASSERT_FALSE(loops().empty());
    for (const LoopPlan* const loop : loops()) {
      ASSERT_GT(PlanView::batches(*loop), 0u);
      EXPECT_TRUE(PlanView::is_planned(*loop));
      EXPECT_FALSE(PlanView::whole(*loop).body);
      for (const auto& block : PlanView::blocks(*loop)) EXPECT_FALSE(block);
    }
  }
}

TEST_F(UnplannedLoopsTest, OneRowBlockNeedsNoWhole) {
  const Function f = [this](const Tensor& x) { return mask_padding(attended(x, x)); };
  for (const int longest : {9, 12}) {
    const Tensor x = batch({longest, 3, 1});
    expect_same_bits(run(f, x), jit(f)(x));
    ASSERT_FALSE(loops().empty());
    for (const LoopPlan* const loop : loops()) {
      ASSERT_EQ(loop->blocks(), 1u);
      EXPECT_TRUE(PlanView::blocks(*loop)[0]);
      EXPECT_FALSE(PlanView::whole(*loop).body);
    }
  }
}

TEST_F(UnplannedLoopsTest, OtherNumbersOfThreadsHaveTheSameBits) {
  const Function f = [this](const Tensor& x) { return mask_padding(attended(x, x)); };
  const Tensor x = batch({8, 30, 2, 30, 17, 5, 5, 21, 1, 3, 12, 29, 4, 7, 9, 11});
  const Tensor expected = jit(f)(x);
  for (const int count : {1, 2, 1, 3}) {
    const Threads these(count);
    expect_same_bits(run(f, x), expected);
    ASSERT_FALSE(loops().empty());
    for (const LoopPlan* const loop : loops()) EXPECT_TRUE(PlanView::is_planned(*loop));
  }
}

// explain() shows the loop that a run used, with other threads as well.
TEST_F(UnplannedLoopsTest, ExplainedTextsNeedNoPlanOfTheWhole) {
  const auto f = jit([this](const Tensor& x) { return attended(x, x); });
  {
    const Threads one(1);
    f(batch({8, 30, 2, 30, 17, 5, 5, 21, 1, 3, 12, 29, 4, 7, 9, 11}));
    EXPECT_NE(f.explain().find("as a shrinking batch"), std::string::npos) << f.explain();
  }
  const Threads three(3);
  EXPECT_NE(f.explain().find("instructions each"), std::string::npos) << f.explain();
}

}  // namespace
}  // namespace reel
