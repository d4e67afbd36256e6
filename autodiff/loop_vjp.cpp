// The vjp of a loop: a loop that runs backwards over the same iterations.
#include <algorithm>
#include <optional>

#include "reel/autodiff/backward.h"
#include "reel/autodiff/derivative_reachability.h"
#include "reel/autodiff/reverse_graph.h"
#include "reel/autodiff/saving_loop.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/passes/inline_checkpointed.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/loop.h"
#include "reel/core/ops/control/nested_step_types.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/zero_unless.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

/// Returns true if a cotangent has arrived for an output. Cotangents of checkpoints do not count:
/// their readers recompute values that others read as they were.
bool has_cotangent(const LoopAttrs& attrs, const Vjp& at, int output) {
  const int stack = output - attrs.carries;
  const bool is_checkpoint = stack >= 0 && stack < attrs.stacks && attrs.is_checkpoint(stack);
  return !is_checkpoint && at.has_cotangent(output);
}

/// Returns the carries with a needed cotangent that can be non-zero: a fixpoint over the body.
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
      outputs[i] = has_cotangent(attrs, at, i);
    const std::vector<std::uint8_t> inputs = reachable_inputs(body, outputs);
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
    const std::vector<std::uint8_t> outputs = reachable_outputs(body, inputs);
    for (int i = 0; i < carries; ++i)
      if (outputs[i] && !wanted[i]) wanted[i] = changed = true;
  }
  for (int i = 0; i < carries; ++i)
    cotangent[i] = cotangent[i] && wanted[i] && is_float(body.types[body.outputs[i]].dtype());
  return cotangent;
}

/// Returns true if lengths of some dim run over the stack's own dim.
bool hides_elements(const TensorType& stack) {
  const auto runs_over = [&](const Dim& dim) {
    return contains(dim.length_dims(), stack.dims()[0]);
  };
  return !stack.is_list() && std::any_of(stack.dims().begin(), stack.dims().end(), runs_over);
}

std::vector<ValueId> values_of(const std::vector<Saved>& all) {
  std::vector<ValueId> result;
  for (const Saved& saved : all) result.push_back(saved.value);
  return result;
}

/// Builds the reverse loop, and the forward loop with its residuals.
class LoopReversal {
 public:
  explicit LoopReversal(Vjp& at)
      : at_(at),
        attrs_(at.attr<LoopAttrs>()),
        body_(*attrs_.body.graph),
        active_(active_carries(attrs_, at)),
        is_changing_(carries_with_changing_dims(attrs_)),
        reversed_(reverse_graph(body_, spec(attrs_.keeps.get(), has_policy()))) {}

  void run() {
    run_forward();
    start();
    take_inputs();
    name_outputs();
    finish();
    add_cotangents(bind_all(loop_op, back_inputs_, make_attrs(back_)));
  }

 private:
  bool has_policy() const { return attrs_.has_checkpoints() || attrs_.swaps || attrs_.keeps; }
  ReversalSpec spec(const SavingRule* rule, bool has_policy) {
    ReversalSpec spec;
    spec.has_cotangent.assign(active_.begin(), active_.end());
    for (int i = attrs_.carries; i < attrs_.carries + attrs_.stacks + attrs_.sums; ++i)
      spec.has_cotangent.push_back(has_cotangent(attrs_, at_, i));
    spec.is_wanted.assign(body_.inputs.size(), 0);
    spec.is_free.assign(body_.inputs.size(), 1);
    for (int i = 0; i < attrs_.carries; ++i) {
      spec.is_wanted[1 + i] = active_[i];
      spec.is_free[1 + i] = 0;
    }
    spec.is_varying.assign(body_.inputs.size(), 0);
    std::copy(is_changing_.begin(), is_changing_.end(), spec.is_varying.begin() + 1);
    for (int i = 0; i < attrs_.slices; ++i) {
      spec.is_wanted[1 + attrs_.carries + i] = at_.needs(attrs_.first_slice() + i);
      spec.is_varying[1 + attrs_.carries + i] = at_.input_type(attrs_.first_slice() + i).is_list();
    }
    for (std::size_t i = 0; i < attrs_.body_captures.size(); ++i)
      spec.is_wanted[body_.formal_count + i] =
          at_.needs(attrs_.first_capture() + attrs_.body_captures[i]);
    spec.takes_rows.assign(body_.inputs.size(), 0);
    for (std::size_t i = 0; i < attrs_.body_captures.size(); ++i) {
      const std::size_t capture = attrs_.first_capture() + attrs_.body_captures[i];
      spec.takes_rows[body_.formal_count + i] = at_.takes_rows(capture) && !has_entries(capture);
    }
    spec.is_constant.assign(body_.inputs.size(), 0);
    std::fill(spec.is_constant.begin() + static_cast<std::ptrdiff_t>(body_.formal_count),
              spec.is_constant.end(), 1);
    spec.keeps = rule;
    for (int i = attrs_.carries; i < attrs_.carries + attrs_.stacks; ++i)
      if (is_kept_anyway(i, has_policy)) spec.kept_anyway.push_back(i);
    return spec;
  }

