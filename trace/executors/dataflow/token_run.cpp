// The threads of a run and how they execute nodes; tokens.cpp moves the tokens.
#include "reel/trace/executors/dataflow/token_run.h"

#include <chrono>
#include <mutex>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/core/types/mode.h"
#include "reel/trace/executors/dataflow/loop_tokens.h"

namespace reel {

std::atomic<bool> every_op_takes_long = false;

TokenRun::TokenRun(const TokenPlan& plan, int parallel_iterations, RunRecorder* recorder)
    : plan_(plan),
      parallel_iterations_(parallel_iterations),
      recorder_(recorder),
      stop_(cancellation_token()),
      nan_checks_(thread_mode.nan_checks),
      all_take_long_(every_op_takes_long),
      helpers_(
          [](void* run) {
            auto& self = *static_cast<TokenRun*>(run);
            self.work(false);
          },
          this) {}

Tensors TokenRun::run(const Tensors& inputs) {
  const ModeScope plain({});
  start(inputs);
  work(true);
  if (wants_helpers_) {
    leads_ = true;
    helpers_.lead([](void* run) { static_cast<TokenRun*>(run)->work(true); });
  }
  if (is_cancelled_) throw_cancelled(error_);
  if (broken_) std::rethrow_exception(broken_);
  if (error_) std::rethrow_exception(error_);
  for (std::size_t i = 0; i < results_.size(); ++i)
    if (result_states_[i] != kLive)
      throw ArgumentError(
          str("output ", i, " of the graph, ",
              plan_.graph->nodes[static_cast<std::size_t>(plan_.graph->outputs[i].node)].name,
              result_states_[i] == kDead ? ", is dead: it is in a branch that was not taken"
                                         : ", was not computed: one of its inputs never arrives"));
  return std::move(results_);
}

void TokenRun::start(const Tensors& inputs) {
  const LoweredGraph& graph = *plan_.graph;
  if (recorder_) start_time_ = recorder_->begin(now(), parallel_iterations_);
  root_.plan = &plan_.frames[0];
  root_.index = 0;
  if (recorder_) root_.instance = recorder_->enter({});
  results_.resize(graph.outputs.size());
  result_states_.resize(graph.outputs.size(), kMissing);
  Iteration& all = begin_iteration(root_);
  if (!graph.scopes.empty() && graph.scopes[0].graph && all.scopes)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Graph& source = *graph.scopes[0].graph;
      all.scopes[0].dims.bind(source.types[source.inputs[i]], inputs[i].type());
    }
  for (const int node : plan_.first_ready) make_ready(all, node, false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int node = graph.inputs[i].node;
    if (node < 0) continue;
    if (recorder_) {
      const std::int64_t time = now();
      recorder_->note(activation({&all, node, false, -1}, time, time, 0));
    }
    send(all, node, 0, inputs[i], false);
  }
}

std::int64_t TokenRun::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
             .count() -
         start_time_;
}

Activation TokenRun::activation(const Ready& ready, std::int64_t begin, std::int64_t end,
                                int thread) {
  return {ready.node,
          ready.iteration->frame->instance,
          ready.iteration->number,
          ready.is_dead,
          ready.taken,
          begin,
          end,
          thread};
}

/// The loop of each thread, the caller's and helpers'; ends when nothing is left. If memory for
/// bookkeeping runs out, the whole run ends: threads finish their current ops and begin no others.
void TokenRun::work(bool is_caller) noexcept {
  std::unique_lock lock(monitor_);
  const int thread = is_caller ? 0 : number_of_helper();
  try {
    const CancellationScope scope(stop_);  // for loops that are one node, on helpers too
    const detail::NanCheckScope checks(nan_checks_);
    take_turns(is_caller, thread, lock);
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (!broken_) broken_ = std::current_exception();
    drop_queues();
    monitor_.notify();
    while (is_caller && running_) wait(true);
  }
  if (is_caller) return;
  --called_;
  numbers_in_use_ &= ~(std::uint64_t{1} << (thread % kNumbers));
}

/// Returns the smallest number that no helper has. Helpers beyond kNumbers share one; only records
/// show it.
int TokenRun::number_of_helper() {
  int number = 1;
  while (number < kNumbers - 1 && numbers_in_use_ >> number & 1) ++number;
  numbers_in_use_ |= std::uint64_t{1} << number;
  return number;
}

void TokenRun::drop_queues() {
  forwarding_.clear();
  short_.clear();
  long_.clear();
}

