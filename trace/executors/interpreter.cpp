// The interpreter: runs a graph op by op with the eager kernels. Results have the bits of eager
// mode.
#include "reel/trace/executors/interpreter.h"

#include <algorithm>
#include <optional>

#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/term_sum.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/loop/iteration_error.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/sizes.h"
#include "reel/trace/executors/checkpoints/stack_list.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/executors/loop/finished_entries.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/loop/stack_writer.h"
#include "reel/trace/executors/spill/spilled.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// One run of a loop op.
class LoopRun {
 public:
  LoopRun(KernelArgs& args)
      : args_(args),
        attrs_(args.attr<LoopAttrs>()),
        body_(*attrs_.body.graph),
        iterations_(attrs_, args.in) {
    const auto operands = operands_of(attrs_, args.in);
    if (is_chunked_) {
      chunks_ = chunks_of(attrs_, input_types());
      iterations_.limit = chunks_.count();
      for (std::int64_t k = 0; k < chunks_.count(); ++k) chunk_dims_.push_back(chunks_.made_dim(k));
    }
    for (const OpInput& carry : operands.carries) state_.push_back(*carry.tensor);
    for (const int capture : attrs_.body_captures)
      body_captures_.push_back(*operands.captures[capture].tensor);
    for (const int capture : attrs_.cond_captures)
      cond_captures_.push_back(*operands.captures[capture].tensor);
    for (const LoopStack& stack : attrs_.stacks) {
      lists_.emplace_back(attrs_.trips.is_reverse, stack.memory_class());
      stacks_.emplace_back(dim_known_before(stack), stack.memory_class());
    }
    spilled_.resize(attrs_.stacks.size());
    sums_.resize(attrs_.sums.size());
    own_dims_ = slices_with_own_dims(attrs_, input_types());
    dims_made_twice_ = dims_made_twice(attrs_, own_dims_);
    const auto formals = body_inputs(attrs_).slices;
    for (std::size_t i = 0; i < formals.size(); ++i) {
      const Tensor& slices = *operands.slices[i].tensor;
      residuals_.push_back(residual_value(slices));
      slices_.push_back(residuals_.back() ? Tensors()
                                          : elements_of(slices, body_.types[formals[i]]));
    }
  }

  void run() {
    const ResidualLock reading(residuals_);
    iterations_.run([&](std::int64_t position, const Tensor& running) { step(position, running); },
                    [&] { return eval_condition(); });
    finish();
  }

 private:
  /// slice: type of the slices in the body.
  Tensors elements_of(const Tensor& slices, const TensorType& slice) {
    if (slices.type().is_list() && is_chunked_) {
      const Tensors steps = list_elements(slices);
      Tensors result;
      for (std::int64_t k = 0; k < chunks_.count(); ++k)
        result.push_back(part_of_list(slices, steps, chunks_.first(k), chunks_.steps_of(k)));
      return result;
    }
    if (slices.type().is_list()) return slices_of_list(slices, slice, iterations_.limit);
    Tensors steps = unstack_shown(slices, 0);
    if (!is_chunked_) return steps;
    Tensors result;
    for (std::int64_t k = 0; k < chunks_.count(); ++k) {
      const auto first = steps.begin() + chunks_.first(k);
      result.push_back(stack(Tensors(first, first + chunks_.steps_of(k)),
                             chunk_dims_[static_cast<std::size_t>(k)]));
    }
    return result;
  }

  Tensor eval_condition() {
    Tensors inputs{scalar(iterations_.count(), i64)};
    inputs.insert(inputs.end(), state_.begin(), state_.end());
    inputs.insert(inputs.end(), cond_captures_.begin(), cond_captures_.end());
    return in_iteration(iterations_.number(), attrs_.name, [&] {
      DimEnv env = attrs_.cond.env();
      return std::move(replay(*attrs_.cond.graph, inputs, env)[0]);
    });
  }

