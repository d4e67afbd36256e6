// trace/executors/dataflow/frames.h — FrameRun and Iteration, where tokens of a run wait.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "reel/core/dim_env.h"
#include "reel/core/tensor.h"
#include "reel/trace/executors/dataflow/token_plan.h"

namespace reel {

struct FrameRun;

/// What dims stand for in a scope, in one iteration.
struct ScopeDims {
  std::mutex mutex;
  DimEnv dims;
};

/// One iteration of a frame: the inputs that have come to its nodes.
struct Iteration {
  FrameRun* frame;
  std::int64_t number = 0;
  std::vector<Tensor> slots;
  std::vector<std::uint32_t> waits;                 ///< by node: for so many inputs more
  std::vector<std::uint8_t> state;                  ///< by node: kDead, kFired
  std::vector<std::unique_ptr<FrameRun>> children;  ///< by frame inside this one
  std::unique_ptr<ScopeDims[]> scopes;
  int outstanding = 0;  ///< nodes that are ready or run
  int child_count = 0;

  static constexpr std::uint8_t kDead = 1;   ///< an input is dead
  static constexpr std::uint8_t kFired = 2;  ///< of a Merge: a live input has come
};

/// One execution of a frame.
struct FrameRun {
  const TokenPlan::Frame* plan;
  int index;                                          ///< of the frame
  int instance = 0;                                   ///< in the record of the run
  Iteration* outer = nullptr;                         ///< of the frame around
  std::deque<std::unique_ptr<Iteration>> iterations;  ///< in flight, the oldest first
  std::int64_t oldest = 0;
  int pending_enters = 0;
  Tensor begin;  ///< what its loop began with, as soon as that has come

  struct Token {
    int node;
    Tensor value;
    bool is_dead = false;
  };
  std::vector<Token> constants;     ///< of Enters: for every iteration
  bool has_dead_constants = false;  ///< then it has one iteration, which does nothing
  std::vector<Token> parked;        ///< of NextIterations: for an iteration that may not begin yet
  std::vector<int> dead_exits;      ///< of the newest iteration
  std::vector<std::unique_ptr<Iteration>> spare;  ///< that were done with, to be used again

  /// All that every iteration finds has come.
  bool is_settled() const { return !pending_enters && !has_dead_constants; }
  std::int64_t newest() const { return oldest + std::ssize(iterations) - 1; }
};

}  // namespace reel