void TokenRun::take_turns(bool is_caller, int thread, std::unique_lock<Monitor>& lock) {
  for (;;) {
    fire_forwarding(thread);
    if (stop_.stop_requested()) is_cancelled_ = true;
    if (is_cancelled_ || broken_) drop_queues();
    if (!leads_ && helpers_.most() > 0 && long_.size() + !short_.empty() > 1) {
      wants_helpers_ = true;
      return;
    }
    Ready ready;
    if (!take(ready)) {
      if (!forwarding_.empty()) {  // let other threads report finished ops
        lock.unlock();
        lock.lock();
        continue;
      }
      if (!running_) {
        monitor_.notify();
        return;
      }
      if (!wait(is_caller)) return;
      continue;
    }
    Tensors outputs(plan_.nodes[static_cast<std::size_t>(ready.node)].is->outputs.size());
    ++running_;
    call_helpers();
    lock.unlock();
    const bool is_timed = recorder_ || cost(ready).is_measured();
    const std::int64_t begin = is_timed ? now() : 0;
    const std::exception_ptr error = compute(ready, outputs);
    const std::int64_t end = is_timed ? now() : 0;
    if (is_timed) cost(ready).add(end - begin);
    lock.lock();
    --running_;
    const Activation at = activation(ready, begin, end, thread);
    if (error) {
      fail(at, ready, error);
      continue;
    }
    if (recorder_) recorder_->note(at);
    complete(ready, outputs);
  }
}

/// Wakes or calls another thread if an op that takes long is waiting.
void TokenRun::call_helpers() {
  if (long_.empty() || !leads_) return;
  if (waiting_) return monitor_.notify();
  if (called_ < helpers_.most() && helpers_.call()) ++called_;
}

/// Waits until another thread notifies. Returns false if a helper was not notified in time and may
/// return.
bool TokenRun::wait(bool is_caller) {
  ++waiting_;
  bool goes_on = true;
  if (is_caller)
    monitor_.wait();
  else
    goes_on = monitor_.spin_wait();
  --waiting_;
  return goes_on;
}

NodeCost& TokenRun::cost(const Ready& ready) const {
  return plan_.costs[static_cast<std::size_t>(ready.node)];
}

/// Takes short ops first, as others may wait for their results. But every 1,024th turn is for a
/// long op, as an endless loop always has a short one.
bool TokenRun::take(Ready& ready) {
  constexpr std::uint32_t kShortInARow = 1024;
  const bool is_turn_of_long = ++turns_ % kShortInARow == 0;
  for (std::deque<Ready>* queue : {is_turn_of_long ? &long_ : &short_, &long_, &short_})
    while (!queue->empty()) {
      ready = queue->front();
      queue->pop_front();
      if (may_run(ready)) return true;
    }
  return false;
}

bool TokenRun::takes_long(const Ready& ready) const {
  if (all_take_long_) return true;
  if (cost(ready).is_known()) return cost(ready).takes_long();
  const TokenPlan::Node& node = plan_.nodes[static_cast<std::size_t>(ready.node)];
  if (node.is->role != LoweredRole::record) return false;
  if (node.is->op->kernel_decides_types) return true;
  constexpr std::int64_t kMany = 4096;
  std::int64_t elements = 0;
  for (std::size_t k = 0; k < node.is->inputs.size(); ++k) {
    const Tensor& input = ready.iteration->slots[static_cast<std::size_t>(node.first_slot) + k];
    if (input.is_defined() && !input.type().is_list()) elements += input.type().numel();
  }
  return elements > kMany;
}

ScopeDims* TokenRun::dims_of(const Ready& ready) const {
  const int scope = plan_.nodes[static_cast<std::size_t>(ready.node)].scope;
  return scope < 0 || !ready.iteration->scopes ? nullptr : &ready.iteration->scopes[scope];
}

