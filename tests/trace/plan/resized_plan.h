// tests/trace/plan/resized_plan.h — ResizedPlan, a plan that each call resizes.
#pragma once

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

/// The plan of a recorded function. Each run resizes it for its argument.
class ResizedPlan {
 public:
  using Function = std::function<Tensor(const Tensor& x)>;

  explicit ResizedPlan(Function f, const Passes& passes = {}) : f_(std::move(f)), passes_(passes) {}

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
      Optimised optimised = optimise_for_plan(*recorded, passes_);
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
        Plan::Inputs::lent, PlanContext{passes_}, before.get());
    for (std::size_t i = 0; i < inputs.size(); ++i) plan_->set_input(i, inputs[i]);
    plan_->run();
    Tensors results;
    for (std::size_t k = 0; k < graph_->outputs.size(); ++k)
      results.push_back(plan_->take_output(k));
    return results;
  }

  const Function f_;
  const Passes passes_;
  TracedFunction traced_{
      "f",
      [this](const GraphRef& graph, Tensors&& inputs) { return run(graph, std::move(inputs)); },
      [](const Graph&, const Graph&) { return std::string(); }};
  GraphRef graph_;
  std::vector<int> captures_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace reel
