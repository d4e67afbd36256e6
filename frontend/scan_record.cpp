// The traced form of scan: cond and body recorded once each, one record.
#include "reel/core/bind.h"
#include "reel/core/errors.h"
#include "reel/core/ops/dims.h"
#include "reel/core/str.h"
#include "reel/frontend/scan_leaves.h"
#include "reel/frontend/tree.h"

namespace reel {
namespace {

struct RecordedBody {
  Ref<Graph> graph;
  Tensors captured;
  TreeLeaves ys;  // with types of promises of the body
};

RecordedBody record_body(const ScanSpec& spec, const ScanPlan& plan, const StateRule& rule,
                         RandomScope& random) {
  GraphBuilder builder("body");
  ModeScope scope(builder.scope());
  random.begin(builder.add_input(TensorType(i64)));
  const TreeLeaves state = add_state_inputs(builder, rule);
  TreeLeaves x = spec.xs;
  std::size_t next = 0;
  for (TreeLeaf& leaf : x) {
    if (leaf.kind != TreeLeaf::Kind::tensor) continue;
    const TensorType& type = plan.xs[next++].type();
    leaf.tensor = builder.add_input(type.with(Dims(type.dims().begin() + 1, type.dims().end())));
  }
  const ScanStep step = spec.body(x, state);
  RecordedBody result;
  const TreeLeaves next_state = rule.checked(step.state);
  result.ys = checked_ys(spec, plan, step.y, nullptr);
  Tensors outputs = tensors_of(next_state);
  for (const Tensor& y : tensors_of(result.ys)) outputs.push_back(y);
  result.graph = builder.finish(outputs);
  result.captured = builder.captured();
  return result;
}

}  // namespace

TreeLeaves abstract_ys(const ScanSpec& spec, const ScanPlan& plan, const StateRule& rule) {
  RandomScope random;
  return record_body(spec, plan, rule, random).ys;
}

ScanResult record_scan(const ScanSpec& spec, const ScanPlan& plan) {
  const StateRule rule(plan.what, spec.initial, spec.state_paths);
  RandomScope random;
  LoopAttrs attrs;
  attrs.name = spec.name;
  attrs.is_scan = true;
  attrs.is_reverse = spec.is_reverse;
  attrs.cond_before_body = spec.cond_before_body;
  attrs.entry_dims = plan.entry_dims;
  CaptureList captures;
  if (spec.cond) {
    GraphBuilder builder("cond");
    ModeScope scope(builder.scope());
    random.begin(builder.add_input(TensorType(i64)), 1);
    const TreeLeaves state = add_state_inputs(builder, rule);
    const Ref<Graph> graph =
        builder.finish({checked_entry_condition(spec, plan, spec.cond(state))});
    attrs.cond_captures = captures.add(builder.captured());
    attrs.cond = make_sub_graph(graph);
  }
  const RecordedBody body = record_body(spec, plan, rule, random);
  attrs.body_captures = captures.add(body.captured);
  attrs.body = make_sub_graph(body.graph);

  const Tensors initial = tensors_of(spec.initial), ys = tensors_of(body.ys);
  attrs.carries = static_cast<int>(initial.size());
  attrs.slices = static_cast<int>(plan.xs.size());
  attrs.stacks = static_cast<int>(ys.size());
  attrs.fills.assign(initial.size() + plan.xs.size() + captures.tensors().size(), Fill::live);
  attrs.stack_kinds.assign(ys.size(), spec.return_tensor_arrays ? LoopAttrs::kList : 0);
  attrs.makes_dim = plan.makes_dim;
  attrs.new_dim = plan.new_dim;
  if (!plan.makes_dim) attrs.stack_dims.assign(ys.size(), *plan.dim);
  Tensors inputs;
  if (plan.bound.is_defined()) {
    attrs.has_bound = true;
    inputs.push_back(plan.bound);
  }
  if (plan.lengths.is_defined()) {
    attrs.has_lengths = true;
    inputs.push_back(plan.lengths);
  }
  inputs.insert(inputs.end(), initial.begin(), initial.end());
  inputs.insert(inputs.end(), plan.xs.begin(), plan.xs.end());
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  const LoopAttrs layout = attrs;
  const Tensors outputs = bind_all(loop_op, inputs, make_attrs(std::move(attrs)));

  ScanResult result;
  result.state =
      with_tensors(spec.initial, Tensors(outputs.begin(), outputs.begin() + layout.carries));
  result.ys = with_tensors(body.ys, Tensors(outputs.begin() + layout.first_stack(),
                                            outputs.begin() + layout.first_sum()));
  result.dim = plan.makes_dim ? outputs[layout.token_output()].dims()[1] : *plan.dim;
  return result;
}

}  // namespace reel