  void step(std::int64_t position, const Tensor& running) {
    const bool has_finished = running.is_defined() && !all_running(running);
    if (has_finished) finished().set_running(running);
    Tensors inputs{place_of(position)};
    for (const Tensor& carry : state_) inputs.push_back(carry);
    for (std::size_t i = 0; i < slices_.size(); ++i)
      inputs.push_back(residuals_[i] ? residual_slice(i, position) : slices_[i][position]);
    inputs.insert(inputs.end(), body_captures_.begin(), body_captures_.end());
    if (times_.takes_any()) take_checkpoint(position, inputs);
    if (has_finished)
      for (std::size_t i = 1; i < inputs.size(); ++i) inputs[i] = finished_->seen(inputs[i], i - 1);
    DimEnv env = has_finished ? finished_->body().env() : attrs_.body.env();
    name_alike(attrs_, own_dims_, dims_made_twice_, inputs, env);
    std::optional<detail::RunningEntries> entries;
    if (has_finished && thread_mode.nan_checks) entries.emplace(Tensors{running});
    Tensors before;
    if (has_finished)
      before = std::move(state_);
    else
      state_.clear();  // so that the body may reuse buffers without other references
    const auto replayed = [&] { return replay(body_, inputs, env); };
    // In a chunk, the inner loop adds the iteration to errors.
    Tensors outputs =
        is_chunked_ ? replayed() : in_iteration(iterations_.number(), attrs_.name, replayed);
    entries.reset();
    if (has_finished)
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        outputs[k] = finished_->made(outputs[k], k);
        outputs[k] = k < before.size() ? finished_->next(outputs[k], before[k], k)
                                       : finished_->term(outputs[k], k);
      }
    const auto made = body_outputs_of(attrs_, outputs);
    state_.assign(std::make_move_iterator(made.carries.begin()),
                  std::make_move_iterator(made.carries.end()));
    for (std::size_t i = 0; i < stacks_.size(); ++i)
      put_term(i, position, std::move(made.stacks[i]));
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (begins_block(iterations_.count())) sums_[i].end_block();
      sums_[i].add(std::move(made.sums[i]));
    }
  }

  void put_term(std::size_t i, std::int64_t position, Tensor term) {
    const LoopStack& stack = attrs_.stacks[i];
    if (stack.is_checkpoint()) {
      if (times_.now().takes && stack.role != StackRole::checkpoint_step && times_.source(i) < 0)
        lists_[i].keep(std::move(term));
    } else if (stack.is_in_file()) {
      spill(i, position, term);
    } else if (is_chunked_) {
      put_chunk(i, position, term);
    } else if (stack.is_list) {
      lists_[i].put(position, iterations_.limit, std::move(term));
    } else {
      in_iteration(iterations_.number(), attrs_.name,
                   [&] { stacks_[i].put(position, std::move(term)); });
    }
  }

  /// Returns a slice of saved steps; in a chunked loop, the slices of a chunk.
  Tensor residual_slice(std::size_t i, std::int64_t position) const {
    ResidualSource& steps = *residuals_[i]->steps;
    const Tensor& all = *operands_of(attrs_, args_.in).slices[i].tensor;
    if (!is_chunked_) {
      steps.need(position, 1);
      return step_of_residual(all, position);
    }
    const std::int64_t first = chunks_.first(position), count = chunks_.steps_of(position);
    steps.need(first, count);
    Tensors slices;
    for (std::int64_t k = first; k < first + count; ++k) slices.push_back(step_of_residual(all, k));
    return all.type().is_list() ? make_list(all.type().element(), slices)
                                : stack(slices, chunk_dims_[static_cast<std::size_t>(position)]);
  }
  /// Returns how many time steps ran before the iteration at a position.
  std::int64_t steps_before(std::int64_t position) const {
    if (!is_chunked_) return iterations_.count();
    return attrs_.trips.is_reverse
               ? chunks_.steps - chunks_.first(position) - chunks_.steps_of(position)
               : chunks_.first(position);
  }
  /// inputs: of the body, before finished entries are filled.
  void take_checkpoint(std::int64_t position, const Tensors& inputs) {
    times_.begin(steps_before(position), [&](std::size_t i) { return bytes_of(state_[i]); });
    if (times_.opens_file()) open_file();
    for (std::size_t j = 0; j < lists_.size(); ++j) {
      if (!attrs_.stacks[j].is_checkpoint()) continue;
      for (int i = 0; i < times_.now().drops; ++i) lists_[j].thin();
      if (!times_.now().takes) continue;
      if (attrs_.stacks[j].role == StackRole::checkpoint_step)
        lists_[j].keep(tensor({steps_before(position), is_chunked_ ? chunks_.size : 1}, {}, i64));
      else if (times_.source(j) >= 0)
        lists_[j].keep(inputs[static_cast<std::size_t>(times_.source(j))]);
    }
  }

  void open_file() {
    const auto limit = times_.puts(iterations_.expected(), is_chunked_ ? chunks_.size : 1);
    for (std::size_t j = 0; j < lists_.size(); ++j)
      if (attrs_.stacks[j].is_checkpoint() && attrs_.stacks[j].is_in_file())
        lists_[j].spill_to(spills_.make_for_checkpoints(attrs_, j, limit));
  }

  /// Returns the position that the body receives.
  Tensor place_of(std::int64_t position) const {
    if (is_chunked_) return tensor({chunks_.first(position), chunks_.steps}, {}, i64);
    return scalar(iterations_.step_at(position), i64);
  }
  /// Splits the term of a chunk into time steps, in the order in which the loop runs.
  void put_chunk(std::size_t i, std::int64_t chunk, const Tensor& term) {
    Tensors steps = steps_of(term);
    const auto count = static_cast<std::int64_t>(steps.size());
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t step = attrs_.trips.is_reverse ? count - 1 - k : k,
                         position = chunks_.first(chunk) + step;
      Tensor element = std::move(steps[static_cast<std::size_t>(step)]);
      if (attrs_.stacks[i].is_list)
        lists_[i].put(position, chunks_.steps, std::move(element));
      else
        stacks_[i].put(position, std::move(element));
    }
  }
  /// Returns the time steps of a chunk's term.
  static Tensors steps_of(const Tensor& term) {
    return term.type().is_list() ? list_elements(term) : unstack_shown(term, 0);
  }

  Spilled& spilled(std::size_t i) {
    Ref<Spilled>& steps = spilled_[i];
    if (!steps) steps = spills_.make_for_steps(attrs_, i, chunks_, iterations_.expected());
    return *steps;
  }
  void spill(std::size_t i, std::int64_t position, const Tensor& term) {
    if (!is_chunked_) return spilled(i).put(position, term);
    std::int64_t step = chunks_.first(position);
    for (const Tensor& of : steps_of(term)) spilled(i).put(step++, of);
  }
  Tensor spilled_value(std::size_t i, const TensorType& term, const Dim& fresh) {
    const TensorType step =
        spilled(i).type().value_or(without_iterations(remove_chunk_dim(attrs_, term)));
    const Ref<ResidualSource> steps(&spilled(i));
    if (attrs_.stacks[i].is_list) return make_residual(step.as_list(), steps, 0);
    Dims dims{stack_dim(i, fresh)};
    dims.insert(dims.end(), step.dims().begin(), step.dims().end());
    return make_residual(step.with(dims), steps, 0);
  }

  FinishedEntries& finished() {
    if (!finished_) finished_.emplace(attrs_, input_types());
    return *finished_;
  }
  std::vector<TensorType> input_types() const {
    std::vector<TensorType> types;
    for (const OpInput& input : args_.in) types.push_back(input.tensor->type());
    return types;
  }
  TensorType without_iterations(const TensorType& type) {
    return type_without_iterations(attrs_, input_types(), type);
  }

  void finish() {
    Tensors& out = *args_.decided;
    out.assign(result_count(attrs_), Tensor());
    const auto results = results_of(attrs_, out);
    const auto formals = body_outputs(attrs_);
    const Dim fresh = attrs_.trips.makes_dim ? iterations_.made_dim() : Dim(0);
    std::copy(state_.begin(), state_.end(), results.carries.begin());
    for (std::size_t i = 0; i < results.stacks.size(); ++i)
      results.stacks[i] = finished_stack(i, body_.types[formals.stacks[i]], fresh);
    for (std::size_t i = 0; i < results.sums.size(); ++i) {
      const TensorType& type = body_.types[formals.sums[i]];
      Tensor sum = sums_[i].take();
      if (!sum.is_defined())
        sum =
            type.is_list() ? empty_list(without_iterations(type)) : zeros(without_iterations(type));
      results.sums[i] = std::move(sum);
    }
    const std::int64_t ran = is_chunked_ ? chunks_.steps : iterations_.count();
    results.trips = scalar(checked_i32(ran, "loop", "the number of iterations"), i32);
    if (results.lengths) *results.lengths = iterations_.reached();
    if (results.token) *results.token = iterations_.token(fresh);
  }

  /// term: type of the stack's term in the body. fresh: the dim that the loop makes.
  Tensor finished_stack(std::size_t i, const TensorType& term, const Dim& fresh) {
    const LoopStack& stack = attrs_.stacks[i];
    if (const Ref<ResidualSource> kept = lists_[i].in_file())
      return make_residual(without_iterations(term).as_list(), kept, 0);
    if (stack.is_in_file() && !stack.is_checkpoint()) return spilled_value(i, term, fresh);
    if (stack.is_list) {
      const Tensors& elements = lists_[i].elements();
      const TensorType element = element_of_stack(attrs_, i, term);
      return make_list(elements.empty() ? without_iterations(element) : common_type(elements),
                       elements);
    }
    const Dim dim = stack_dim(i, fresh);
    // If iterations end before the dim does, the remaining positions are zero.
    if (!stacks_[i].is_empty()) return stacks_[i].finish(dim);
    Dims dims{dim};
    const TensorType element = without_iterations(remove_chunk_dim(attrs_, term));
    dims.insert(dims.end(), element.dims().begin(), element.dims().end());
    return zeros(element.with(dims));
  }
  /// Returns the dim of a stack behind the loop.
  Dim stack_dim(std::size_t i, const Dim& fresh) const {
    const Dim& dim = attrs_.trips.makes_dim ? fresh : attrs_.stacks[i].dim;
    return dim.has_size() ? dim : Dim(iterations_.count());
  }

  std::optional<Dim> dim_known_before(const LoopStack& stack) const {
    if (stack.is_list || attrs_.trips.makes_dim || !stack.dim.has_size()) return {};
    return stack.dim;
  }

  KernelArgs& args_;
  const LoopAttrs& attrs_;
  const bool is_chunked_ = attrs_.chunking.over_chunks;
  const Graph& body_;
  Iterations iterations_;
  Chunks chunks_;    ///< of a chunked loop
  Dims chunk_dims_;  ///< by chunk
  Tensors state_, body_captures_, cond_captures_;
  std::vector<Tensors> slices_;
  std::vector<const ResidualValue*> residuals_;  ///< by slice; null if all of it is in memory
  std::vector<std::size_t> own_dims_;            ///< slices with dims made by iterations
  std::vector<std::pair<Dim, Dim>> dims_made_twice_;
  std::vector<StackList> lists_;
  CheckpointTimes times_{attrs_};
  Spills spills_;
  std::vector<Ref<Spilled>> spilled_;  ///< by stack; null if it is not spilled
  std::vector<StackWriter> stacks_;
  std::vector<TermSum> sums_;
  std::optional<FinishedEntries> finished_;
};

}  // namespace

