#include "reel/trace/executors/plan/cond_plan.h"

#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {

void CondPlan::run(const AttrsRef& attrs_ref, OpInputs in, std::span<Tensor> out) {
  const auto& attrs = get<CondAttrs>(attrs_ref.get());
  const bool taken = *in[0].tensor->data<bool>();
  const std::vector<int>& captures = taken ? attrs.true_captures : attrs.false_captures;
  types_.clear();
  for (const int capture : captures) types_.push_back(in[1 + capture].tensor->type());
  SubPlan& branch = branches_[taken];
  branch.prepare(taken ? attrs.on_true : attrs.on_false, types_);
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const Tensor& capture = *in[1 + captures[i]].tensor;
    branch->set_input(i, branch->keeps_input(i) ? owned(capture) : capture);
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (!branch->output_is_placed(k)) continue;
    if (!out[k].is_defined()) out[k] = Tensor(allocate_block(branch->output_type(k)));
    branch->set_output(k, out[k].data<void>());
  }
  branch->run();
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (branch->output_is_placed(k)) continue;
    if (out[k].is_defined())
      copy_elements(out[k].data<void>(), branch->output(k));
    else
      out[k] = owned(branch->output(k));
  }
  branch->release();
}

}  // namespace reel