std::exception_ptr TokenRun::compute(const Ready& ready, Tensors& outputs) try {
  const TokenPlan::Node& node = plan_.nodes[static_cast<std::size_t>(ready.node)];
  const LoweredNode& is = *node.is;
  const std::span<Tensor> inputs(ready.iteration->slots.data() + node.first_slot, is.inputs.size());
  const TokenPlan::Frame& frame = *ready.iteration->frame->plan;
  const auto is_held = [&](std::size_t k) -> bool {
    return node.has_held && frame.is_held[static_cast<std::size_t>(node.first_slot) + k];
  };
  ScopeDims* const dims = dims_of(ready);
  AttrsRef attrs = is.attrs;
  const bool reads_attrs = is.role == LoweredRole::record || is.role == LoweredRole::begin ||
                           is.role == LoweredRole::bindings;
  if (node.resolves && reads_attrs && dims) {
    const std::lock_guard lock(dims->mutex);
    attrs = attrs->resolve(dims->dims);
  }
  switch (is.role) {
    case LoweredRole::record: {
      const SourceScope from_there(
          is.graph ? is.graph->records[static_cast<std::size_t>(is.record)].source : kNoSource);
      std::vector<OpInput> in;
      in.reserve(inputs.size());
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        in.emplace_back(inputs[k]);
        in.back().temporary = !is_held(k);  // no other node reads this slot
      }
      if (outputs.size() == 1)
        outputs[0] = reel::bind(*is.op, OpInputs(in), std::move(attrs));
      else
        outputs = bind_all(*is.op, OpInputs(in), std::move(attrs));
      break;
    }
    case LoweredRole::identity:
      outputs[0] = is_held(0) ? inputs[0] : std::move(inputs[0]);
      break;
    case LoweredRole::open: {
      DimEnv given = dims_of_handle(inputs[0], is.index);
      const std::lock_guard lock(dims->mutex);
      for (const Dim& symbol :
           plan_.graph->scopes[static_cast<std::size_t>(is.scope)].graph->schedule().free_symbols)
        if (given.knows(symbol)) dims->dims.bind(symbol, given.resolve(symbol));
      break;
    }
    default:
      run_loop_node(is, attrs, inputs, outputs);
  }
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (!is_held(k)) inputs[k] = Tensor();
  if (!node.tells_dims || !dims) return {};
  const std::lock_guard lock(dims->mutex);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const LoweredOutput& output = is.outputs[k];
    if (!output.type || !(output.binds || output.has_known_dims)) continue;
    if (output.binds || !output.type->is_list()) dims->dims.bind(*output.type, outputs[k].type());
    if (output.has_known_dims)
      outputs[k] = with_known_dims(std::move(outputs[k]), *output.type, dims->dims);
  }
  return {};
} catch (...) {
  return std::current_exception();
}

void TokenRun::fail(Activation at, const Ready& ready, std::exception_ptr error) {
  at.has_failed = true;
  const bool is_first = may_run(ready);
  if (recorder_) {
    if (is_first) recorder_->fail(at);
    recorder_->note(at);
  }
  if (!is_first) return;
  try {
    std::rethrow_exception(error);
  } catch (Error& of_caller) {
    say_where(ready, of_caller);
    error_ = std::current_exception();
  } catch (...) {
    error_ = error;
  }
  failed_ = ready;
}

/// Adds to the error the iterations and loops in which it happened, from the innermost outwards.
void TokenRun::say_where(const Ready& ready, Error& error) const {
  const Iteration* iteration = ready.iteration;
  int scope = plan_.nodes[static_cast<std::size_t>(ready.node)].is->scope;
  while (scope >= 0) {
    const LoweredScope& is = plan_.graph->scopes[static_cast<std::size_t>(scope)];
    while (iteration->frame->index != is.frame) iteration = iteration->frame->outer;
    if (is.ahead) {
      const FrameRun& frame = *iteration->frame;
      error.add_line(str("in iteration ",
                         iteration_number(frame.begin, iteration->number + *is.ahead), " of ",
                         plan_.graph->frames[static_cast<std::size_t>(frame.index)].title));
    } else if (!is.first_of.empty()) {
      error.add_line(str("in iteration 0 of ", is.first_of));
    }
    scope = is.parent;
  }
}

/// Returns true if node `node` of iteration a comes before `other` of b in the order of the
/// program.
bool TokenRun::is_before(const Iteration* a, int node, const Iteration* b, int other) const {
  int place = plan_.nodes[static_cast<std::size_t>(node)].place,
      other_place = plan_.nodes[static_cast<std::size_t>(other)].place;
  const auto depth = [](const Iteration* of) {
    int result = 0;
    for (; of->frame->outer; of = of->frame->outer) ++result;
    return result;
  };
  const auto go_out = [](const Iteration*& of, int& at) {
    at = of->frame->plan->first_node;
    of = of->frame->outer;
  };
  int deeper = depth(a) - depth(b);
  for (; deeper > 0; --deeper) go_out(a, place);
  for (; deeper < 0; ++deeper) go_out(b, other_place);
  while (a->frame != b->frame) {
    go_out(a, place);
    go_out(b, other_place);
  }
  return a->number != b->number ? a->number < b->number : place < other_place;
}

bool TokenRun::may_run(const Ready& ready) const {
  return !failed_ || is_before(ready.iteration, ready.node, failed_->iteration, failed_->node);
}

}  // namespace reel