  /// Returns true if the input has entry dims. A finished entry then reads a row of another entry,
  /// and the row's number does not say which.
  bool has_entries(std::size_t input) const {
    const Dims& entries =
        attrs_.has_lengths ? at_.input_type(attrs_.has_bound).dims() : attrs_.entry_dims;
    const Dims& dims = at_.input_type(input).dims();
    return std::any_of(dims.begin(), dims.end(),
                       [&](const Dim& dim) { return contains(entries, dim); });
  }

  /// A stack that exists anyway can serve as a residual, with three exceptions. With entries, it
  /// has zeros for finished ones, which the body may have read otherwise. If lengths run over the
  /// stack's dim, it lacks padding that the body read. And under a policy, only stacks that the
  /// user reads count, as the gradient alone must not keep more.
  bool is_kept_anyway(int output, bool has_policy) const {
    if (!attrs_.entry_dims.empty() || attrs_.is_checkpoint(output - attrs_.carries)) return false;
    const bool is_read = at_.has_cotangent(output) && !cotangents_are_assumed();
    return (is_read || !has_policy) && !hides_elements(at_.output_type(output));
  }

  /// Returns the Dim that the forward loop runs along, if any.
  std::optional<Dim> forward_dim() const {
    if (attrs_.makes_dim) return at_.output_type(attrs_.token_output()).dims()[1];
    if (attrs_.cond) {  // a saving loop: along the dim that the first one makes, not of xs
      if (attrs_.stacks && !(attrs_.stack_dims[0] == Dim(0))) return attrs_.stack_dims[0];
      return std::nullopt;
    }
    if (attrs_.slices > 0 && !at_.input_type(attrs_.first_slice()).is_list())
      return leading_dim(at_.input_type(attrs_.first_slice()));
    // Unread slices were dropped: the counter of a fori_loop.
    if (attrs_.slices == 0 && attrs_.is_full && attrs_.has_bound && thread_mode.builder)
      if (const auto steps = thread_mode.builder->known_integer(at_.input(0)))
        return dim_of_steps(std::max<std::int64_t>(*steps, 0));
    return std::nullopt;
  }

  /// Returns the dim that the dropped slices had: named if the state has names
  /// (frontend/loops/fold.cpp).
  Dim dim_of_steps(std::int64_t steps) const {
    for (std::size_t j = 0; j < static_cast<std::size_t>(attrs_.stacks); ++j)
      if (!attrs_.is_list(j)) return attrs_.stack_dims[j];
    for (std::size_t i = 0; i < static_cast<std::size_t>(attrs_.carries); ++i)
      if (at_.input_type(attrs_.first_carry() + i).is_named()) return Dim("i", steps);
    return Dim(steps);
  }

