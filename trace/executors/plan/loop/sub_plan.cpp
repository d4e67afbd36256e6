#include "reel/trace/executors/plan/loop/sub_plan.h"

namespace reel {

bool SubPlan::prepare(const SubGraph& sub, const std::vector<TensorType>& types,
                      const std::vector<std::uint8_t>& is_block) {
  if (plan_ && sub_ == sub && types_ == types) return false;
  const bool is_same_graph = plan_ && &plan_->graph() == sub.graph.get();
  types_ = types;
  sub_ = SubGraph();  // until planning is done
  if (!is_same_graph || !plan_->rebind(types, sub.env())) make(sub, is_block, is_same_graph);
  sub_ = sub;
  return true;
}

void SubPlan::make(const SubGraph& sub, const std::vector<std::uint8_t>& is_block,
                   bool is_same_graph) {
  std::vector<Plan::Outputs> outputs;
  for (std::size_t k = 0; k < sub.graph->outputs.size(); ++k) {
    const bool block =
        sub.graph->types[sub.graph->outputs[k]].is_list() || (k < is_block.size() && is_block[k]);
    outputs.push_back(block ? Plan::Outputs::blocks : Plan::Outputs::placed);
  }
  const std::unique_ptr<Plan> before = std::move(plan_);
  plan_ = std::make_unique<Plan>(*sub.graph, types_, sub.env(), outputs, Plan::Inputs::lent,
                                 context_, is_same_graph ? before.get() : nullptr);
  graph_ = sub.graph;
}

}  // namespace reel
