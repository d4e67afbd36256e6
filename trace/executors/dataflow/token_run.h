// trace/executors/dataflow/token_run.h — TokenRun, one run of a lowered graph.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>

#include "reel/core/base/errors.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/runtime/helpers.h"
#include "reel/trace/executors/dataflow/frames.h"
#include "reel/trace/executors/dataflow/run_recorder.h"
#include "reel/trace/executors/loop/monitor.h"

namespace reel {

/// For tests of multi-threaded runs: while it is set, every op counts as one that takes long, so
/// that even small ops go to other threads.
extern std::atomic<bool> every_op_takes_long;

/// Runs a lowered graph once. A node fires when its inputs have arrived; a dead input makes it
/// dead.
///
/// The rules follow TensorFlow's executor. The inputs of an iteration's nodes are in its Iteration.
/// A NextIteration begins the next iteration unless parallel_iterations are in flight; then it is
/// parked. Iterations end in order, when no node of theirs is outstanding. A dead NextIteration
/// goes nowhere, which ends a loop. Exits that were dead in the last iteration, as in a branch that
/// is not taken, are dead outside.
///
/// Threads: one mutex guards all bookkeeping. Ops run outside of it, on the calling thread and on
/// Helpers, which are called for ops that take long (NodeCost). Nodes that only pass on tokens are
/// fired under the mutex, without a task.
///
/// Errors: run() throws the error that comes first in the order of the program. Nodes behind a
/// failed node, in later iterations too, do not begin any more; nodes before it continue.
class TokenRun {
 public:
  /// parallel_iterations: iterations in flight of every loop; 0: each loop's own limit.
  /// recorder: may be null. Borrows `plan` and `recorder`, which must outlive it.
  TokenRun(const TokenPlan& plan, int parallel_iterations, RunRecorder* recorder);

  /// Returns the graph's outputs. Must be called once.   inputs: of the graph; the caller keeps
  /// them alive.
  /// Throws the first error of an op, CancelledError, or ArgumentError if an output is dead or
  /// never computed.
  Tensors run(const Tensors& inputs);

 private:
  /// A node with all its inputs.
  struct Ready {
    Iteration* iteration;
    int node;
    bool is_dead;
    int taken;  ///< of a Merge, the input that arrived
  };
  static constexpr std::uint8_t kMissing = 0, kLive = 1, kDead = 2;  ///< of results

  // token_run.cpp: the workers
  void start(const Tensors& inputs);
  void work(bool is_caller) noexcept;
  void take_turns(bool is_caller, int thread, std::unique_lock<Monitor>& lock);
  int number_of_helper();
  void drop_queues();
  bool wait(bool is_caller);
  void call_helpers();
  bool take(Ready& ready);
  std::exception_ptr compute(const Ready& ready, Tensors& outputs);
  void fail(Activation at, const Ready& ready, std::exception_ptr error);
  void say_where(const Ready& ready, Error& error) const;
  bool is_before(const Iteration* a, int node, const Iteration* b, int other) const;
  bool may_run(const Ready& ready) const;
  ScopeDims* dims_of(const Ready& ready) const;
  NodeCost& cost(const Ready& ready) const;
  bool takes_long(const Ready& ready) const;
  std::int64_t now() const;
  static Activation activation(const Ready& ready, std::int64_t begin, std::int64_t end,
                               int thread);

  // tokens.cpp: how tokens travel, under the mutex
  void make_ready(Iteration& iteration, int node, bool is_dead, int taken = -1);
  void deliver(Iteration& to, const TokenPlan::Edge& edge, const Tensor& value, bool is_dead);
  void send(Iteration& to, int node, int port, const Tensor& value, bool is_dead);
  void send_all(Iteration& to, int node, bool is_dead);
  void complete(const Ready& ready, std::span<Tensor> outputs);
  void fire_forwarding(int thread);
  std::exception_ptr forward(Ready& ready);
  FrameRun& frame_entered(Iteration& outer, int frame);
  void enter(Iteration& outer, int node, Tensor value, bool is_dead);
  void next(Iteration& from, int node, const Tensor& value);
  int bound_of(const FrameRun& frame) const;
  Iteration& begin_iteration(FrameRun& frame);
  void hold_constants(Iteration& iteration);
  void replay_constants(Iteration& iteration);
  bool is_done(const Iteration& iteration) const;
  void clean_up(Iteration& iteration);
  void end_frame(FrameRun& frame);

  const TokenPlan& plan_;
  const int parallel_iterations_;
  RunRecorder* const recorder_;
  const std::stop_token stop_;
  const DetectNanOptions* const nan_checks_;  ///< of the calling thread
  const bool all_take_long_;
  std::int64_t start_time_ = 0;

  Monitor monitor_;
  FrameRun root_;
  Tensors results_;
  std::vector<std::uint8_t> result_states_;
  std::deque<Ready> forwarding_;    ///< fired under the mutex
  std::deque<Ready> short_, long_;  ///< ops, by the time that they take
  std::uint32_t turns_ = 0;         ///< number of calls of take()
  int running_ = 0, waiting_ = 0;   ///< running ops; waiting threads
  int called_ = 0;                  ///< helpers that have not returned
  static constexpr int kNumbers = 64;
  std::uint64_t numbers_in_use_ = 0;  ///< bits: numbers of helpers that have not returned
  bool leads_ = false;                ///< helpers can be called
  bool wants_helpers_ = false;
  bool is_cancelled_ = false;
  std::optional<Ready> failed_;  ///< the first in the order of the program
  std::exception_ptr error_;
  std::exception_ptr broken_;  ///< the error that ended the bookkeeping, if one did
  Helpers helpers_;
};

}  // namespace reel
