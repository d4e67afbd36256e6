#include "reel/trace/executors/plan/loop_plan.h"

#include <algorithm>
#include <optional>

#include "reel/core/ops/list/list.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {
namespace {

/// Returns the type of a list if all its elements have one type; otherwise nothing.
std::optional<TensorType> uniform_type(const Tensor& list) {
  if (const ResidualValue* const residual = residual_value(list)) {
    const bool is_one = residual->steps->is_uniform() && list.type().element().is_known();
    return is_one ? std::optional(list.type()) : std::nullopt;
  }
  std::optional<TensorType> type;
  for (const Tensor& element : list_elements(list)) {
    if (!element.is_defined() || element.type().is_list()) continue;
    if (type && !(*type == element.type())) return std::nullopt;
    type = element.type();
  }
  return type ? type->as_list() : list.type();
}

/// True if the lists in a list name dims that differ from list to list. A body of one type cannot
/// read them: the list of an iteration may be all that tells it these dims.
bool has_lists_of_other_dims(const Tensor& list) {
  const TensorType* first = nullptr;
  for (const Tensor& element : list_elements(list)) {
    if (!element.is_defined() || !element.type().is_list()) continue;
    if (!first) first = &element.type();
    if (element.type().is_named() && !std::ranges::equal(element.dims(), first->dims(), are_alike))
      return true;
  }
  return false;
}

/// True if the body learns dims from slice i alone, and the slice is a list. The type of residuals
/// that are recomputed does not tell dims that each iteration makes.
bool alone_tells_dims(const LoopAttrs& attrs, std::size_t i) {
  const Graph& body = *attrs.body.graph;
  const TensorType& formal = body.types[body_inputs(attrs).slices[i]];
  if (!formal.is_list() || attrs.chunking.over_chunks) return false;
  Dims known;
  for (const ValueId input : body.inputs)
    if (!body.types[input].is_list())
      for_each_bound(body.types[input], [&](const Dim& dim) { known.push_back(dim); });
  bool result = false;
  const DimEnv outside = attrs.body.env();
  for_each_symbol(formal, [&](const Dim& dim) {
    result = result || (dim.is_named() && !outside.knows(dim) && !contains(known, dim));
  });
  return result;
}

/// Returns the type of input i; nothing if iterations have different ones. Slices that are lists in
/// the body (elements of a list of lists, or chunks) may have elements of different types.
std::optional<TensorType> input_type(const LoopAttrs& attrs, std::size_t i, const Tensor& input) {
  if (!input.type().is_list()) return input.type();
  const LoopLeaf leaf = operand_at(attrs, i);
  if (!leaf.is(LeafKind::slice)) return input.type();
  if (residual_value(input)
          ? !input.type().element().is_known() && alone_tells_dims(attrs, leaf.index)
          : has_lists_of_other_dims(input))
    return std::nullopt;
  if (const auto type = uniform_type(input)) return type;
  const TensorType& formal = attrs.body.graph->types[body_inputs(attrs).slices[leaf.index]];
  return formal.is_list() ? std::optional(input.type()) : std::nullopt;
}

/// Returns true if no iteration will run, so that types only an iteration would determine are
/// unknown.
bool is_empty(const LoopAttrs& attrs, OpInputs in) {
  const auto operands = operands_of(attrs, in);
  if (operands.bound && integer_of(*operands.bound->tensor) <= 0) return true;
  bool tells = operands.bound;  // the trip count is known; otherwise lists determine it
  for (const OpInput& slices : operands.slices) {
    const TensorType& type = slices.tensor->type();
    if (type.is_list()) continue;
    if (type.sizes()[0] == 0) return true;
    tells = true;
  }
  if (tells) return false;
  return std::any_of(operands.slices.begin(), operands.slices.end(), [](const OpInput& list) {
    return !residual_value(*list.tensor) && list_elements(*list.tensor).empty();
  });
}

}  // namespace

/// Plans the graphs for these inputs. Returns false if the loop cannot be planned.
bool LoopPlan::prepare(const AttrsRef& attrs_ref, OpInputs in) {
  const auto& attrs = get<LoopAttrs>(attrs_ref.get());
  bool is_same = attrs_ && attrs_.get() == attrs_ref.get();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto type = input_type(attrs, i, *in[i].tensor);
    if (!type) {
      attrs_ = AttrsRef();  // some given types are new: the next call must not find its plan
      input_types_ = given_types_;
      return is_planned_ = false;
    }
    if (i == given_types_.size()) {
      given_types_.push_back(*type);
      is_same = false;
    } else if (!(given_types_[i] == *type)) {
      given_types_[i] = *type;
      is_same = false;
    }
  }
  if (is_same) return is_planned_;
  attrs_ = AttrsRef();  // until planning is done
  input_types_ = given_types_;
  if (!attrs.chunking.over_chunks) name_alike(attrs, input_types_);
  is_whole_planned_ = false;
  // Types of such a body often contain the longest length, so that each batch would plan the whole.
  const bool is_cut_first = attrs.has_entries() && carries_keep_dims(attrs);
  if (is_cut_first) {
    whole_.bind(attrs_ref, input_types_);
    blocks_.make(whole_, in);
  }
  is_planned_ = is_cut_first && blocks_.count() > 0;
  if (!is_planned_) {
    is_planned_ = try_plan_whole(attrs_ref);
    if (is_planned_ && !is_cut_first) blocks_.make(whole_, in);
  }
  attrs_ = attrs_ref;
  return is_planned_;
}

/// Plans the whole loop, unless that is done. Returns false if it cannot be planned.
bool LoopPlan::try_plan_whole(const AttrsRef& attrs) {
  return is_whole_planned_ = is_whole_planned_ || whole_.try_plan(attrs, input_types_);
}

std::unique_ptr<LoopRun> LoopPlan::begin(const AttrsRef& attrs, OpInputs in,
                                         std::span<Tensor> out) {
  if (is_empty(get<LoopAttrs>(attrs.get()), in) || !prepare(attrs, in) || !try_plan_whole(attrs))
    return nullptr;
  return std::make_unique<LoopRun>(whole_, in, out);
}

std::size_t LoopPlan::blocks_inside() const {
  return whole_.body ? whole_.body->blocks_of_loops() : 0;
}

void LoopPlan::run(const AttrsRef& attrs, OpInputs in, std::span<Tensor> out) {
  if (!is_empty(get<LoopAttrs>(attrs.get()), in) && prepare(attrs, in)) {
    if (blocks_.can_run(out) && blocks_.try_run(in, out)) return;
    if (try_plan_whole(attrs)) return LoopRun(whole_, in, out).run();
  }
  // Types change from iteration to iteration: the interpreter handles each.
  Tensors inputs, outputs;
  for (const OpInput& input : in) inputs.push_back(owned(*input.tensor));
  const std::vector<OpInput> views(inputs.begin(), inputs.end());
  KernelArgs args{loop_op, attrs.get(), views, false, {}, {}, &outputs};
  run_loop(args);
  for (std::size_t k = 0; k < out.size(); ++k)
    if (out[k].is_defined())
      copy_elements(out[k].data<void>(), outputs[k]);
    else
      out[k] = std::move(outputs[k]);
}

}  // namespace reel