Tensors interpret(const GraphRef& graph, Tensors&& inputs, const RunOptions&) {
  // The inputs stay alive until the run is done: they go back to the caller if it fails.
  ModeScope plain({});
  DimEnv env;
  if (thread_mode.nan_checks)
    return replay(*graph, inputs, env);  // no op left the loop it was written in
  std::shared_ptr<const Optimised> form;
  {
    const std::lock_guard lock(graph->interpreted.mutex);
    if (!graph->interpreted.value)
      graph->interpreted.value = std::make_shared<Optimised>(optimise_for_interpreter(*graph));
    form = std::static_pointer_cast<const Optimised>(graph->interpreted.value);
  }
  Tensors given(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(graph->formal_count));
  for (const int i : form->kept_captures)
    given.push_back(inputs[graph->formal_count + static_cast<std::size_t>(i)]);
  return replay(*form->graph, given, env);
}

void run_loop(KernelArgs& args) { LoopRun(args).run(); }

void run_cond(KernelArgs& args) {
  const CondAttrs& attrs = args.attr<CondAttrs>();
  const bool taken = *args.input(0).data<bool>();
  const SubGraph& branch = taken ? attrs.on_true : attrs.on_false;
  Tensors inputs;
  for (const int capture : taken ? attrs.true_captures : attrs.false_captures)
    inputs.push_back(args.input(1 + capture));
  DimEnv env = branch.env();
  *args.decided = replay(*branch.graph, inputs, env);
}

}  // namespace reel
