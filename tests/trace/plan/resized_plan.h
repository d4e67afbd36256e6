// tests/trace/plan/resized_plan.h — RaggedLoopsTest, loops over ragged batches; ResizedPlan, a plan
// that each call resizes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "reel/reel.h"
#include "reel/trace/executors/plan/explain/plan_view.h"
#include "reel/trace/passes/pipeline.h"
#include "reel/trace/traced_function.h"

namespace reel {

/// Ragged batches {time, batch, feature}, and states that attend to a whole batch.
class RaggedLoopsTest : public ::testing::Test {
 protected:
  RaggedLoopsTest(std::int64_t size, double scale)
      : feature("feature", size),
        hidden("hidden", size),
        next("next", size),
        u(random_normal({hidden, next}) * scale) {}

  void SetUp() override { manual_seed(5); }

  Tensor batch(const std::vector<int>& lengths) const {
    const Dim batch("batch", std::ssize(lengths)), time("time", tensor(lengths, {batch}));
    return random_normal({time, batch, feature});
  }

  /// Returns states that attend to the whole of `memory`: its longest length is in the body's
  /// types.
  ///
  /// before: makes each state from another one, before the loop returns it.
  Tensor attended(const Tensor& x, const Tensor& memory,
                  const std::function<Tensor(const Tensor& h)>& before = {}) const {
    const Dim time = memory.dim("time");
    const auto body = [&](const Tensor& x_t, const Tensor& h) {
      const Tensor query = rename(matmul(h, u, hidden), next, feature);
      const Tensor weights = softmax(matmul(memory, query + x_t, feature), time);
      const Tensor made = tanh(rename(matmul(memory, weights, time), feature, hidden) + h * 0.5);
      const Tensor y = before ? before(made) : made;
      return std::pair{y, y};
    };
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch"), hidden}),
                     .xs = x,
                     .body = body})
        .ys;
  }

  const Dim feature, hidden, next;
  const Tensor u;
};

/// The plan of a recorded function. Each run resizes it for its argument.
class ResizedPlan {
 public:
  using Function = std::function<Tensor(const Tensor& x)>;

  explicit ResizedPlan(Function f) : f_(std::move(f)) {}

  Tensor operator()(const Tensor& x) {
    TreeLeaves arguments = flatten(x);
    const auto record = [&](const TreeLeaves& promises) {
      Tensor inside = x;
      detail::fill_tree(detail::TreeSlot(inside), promises);
      const Tensor result = f_(inside);
      return TracedFunction::Recorded{{flatten(result), detail::prototype_of(result)}, {}, {}};
    };
    return traced_(typeid(Tensor), arguments, record).leaves[0].tensor;
  }

  /// Returns the plan of the last run, and its loops.
  const Plan& plan() const { return *plan_; }
  std::vector<const LoopPlan*> loops() const {
    std::vector<const LoopPlan*> result;
    for (const PlanView::Instruction& at : PlanView::instructions(*plan_))
      if (at.kind == PlanView::Kind::loop) result.push_back(&PlanView::loop_of(*plan_, at));
    return result;
  }

 private:
  Tensors run(const GraphRef& recorded, Tensors&& all) {
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

  const Function f_;
  TracedFunction traced_{
      "f",
      [this](const GraphRef& graph, Tensors&& inputs) { return run(graph, std::move(inputs)); },
      [](const Graph&, const Graph&) { return std::string(); }};
  GraphRef graph_;
  std::vector<int> captures_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace reel