  /// Applies the forward loop again, with residuals. A pass merges the two
  /// (core/graph/passes/merge_equal.cpp).
  void run_forward() {
    Tensors inputs;
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < at_.input_count(); ++i) {
      inputs.push_back(at_.input(i));
      types.push_back(at_.input_type(i));
    }
    env_ = body_env(attrs_, types);
    LoopAttrs saving = with_saved(attrs_, reversed_, forward_dim(), env_);
    saving.body =
        make_sub_graph(with_outputs(*reversed_.forward, attrs_, values_of(reversed_.saved)), env_);
    if (!attrs_.has_checkpoints() || reversed_.saved.empty()) {
      forward_ = std::move(saving);
      outputs_ = apply_again(at_, loop_op, inputs, make_attrs(forward_));
      const auto saved = outputs_.begin() + attrs_.carries + attrs_.stacks;
      saved_.assign(saved, saved + static_cast<std::ptrdiff_t>(reversed_.saved.size()));
      return;
    }
    forward_ = with_checkpoints(attrs_);
    forward_.body = make_sub_graph(with_checkpoints(body_, attrs_), env_);
    outputs_ = apply_again(at_, loop_op, inputs, make_attrs(forward_));
    inputs.push_back(outputs_[forward_.trips_output()]);
    if (forward_.makes_lengths()) inputs.push_back(outputs_[forward_.lengths_output()]);
    const auto checkpoints = outputs_.begin() + attrs_.carries + attrs_.stacks;
    inputs.insert(inputs.end(), checkpoints, checkpoints + 1 + attrs_.carries);
    saved_ = bind_all(
        recompute_op, inputs,
        make_attrs(RecomputeAttrs{make_attrs(std::move(saving)), attrs_.stacks, {}, {}, {}}));
  }

  void start() {
    back_.name = "the gradient of " + attrs_.name;
    back_.is_reverse = !attrs_.is_reverse;
    back_.is_gradient_loop = !attrs_.is_gradient_loop;
    back_.is_scan = true;
    back_.parallel_iterations = attrs_.parallel_iterations;
    back_.entry_dims = attrs_.entry_dims;
    back_.kept_dims = attrs_.kept_dims;
    back_.has_bound = true;
    back_inputs_.push_back(outputs_[forward_.trips_output()]);
    if (attrs_.has_lengths || attrs_.makes_lengths()) {
      back_.has_lengths = true;
      back_inputs_.push_back(attrs_.makes_lengths() ? outputs_[forward_.lengths_output()]
                                                    : at_.input(attrs_.has_bound));
    }
  }

  void take_slice(const Tensor& value, Fill fill) {
    slices_.push_back(reversed_.graph->inputs[next_++]);
    slice_values_.push_back(value);
    slice_fills_.push_back(fill);
  }
  void take_capture(const Tensor& value, Fill fill) {
    captures_.push_back(reversed_.graph->inputs[next_++]);
    capture_values_.push_back(value);
    capture_fills_.push_back(fill);
  }
  /// A finished entry's output was discarded, or added to the first running one: then it has that
  /// entry's cotangent.
  Fill cotangent_fill(int output) const {
    const int stack = output - attrs_.carries;
    if (stack < 0 && attrs_.fills[output] == Fill::as_is) return Fill::as_is;
    if (stack >= 0 && stack < attrs_.stacks && attrs_.is_raw(stack)) return Fill::as_is;
    return attrs_.output_adds_finished(output) ? Fill::live : Fill::zero;
  }
  void take_cotangent(int output) {
    if (output < attrs_.carries) {
      carries_.push_back(reversed_.graph->inputs[next_++]);
      Tensor cotangent = at_.has_cotangent(output) ? at_.cotangent(output) : Tensor();
      if (!cotangent.is_defined()) {
        // Zeros need only dims: use the initial state if it has the same type, as it exists.
        const Tensor &last = outputs_[output],
                     &first = at_.input(attrs_.first_carry() + static_cast<std::size_t>(output));
        cotangent = last.type().is_list() ? empty_list(last.type())
                                          : zeros_like(first.type() == last.type() ? first : last);
      }
      back_inputs_.push_back(std::move(cotangent));
      back_.fills.push_back(cotangent_fill(output));
      back_.last_dims.push_back(is_changing_[static_cast<std::size_t>(output)]
                                    ? at_.input_type(attrs_.first_carry() + output).dims()
                                    : Dims{});
    } else if (output < attrs_.carries + attrs_.stacks) {
      // If lengths run over the stack's dim, padding there is an element inside.
      const Tensor cotangent = at_.cotangent(output);
      take_slice(cotangent.type().is_list() ? cotangent : clear_padding(cotangent, 0),
                 cotangent_fill(output));
    } else {
      take_capture(at_.cotangent(output), cotangent_fill(output));
    }
  }

  /// Takes the inputs of the reversed body, in the order of the lists of `reversed`. They become
  /// its position, cotangents of carries, slices and captures.
  void take_inputs() {
    for (const int i : reversed_.cotangents) take_cotangent(i);
    back_.carries = static_cast<int>(carries_.size());
    for (const int i : reversed_.inputs) {
      if (i == 0) {
        position_ = reversed_.graph->inputs[next_++];
      } else if (i < static_cast<int>(body_.formal_count)) {
        take_slice(at_.input(attrs_.first_slice() + i - 1 - attrs_.carries), attrs_.fills[i - 1]);
      } else {
        const int capture = attrs_.body_captures[i - body_.formal_count];
        take_capture(at_.input(attrs_.first_capture() + capture),
                     attrs_.fills[attrs_.carries + attrs_.slices + capture]);
      }
    }
    for (const int i : reversed_.kept)  // stacks; this gradient's loop may be given some of them
      take_slice(outputs_[i], attrs_.is_spilled(static_cast<std::size_t>(i - attrs_.carries))
                                  ? Fill::recomputed
                                  : Fill::live);
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      const bool has_few =
          attrs_.has_checkpoints() || (may_spill() && (attrs_.swaps || reversed_.saved[i].spills));
      take_slice(saved_[i], has_few ? Fill::recomputed : Fill::as_is);
    }
    for (const Tensor& constant : reversed_.captured) take_capture(constant, Fill::live);
    back_.slices = static_cast<int>(slices_.size());
    back_.fills.insert(back_.fills.end(), slice_fills_.begin(), slice_fills_.end());
  }

  /// Takes the outputs of the reversed body, in the order of the forward body's inputs. They become
  /// cotangents of carries, slices and captures.
  void name_outputs() {
    std::vector<ValueId> stacks, sums, lasts, presences, rows;
    std::vector<std::uint8_t> collect_stacks, collect_sums;
    const auto note_presence = [&](std::size_t k, std::vector<int>& presence_of) {
      const int presence = reversed_.presences[k];
      presence_of.push_back(presence < 0 ? -1 : static_cast<int>(presences.size()));
      if (presence >= 0) presences.push_back(reversed_.graph->outputs[presence]);
    };
    for (std::size_t k = 0; k < reversed_.wanted.size(); ++k) {
      const ValueId v = reversed_.graph->outputs[k];
      const int i = reversed_.wanted[k];
      if (i <= attrs_.carries) {
        lasts.push_back(v);
        back_.adds_finished_to_running.push_back(attrs_.fills[i - 1] == Fill::live);
      } else if (i < static_cast<int>(body_.formal_count)) {
        const int slice = i - 1 - attrs_.carries;
        const TensorType& type = at_.input_type(attrs_.first_slice() + slice);
        stack_of_.push_back(slice);
        stacks.push_back(v);
        note_presence(k, stack_presences_);
        const Fill fill = fill_in_memory(attrs_.fills[i - 1]);  // recomputed values read like saved
        collect_stacks.push_back(fill == Fill::live);
        back_.stack_kinds.push_back((type.is_list() ? LoopAttrs::kList : 0) |
                                    (fill == Fill::as_is ? LoopAttrs::kRaw : 0));
        back_.stack_dims.push_back(leading_dim(type));
      } else if (const int numbers = reversed_.row_numbers[k]; numbers >= 0) {
        rows_of_.push_back(attrs_.body_captures[i - body_.formal_count]);
        rows.push_back(v);
        rows.push_back(reversed_.graph->outputs[numbers]);
      } else {
        sum_of_.push_back(attrs_.body_captures[i - body_.formal_count]);
        sums.push_back(v);
        note_presence(k, sum_presences_);
        collect_sums.push_back(attrs_.fills[attrs_.carries + attrs_.slices + sum_of_.back()] ==
                               Fill::live);
      }
    }
    // The rows that an iteration read; their number varies.
    first_rows_ = stacks.size();
    stacks.insert(stacks.end(), rows.begin(), rows.end());
    collect_stacks.resize(stacks.size());
    back_.stack_kinds.resize(stacks.size(), LoopAttrs::kList | LoopAttrs::kRaw);
    back_.stack_dims.resize(stacks.size(), Dim(0));
    // The number of iterations with a path.
    first_presence_ = sums.size();
    sums.insert(sums.end(), presences.begin(), presences.end());
    collect_sums.resize(sums.size());
    back_.stacks = static_cast<int>(stacks.size());
    back_.sums = static_cast<int>(sums.size());
    for (const auto* more : {&collect_stacks, &collect_sums})
      back_.adds_finished_to_running.insert(back_.adds_finished_to_running.end(), more->begin(),
                                            more->end());
    outputs_of_body_ = std::move(lasts);
    for (const auto* more : {&stacks, &sums})
      outputs_of_body_.insert(outputs_of_body_.end(), more->begin(), more->end());
  }

  /// Returns the types that decide on the size of chunks: the same under every policy, saving rule,
  /// and with checkpointed functions.
  std::vector<TensorType> chunk_cost_types() {
    if (!attrs_.chunk_cost_types.empty()) return attrs_.chunk_cost_types;
    if (!back_.is_full) return {};
    std::vector<TensorType> inputs;
    for (std::size_t i = 0; i < at_.input_count(); ++i) inputs.push_back(at_.input_type(i));
    LoopAttrs plain = attrs_;
    if (has_checkpointed(body_)) plain.body = make_sub_graph(inline_checkpointed(body_), env_);
    std::vector<TensorType> around = nested_step_types(plain, inputs);
    if (!around.empty()) return around;
    const Graph& body = *plain.body.graph;
    return &body == &body_ && !has_policy() ? step_of(reversed_)
                                            : step_of(reverse_graph(body, spec(nullptr, false)));
  }
  /// Returns the types that an iteration of this gradient reads and writes.
  std::vector<TensorType> step_of(const ReversedGraph& reversed) {
    std::vector<TensorType> types;
    const auto add_step_of = [&](const TensorType& all) {
      if (!all.is_list()) types.push_back(slice_type(all));
    };
    const auto slice_of = [&](int input) {
      return attrs_.first_slice() + input - 1 - attrs_.carries;
    };
    const auto is_slice = [&](int input) {
      return input > attrs_.carries && input < static_cast<int>(body_.formal_count);
    };
    for (const int i : reversed.cotangents)
      if (i >= attrs_.carries && i < attrs_.carries + attrs_.stacks)
        add_step_of(at_.output_type(i));
    for (const int i : reversed.inputs)
      if (is_slice(i)) add_step_of(at_.input_type(slice_of(i)));
    for (const int i : reversed.kept) add_step_of(at_.output_type(i));
    for (const Saved& saved : reversed.saved)
      if (!saved.is_local && !saved.type.is_list()) types.push_back(env_.resolve(saved.type));
    for (const int i : reversed.wanted)
      if (is_slice(i)) add_step_of(at_.input_type(slice_of(i)));
    return types;
  }

  /// Returns true if the loop made its dim, and no slices or stacks run along another one, which
  /// may be longer than the trip count.
  bool runs_along_made_dim() const {
    if (!attrs_.makes_dim) return false;
    const Dim made = *forward_dim();
    for (const Tensor& slices : slice_values_)
      if (!slices.type().is_list() && leading_dim(slices.type()) != made) return false;
    for (std::size_t j = 0; j < back_.stack_dims.size(); ++j)
      if (!back_.is_list(j) && back_.stack_dims[j] != made) return false;
    return true;
  }

  void finish() {
    back_.is_full = attrs_.is_full || runs_along_made_dim();
    Ref<Graph> graph(new Graph(*reversed_.graph));
    graph->inputs = {position_ == ~0u ? graph->add_value(TensorType(i64)) : position_};
    graph->inputs.insert(graph->inputs.end(), carries_.begin(), carries_.end());
    graph->inputs.insert(graph->inputs.end(), slices_.begin(), slices_.end());
    graph->formal_count = graph->inputs.size();
    graph->inputs.insert(graph->inputs.end(), captures_.begin(), captures_.end());
    graph->outputs = outputs_of_body_;
    graph->name = body_.name + " reversed";
    graph->seal();
    back_.body = make_sub_graph(std::move(graph), env_);
    back_.chunk_cost_types = chunk_cost_types();

    CaptureList list;
    back_.body_captures = list.add(capture_values_);
    std::vector<Fill> fills(list.tensors().size(), Fill::live);
    for (std::size_t i = 0; i < capture_values_.size(); ++i)
      fills[back_.body_captures[i]] = capture_fills_[i];
    back_.fills.insert(back_.fills.end(), fills.begin(), fills.end());
    for (const Tensors& more : {slice_values_, list.tensors()})
      back_inputs_.insert(back_inputs_.end(), more.begin(), more.end());
  }

  /// Adds cotangents in the order of the eager tape: captures, slices, initial values, each from
  /// the last one on. Inputs that only the body reads have a cotangent only if an iteration ran.
  void add_cotangents(const Tensors& results) {
    const Tensor ran = outputs_[forward_.trips_output()] > 0;
    const auto presence = [&](int number) {
      return results[back_.first_sum() + first_presence_ + static_cast<std::size_t>(number)] > 0;
    };
    // Without an iteration, sizes that only iterations determine are zero.
    const auto sized = [&](const Tensor& cotangent, std::size_t input) {
      const TensorType& type = cotangent.type();
      const bool is_open = !type.is_list() && has_unknown_size(type);
      return is_open ? zero_unless(ran, cotangent, at_.input(input)) : cotangent;
    };
    for (std::size_t k = 0; k < sum_of_.size(); ++k) {
      const std::size_t i = attrs_.first_capture() + sum_of_[k];
      at_.add(i, sized(results[back_.first_sum() + k], i),
              sum_presences_[k] < 0 ? ran : presence(sum_presences_[k]));
    }
    for (std::size_t k = 0; k < rows_of_.size(); ++k) {
      const std::size_t rows = back_.first_stack() + first_rows_ + 2 * k;
      at_.add_rows(attrs_.first_capture() + rows_of_[k], list_concat(results[rows]),
                   list_concat(results[rows + 1]));
    }
    for (std::size_t k = stack_of_.size(); k-- > 0;) {
      const std::size_t i = attrs_.first_slice() + stack_of_[k];
      Tensor cotangent = sized(results[back_.first_stack() + k], i);
      if (stack_presences_[k] < 0)
        at_.add(i, std::move(cotangent));
      else
        at_.add(i, std::move(cotangent), presence(stack_presences_[k]));
    }
    int last = back_.carries;
    for (int i = attrs_.carries; i-- > 0;) {
      if (!active_[i]) continue;
      if (at_.has_cotangent(i))
        at_.add(attrs_.first_carry() + i, results[--last]);
      else
        at_.add(attrs_.first_carry() + i, results[--last], ran);
    }
  }

  Vjp& at_;
  const LoopAttrs& attrs_;
  const Graph& body_;
  const std::vector<std::uint8_t> active_;       // by carry
  const std::vector<std::uint8_t> is_changing_;  // by carry: its dims change from step to step
  const ReversedGraph reversed_;

  DimEnv env_;         // dims of the body as the enclosing graph names them
  LoopAttrs forward_;  // the forward loop with residuals or checkpoints
  Tensors outputs_;    // of forward_
  Tensors saved_;

  LoopAttrs back_;
  Tensors back_inputs_;
  std::size_t next_ = 0;  // of the reversed body's inputs
  ValueId position_ = ~0u;
  std::vector<ValueId> carries_, slices_, captures_, outputs_of_body_;
  Tensors slice_values_, capture_values_;
  std::vector<Fill> slice_fills_, capture_fills_;
  std::vector<int> stack_of_, sum_of_;  // slices and captures of the forward loop
  std::vector<int> rows_of_;            // captures with rows as cotangents: values, and numbers
  std::size_t first_rows_ = 0;          // among the stacks
  // For each of stack_of_ and sum_of_: the sum that counts iterations with a path; -1 if all have
  // one.
  std::vector<int> stack_presences_, sum_presences_;
  std::size_t first_presence_ = 0;  // among the sums
};

}  // namespace

void loop_vjp(Vjp& at) { LoopReversal(at).run(); }

}  // namespace reel
