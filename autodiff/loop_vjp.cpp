// The vjp of a loop is a loop that runs backwards over the same iterations.
#include <algorithm>
#include <optional>

#include "reel/autodiff/reverse_graph.h"
#include "reel/core/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/dims.h"
#include "reel/core/ops/list.h"
#include "reel/core/ops/loop.h"
#include "reel/core/ops/new_dims.h"
#include "reel/core/ops/only_if.h"
#include "reel/core/str.h"
#include "reel/core/vjp.h"

namespace reel {
namespace {

/// Which carries have a cotangent that can be other than zero, and that somebody wants: a fixpoint
/// over the body.
std::vector<std::uint8_t> active_carries(const LoopAttrs& attrs, Vjp& at) {
  const Graph& body = *attrs.body.graph;
  const int carries = attrs.carries;
  std::vector<std::uint8_t> cotangent(carries), wanted(carries);
  for (int i = 0; i < carries; ++i) {
    cotangent[i] = at.has_cotangent(i);
    wanted[i] = at.needs(attrs.first_carry() + i);
  }
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::uint8_t> outputs(body.outputs.size(), 0);
    for (int i = 0; i < carries; ++i) outputs[i] = cotangent[i];
    for (int i = carries; i < carries + attrs.stacks + attrs.sums; ++i)
      outputs[i] = at.has_cotangent(i);
    const std::vector<std::uint8_t> inputs = reached_inputs(body, outputs);
    for (int i = 0; i < carries; ++i)
      if (inputs[1 + i] && !cotangent[i]) cotangent[i] = changed = true;
  }
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::uint8_t> inputs(body.inputs.size(), 0);
    for (int i = 0; i < carries; ++i) inputs[1 + i] = wanted[i];
    for (int i = 0; i < attrs.slices; ++i)
      inputs[1 + carries + i] = at.needs(attrs.first_slice() + i);
    for (std::size_t i = 0; i < attrs.body_captures.size(); ++i)
      inputs[body.formal_count + i] = at.needs(attrs.first_capture() + attrs.body_captures[i]);
    const std::vector<std::uint8_t> outputs = reached_outputs(body, inputs);
    for (int i = 0; i < carries; ++i)
      if (outputs[i] && !wanted[i]) wanted[i] = changed = true;
  }
  for (int i = 0; i < carries; ++i)
    cotangent[i] = cotangent[i] && wanted[i] && is_float(body.types[body.outputs[i]].dtype());
  return cotangent;
}

/// Some dim's lengths run over the axis that slices are stacked along.
bool hides_elements(const TensorType& stack) {
  const auto runs_over = [&](const Dim& dim) {
    return contains(dim.length_dims(), stack.dims()[0]);
  };
  return !stack.is_list() && std::any_of(stack.dims().begin(), stack.dims().end(), runs_over);
}

/// The forward loop with more stacks: what the reverse loop reads.
///
/// dim: what the loop runs along, if that has a Dim; env: what dims of the body are called where
/// the loop stands. Values go into a list where they cannot be one tensor: where their sizes
/// change, where there is no dim or they have it already, or where one is named and the other is
/// not.
LoopAttrs with_saved(const LoopAttrs& attrs, const ReversedGraph& reversed,
                     const std::optional<Dim>& dim, DimEnv& env) {
  LoopAttrs result = attrs;
  const std::size_t extra = reversed.saved.size();
  const auto mentions_dim = [&](const Dim& axis) {
    if (!dim->is_named()) return false;
    const Dim outside = env.knows(axis) ? env.resolve(axis) : axis;
    return outside == *dim || contains(outside.length_dims(), *dim);
  };
  for (const Saved& saved : reversed.saved) {
    const bool clashes =
        dim && saved.type.rank() &&
        (saved.type.is_named() != dim->is_named() ||
         std::any_of(saved.type.dims().begin(), saved.type.dims().end(), mentions_dim));
    const bool is_list = saved.is_local || saved.type.is_list() || !dim || clashes;
    result.stack_kinds.push_back(is_list ? LoopAttrs::kList | LoopAttrs::kRaw : LoopAttrs::kRaw);
  }
  result.stacks += static_cast<int>(extra);
  if (result.makes_dim) {
    result.stack_dims.assign(attrs.stacks, *dim);
    result.makes_dim = false;
  }
  result.stack_dims.insert(result.stack_dims.end(), extra, dim.value_or(Dim(0)));
  if (!result.collects.empty())
    result.collects.insert(result.collects.begin() + attrs.carries + attrs.stacks, extra, 0);
  result.origin = attrs.origin ? attrs.origin : attrs.body.graph;
  return result;
}

