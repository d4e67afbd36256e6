// The interpreter: runs a graph op by op with the eager kernels. Results have the bits of eager
// mode.
#include "reel/trace/executors/interpreter.h"

#include <algorithm>
#include <optional>
#include <variant>

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
#include "reel/trace/executors/leaves/checkpoint_stacks.h"
#include "reel/trace/executors/leaves/file_stack.h"
#include "reel/trace/executors/leaves/list_slices.h"
#include "reel/trace/executors/leaves/list_stack.h"
#include "reel/trace/executors/leaves/residual_slices.h"
#include "reel/trace/executors/leaves/tensor_stack.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/executors/loop/finished_entries.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// One run of a loop op. A plan has LoopRun instead, with buffers for the values of iterations.
class InterpretedLoop {
 public:
  explicit InterpretedLoop(KernelArgs& args)
      : args_(args),
        attrs_(args.attr<LoopAttrs>()),
        body_(*attrs_.body.graph),
        input_types_(types_of(args.in)),
        iterations_(attrs_, args.in) {
    const auto operands = operands_of(attrs_, args.in);
    if (is_chunked_) {
      chunks_ = chunks_of(attrs_, input_types_);
      iterations_.limit = chunks_.count();
      for (std::int64_t k = 0; k < chunks_.count(); ++k) chunk_dims_.push_back(chunks_.made_dim(k));
    }
    for (const OpInput& carry : operands.carries) state_.push_back(*carry.tensor);
    for (const int capture : attrs_.body_captures)
      body_captures_.push_back(*operands.captures[capture].tensor);
    for (const int capture : attrs_.cond_captures)
      cond_captures_.push_back(*operands.captures[capture].tensor);
    sums_.resize(attrs_.sums.size());
    own_dims_ = slices_with_own_dims(attrs_, input_types_);
    dims_made_twice_ = dims_made_twice(attrs_, own_dims_);
    for (std::size_t i = 0; i < operands.slices.size(); ++i) {
      const Tensor& slices = *operands.slices[i].tensor;
      residuals_.push_back(residual_value(slices));
      slices_.push_back(residuals_.back() ? Tensors() : elements_of(slices, i));
    }
    // Behind the slices: their lists may lower the number of iterations that files expect.
    for (std::size_t i = 0; i < attrs_.stacks.size(); ++i) stacks_.push_back(make_stack(i));
  }

  void run() {
    const ResidualLock reading(residuals_);
    iterations_.run([&](std::int64_t position, const Tensor& running) { step(position, running); },
                    [&] { return eval_condition(); });
    finish();
  }

 private:
  using Stack = std::variant<TensorStack, ListStack, CheckpointStack, FileStack>;

  Stack make_stack(std::size_t i) {
    const LoopStack& stack = attrs_.stacks[i];
    if (stack.is_checkpoint()) return CheckpointStack(checkpoints_, i);
    if (stack.is_in_file()) return FileStack(leaves_, i, spills_);
    if (stack.is_list) return ListStack(leaves_, i);
    return TensorStack(leaves_, i);
  }

  /// Returns the slices that iterations read, by position. index: of the slices among the loop's.
  Tensors elements_of(const Tensor& slices, std::size_t index) {
    if (slices.type().is_list()) return list_slices(leaves_, index, slices, iterations_.limit);
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
    checkpoints_.before(
        position, [&](std::size_t i) { return bytes_of(state_[i]); },
        [&](std::size_t k) { return inputs[k]; });
    if (has_finished)
      for (std::size_t i = 1; i < inputs.size(); ++i) inputs[i] = finished_->seen(inputs[i], i - 1);
    DimEnv env = has_finished ? finished_->body().env() : attrs_.body.env();
    name_alike(attrs_, own_dims_, *dims_made_twice_, inputs, env);
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
    const auto put = [&] {
      std::visit([&](auto& stack) { stack.put(std::move(term), position); }, stacks_[i]);
    };
    // Terms of a tensor may differ in their types, which the error tells.
    if (std::holds_alternative<TensorStack>(stacks_[i]) && !is_chunked_)
      in_iteration(iterations_.number(), attrs_.name, put);
    else
      put();
  }

  /// Returns a slice of residuals; in a chunked loop, the slices of a chunk.
  Tensor residual_slice(std::size_t i, std::int64_t position) const {
    const ResidualSlices slices(leaves_, *operands_of(attrs_, args_.in).slices[i].tensor);
    return is_chunked_
               ? slices.slices_of_chunk(position, chunk_dims_[static_cast<std::size_t>(position)])
               : slices.slice(position);
  }

  /// Returns the position that the body receives.
  Tensor place_of(std::int64_t position) const {
    if (is_chunked_) return tensor({chunks_.first(position), chunks_.steps}, {}, i64);
    return scalar(iterations_.step_at(position), i64);
  }
  FinishedEntries& finished() {
    if (!finished_) finished_.emplace(attrs_, input_types_);
    return *finished_;
  }
  TensorType without_iterations(const TensorType& type) {
    return type_without_iterations(attrs_, input_types_, type);
  }

  void finish() {
    Tensors& out = *args_.decided;
    out.assign(result_count(attrs_), Tensor());
    const auto results = results_of(attrs_, out);
    const auto formals = body_outputs(attrs_);
    const Dim fresh = attrs_.trips.makes_dim ? iterations_.made_dim() : Dim(0);
    std::copy(state_.begin(), state_.end(), results.carries.begin());
    for (std::size_t i = 0; i < results.stacks.size(); ++i)
      std::visit([&](auto& stack) { stack.finish(results.stacks[i], fresh); }, stacks_[i]);
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

  static std::vector<TensorType> types_of(OpInputs inputs) {
    std::vector<TensorType> types;
    for (const OpInput& input : inputs) types.push_back(input.tensor->type());
    return types;
  }

  KernelArgs& args_;
  const LoopAttrs& attrs_;
  const bool is_chunked_ = attrs_.chunking.over_chunks;
  const Graph& body_;
  const std::vector<TensorType> input_types_;
  Iterations iterations_;
  Chunks chunks_;    ///< of a chunked loop
  Dims chunk_dims_;  ///< by chunk
  const LeafContext leaves_{attrs_, input_types_, chunks_, iterations_};
  Tensors state_, body_captures_, cond_captures_;
  std::vector<Tensors> slices_;
  std::vector<const ResidualValue*> residuals_;  ///< by slice; null if all of it is in memory
  std::vector<std::size_t> own_dims_;            ///< slices with dims made by iterations
  std::optional<DimsMadeTwice> dims_made_twice_;
  Spills spills_;
  CheckpointStacks checkpoints_{leaves_, spills_};
  std::vector<Stack> stacks_;
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

void run_loop(KernelArgs& args) { InterpretedLoop(args).run(); }

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
