// trace/executors/dataflow/frames.h — FrameRun and Iteration, the state of a run's frames.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "reel/core/dims/dim_env.h"
#include "reel/core/types/tensor.h"
#include "reel/trace/executors/dataflow/token_plan.h"

namespace reel {

struct FrameRun;

/// The dims that symbols of a scope stand for in one iteration. Lock `mutex` to access `dims`.
struct ScopeDims {
  std::mutex mutex;
  DimEnv dims;
};

/// One iteration of a frame: the inputs that have arrived at its nodes.
struct Iteration {
  FrameRun* frame;
  std::int64_t number = 0;
  std::vector<Tensor> slots;
  std::vector<std::uint32_t> waits;                 ///< by node: inputs still missing
  std::vector<std::uint8_t> state;                  ///< by node: kDead, kFired
  std::vector<std::unique_ptr<FrameRun>> children;  ///< by frame inside this one
  std::unique_ptr<ScopeDims[]> scopes;
  int outstanding = 0;  ///< nodes that are ready or run
  int child_count = 0;

  static constexpr std::uint8_t kDead = 1;   ///< an input is dead
  static constexpr std::uint8_t kFired = 2;  ///< of a Merge: it has fired
};

/// One execution of a frame.
struct FrameRun {
  const TokenPlan::Frame* plan;
  int index;                                          ///< of the frame in the plan
  int instance = 0;                                   ///< in the record of the run
  Iteration* outer = nullptr;                         ///< iteration of the frame around
  std::deque<std::unique_ptr<Iteration>> iterations;  ///< in flight, oldest first
  std::int64_t oldest = 0;
  int pending_enters = 0;
  Tensor begin;  ///< the handle of its loop's `begin` node, once it has arrived

  struct Token {
    int node;
    Tensor value;
    bool is_dead = false;
  };
  std::vector<Token> constants;     ///< of constant Enters, for every iteration
  bool has_dead_constants = false;  ///< the frame then has one iteration, which does nothing
  std::vector<Token> parked;        ///< of NextIterations, for an iteration that may not begin yet
  std::vector<int> dead_exits;      ///< of the newest iteration
  std::vector<std::unique_ptr<Iteration>> spare;  ///< finished iterations, for reuse

  /// Returns true if all values that every iteration reads have arrived, and are live.
  bool is_settled() const { return !pending_enters && !has_dead_constants; }
  std::int64_t newest() const { return oldest + std::ssize(iterations) - 1; }
};

}  // namespace reel