/// Its body: the forward graph, with the saved values behind the stacks.
Ref<Graph> with_outputs(const ReversedGraph& reversed, const LoopAttrs& attrs) {
  Ref<Graph> body(new Graph(*reversed.forward));
  std::vector<ValueId> extra;
  for (const Saved& saved : reversed.saved) extra.push_back(saved.value);
  body->outputs.insert(body->outputs.begin() + attrs.carries + attrs.stacks, extra.begin(),
                       extra.end());
  body->seal();
  return body;
}

}  // namespace

void loop_vjp(Vjp& at) {
  const LoopAttrs& attrs = at.attr<LoopAttrs>();
  const Graph& body = *attrs.body.graph;
  const std::vector<std::uint8_t> active = active_carries(attrs, at);

  ReversalSpec spec;
  spec.has_cotangent.assign(active.begin(), active.end());
  for (int i = attrs.carries; i < attrs.carries + attrs.stacks + attrs.sums; ++i)
    spec.has_cotangent.push_back(at.has_cotangent(i));
  spec.is_wanted.assign(body.inputs.size(), 0);
  spec.is_free.assign(body.inputs.size(), 1);
  for (int i = 0; i < attrs.carries; ++i) {
    spec.is_wanted[1 + i] = active[i];
    spec.is_free[1 + i] = 0;
  }
  spec.is_varying.assign(body.inputs.size(), 0);
  for (int i = 0; i < attrs.carries; ++i) spec.is_varying[1 + i] = changes_dims(attrs, i);
  for (int i = 0; i < attrs.slices; ++i) {
    spec.is_wanted[1 + attrs.carries + i] = at.needs(attrs.first_slice() + i);
    spec.is_varying[1 + attrs.carries + i] = at.input_type(attrs.first_slice() + i).is_list();
  }
  for (std::size_t i = 0; i < attrs.body_captures.size(); ++i)
    spec.is_wanted[body.formal_count + i] =
        at.needs(attrs.first_capture() + attrs.body_captures[i]);
  // What is stacked anyway has zeros where entries have ended, which the body may have seen
  // otherwise, and padding where lengths run over the stack's dim, all of which the body saw.
  for (int i = 0; attrs.entry_dims.empty() && i < attrs.stacks; ++i)
    if (!hides_elements(at.output_type(attrs.carries + i)))
      spec.kept_anyway.push_back(attrs.carries + i);
  const ReversedGraph reversed = reverse_graph(body, spec);

  // The forward loop once more, with what is to be saved. A pass makes the two one
  // (core/merge_equal.cpp).
  Tensors inputs;
  for (std::size_t i = 0; i < at.input_count(); ++i) inputs.push_back(at.input(i));
  std::optional<Dim> dim;
  if (attrs.makes_dim) {
    dim = at.output_type(attrs.token_output()).dims()[1];
  } else if (attrs.cond) {  // once more already: along the dim that the first one makes, not that
                            // of xs
    if (attrs.stacks && !(attrs.stack_dims[0] == Dim(0))) dim = attrs.stack_dims[0];
  } else if (attrs.slices > 0 && !at.input_type(attrs.first_slice()).is_list()) {
    dim = leading_dim(at.input_type(attrs.first_slice()));
  }
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < at.input_count(); ++i) types.push_back(at.input_type(i));
  DimEnv env = body_env(attrs, types);
  LoopAttrs forward = with_saved(attrs, reversed, dim, env);
  forward.body = make_sub_graph(with_outputs(reversed, attrs), env);
  const Tensors outputs = bind_all(loop_op, inputs, make_attrs(forward));

  // The reverse loop: its body's inputs are position, cotangents of carries, slices, captures.
  LoopAttrs back;
  back.name = "the gradient of " + attrs.name;
  back.is_reverse = !attrs.is_reverse;
  back.counts_down = !attrs.counts_down;
  back.is_scan = true;
  back.is_full = attrs.is_full || attrs.makes_dim;
  back.entry_dims = attrs.entry_dims;
  back.has_bound = true;
  Tensors back_inputs{outputs[forward.trips_output()]};
  if (attrs.has_lengths || attrs.makes_lengths()) {
    back.has_lengths = true;
    back_inputs.push_back(attrs.makes_lengths() ? outputs[forward.lengths_output()]
                                                : at.input(attrs.has_bound));
  }
  Ref<Graph> graph(new Graph(*reversed.graph));
  const std::vector<ValueId> given = graph->inputs;  // in the order of the lists of `reversed`
  std::vector<ValueId> carries, slices, captures;
  Tensors slice_values, capture_values;
  std::vector<Fill> slice_fills, capture_fills;
  ValueId position = ~0u;
  std::size_t next = 0;
  const auto take_slice = [&](const Tensor& value, Fill fill) {
    slices.push_back(given[next++]);
    slice_values.push_back(value);
    slice_fills.push_back(fill);
  };
  const auto take_capture = [&](const Tensor& value, Fill fill) {
    captures.push_back(given[next++]);
    capture_values.push_back(value);
    capture_fills.push_back(fill);
  };
  // An ended entry's output was thrown away, or joined that of the first live one, whose cotangent
  // it then has.
  const auto cotangent_fill = [&](int output) {
    const int stack = output - attrs.carries;
    if (stack < 0 && attrs.fills[output] == Fill::as_is) return Fill::as_is;
    if (stack >= 0 && stack < attrs.stacks && attrs.is_raw(stack)) return Fill::as_is;
    return attrs.collects_output(output) ? Fill::live : Fill::zero;
  };
  for (const int i : reversed.cotangents) {
    if (i < attrs.carries) {
      carries.push_back(given[next++]);
      Tensor cotangent = at.has_cotangent(i) ? at.cotangent(i) : Tensor();
      if (!cotangent.is_defined()) {
        const Tensor& last = outputs[i];
        cotangent = last.type().is_list() ? empty_list(last.type()) : zeros_like(last);
      }
      back_inputs.push_back(std::move(cotangent));
      back.fills.push_back(cotangent_fill(i));
      back.last_dims.push_back(
          changes_dims(attrs, i) ? at.input_type(attrs.first_carry() + i).dims() : Dims{});
    } else if (i < attrs.carries + attrs.stacks) {
      // Where lengths run over the stack's dim, what is padding there is an element inside.
      const Tensor cotangent = at.cotangent(i);
      take_slice(cotangent.type().is_list() ? cotangent : clear_padding(cotangent, 0),
                 cotangent_fill(i));
    } else {
      take_capture(at.cotangent(i), cotangent_fill(i));
    }
  }
  back.carries = static_cast<int>(carries.size());
  for (const int i : reversed.inputs) {
    if (i == 0) {
      position = given[next++];
    } else if (i < static_cast<int>(body.formal_count)) {
      take_slice(at.input(attrs.first_slice() + i - 1 - attrs.carries), attrs.fills[i - 1]);
    } else {
      const int capture = attrs.body_captures[i - body.formal_count];
      take_capture(at.input(attrs.first_capture() + capture),
                   attrs.fills[attrs.carries + attrs.slices + capture]);
    }
  }
  for (const int i : reversed.kept) take_slice(outputs[i], Fill::live);
  for (std::size_t i = 0; i < reversed.saved.size(); ++i)
    take_slice(outputs[attrs.carries + attrs.stacks + i], Fill::as_is);
  for (const Tensor& constant : reversed.captured) take_capture(constant, Fill::live);
  if (position == ~0u) position = graph->add_value(TensorType(i64));
  graph->inputs = {position};
  graph->inputs.insert(graph->inputs.end(), carries.begin(), carries.end());
  graph->inputs.insert(graph->inputs.end(), slices.begin(), slices.end());
  graph->formal_count = graph->inputs.size();
  graph->inputs.insert(graph->inputs.end(), captures.begin(), captures.end());
  back.slices = static_cast<int>(slices.size());
  back.fills.insert(back.fills.end(), slice_fills.begin(), slice_fills.end());

  // Its outputs, in the order of the forward body's inputs: cotangents of carries, slices,
  // captures.
  const std::vector<ValueId> outs = graph->outputs;
  std::vector<ValueId> stacks, sums, lasts;
  std::vector<std::uint8_t> collect_stacks, collect_sums;
  std::vector<int> stack_of, sum_of;  // slices and captures of the forward loop
  for (std::size_t k = 0; k < reversed.wanted.size(); ++k) {
    const int i = reversed.wanted[k];
    if (i <= attrs.carries) {
      lasts.push_back(outs[k]);
      back.collects.push_back(attrs.fills[i - 1] == Fill::live);
    } else if (i < static_cast<int>(body.formal_count)) {
      const int slice = i - 1 - attrs.carries;
      const TensorType& type = at.input_type(attrs.first_slice() + slice);
      stack_of.push_back(slice);
      stacks.push_back(outs[k]);
      collect_stacks.push_back(attrs.fills[i - 1] == Fill::live);
      back.stack_kinds.push_back((type.is_list() ? LoopAttrs::kList : 0) |
                                 (attrs.fills[i - 1] == Fill::as_is ? LoopAttrs::kRaw : 0));
      back.stack_dims.push_back(leading_dim(type));
    } else {
      sum_of.push_back(attrs.body_captures[i - body.formal_count]);
      collect_sums.push_back(attrs.fills[attrs.carries + attrs.slices + sum_of.back()] ==
                             Fill::live);
      sums.push_back(outs[k]);
    }
  }
  back.collects.insert(back.collects.end(), collect_stacks.begin(), collect_stacks.end());
  back.collects.insert(back.collects.end(), collect_sums.begin(), collect_sums.end());
  back.stacks = static_cast<int>(stacks.size());
  back.sums = static_cast<int>(sums.size());
  graph->outputs = lasts;
  graph->outputs.insert(graph->outputs.end(), stacks.begin(), stacks.end());
  graph->outputs.insert(graph->outputs.end(), sums.begin(), sums.end());
  graph->name = body.name + " reversed";
  graph->seal();
  back.body = make_sub_graph(graph, env);

  back_inputs.insert(back_inputs.end(), slice_values.begin(), slice_values.end());
  CaptureList list;
  back.body_captures = list.add(capture_values);
  std::vector<Fill> fills(list.tensors().size(), Fill::live);
  for (std::size_t i = 0; i < capture_values.size(); ++i)
    fills[back.body_captures[i]] = capture_fills[i];
  back.fills.insert(back.fills.end(), fills.begin(), fills.end());
  back_inputs.insert(back_inputs.end(), list.tensors().begin(), list.tensors().end());
  const Tensors results = bind_all(loop_op, back_inputs, make_attrs(back));

  // In the order in which the tape of eager mode meets them: captures, slices, initial values, the
  // last ones first.
  // What the body alone leads to has a cotangent only where it ran.
  const Tensor ran = outputs[forward.trips_output()] > 0;
  // Without an iteration, sizes that only iterations know count as zero.
  const auto sized = [&](const Tensor& cotangent, std::size_t input) {
    const TensorType& type = cotangent.type();
    const bool is_open = !type.is_list() && has_unknown_size(type);
    return is_open ? only_if(ran, cotangent, at.input(input)) : cotangent;
  };
  for (std::size_t k = 0; k < sum_of.size(); ++k) {
    const std::size_t i = attrs.first_capture() + sum_of[k];
    at.add(i, sized(results[back.first_sum() + k], i), ran);
  }
  for (std::size_t k = stack_of.size(); k-- > 0;) {
    const std::size_t i = attrs.first_slice() + stack_of[k];
    at.add(i, sized(results[back.first_stack() + k], i));
  }
  int last = back.carries;
  for (int i = attrs.carries; i-- > 0;)
    if (active[i]) {
      if (at.has_cotangent(i))
        at.add(attrs.first_carry() + i, results[--last]);
      else
        at.add(attrs.first_carry() + i, results[--last], ran);
    }
}

}  // namespace reel
