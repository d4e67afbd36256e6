// core/runtime/random.h — RandomScope, the hierarchy of keys for random numbers.
#pragma once

#include <atomic>
#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/types/fwd.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// The source of random numbers for the running code.
///
/// Each scope has a key. Its draws, loops and conds take the scope's numbers 0, 1, ... in program
/// order. The outermost eager scope is the stream that manual_seed() starts. A loop has its own
/// scope, and its key folds in the iteration; the key of a branch folds in the branch. Ensures: a
/// random number depends only on its place in the program. Neither the mode, nor the order of
/// execution, nor a recomputation changes it.
class RandomScope {
 public:
  /// Opens the outermost scope of a trace. stream: an input of the graph, i64[2]: key, first
  /// number.
  explicit RandomScope(const Tensor& stream);
  /// Opens the scope of a loop or branch. Takes the next number of the outer scope; the destructor
  /// gives it back if an exception ends the scope.
  RandomScope();
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

  /// Begins an iteration of a loop, or a branch of a cond. Must be called before the body runs.
  /// part: 0 for a body, 1 for a loop's condition.
  void begin(std::int64_t iteration, int part = 0);
  void begin(const Tensor& iteration, int part = 0);

  /// Returns how many numbers were taken.
  std::int64_t taken() const { return taken_; }

 private:
  friend struct RandomDraw;
  friend Tensor current_random_stream();
  friend void advance_random_stream(std::int64_t);
  friend class RandomParts;
  friend class SeededStream;
  Tensor key();

  RandomScope* outer_;
  GraphBuilder* builder_;
  std::int64_t number_ = -1;  // this scope's number in the outer scope; -1 for the outermost
  int exceptions_;
  std::int64_t taken_ = 0;
  std::int64_t iteration_ = 0;
  int part_ = 0;
  Tensor traced_iteration_;
  Tensor key_;
};

/// The streams of parts that run in any order and on any threads. Like iterations of a loop, their
/// keys fold in a number of the caller's scope and the part's index; in a trace the number comes
/// from the eager scope around it. The number is taken if any part draws.
class RandomParts {
 public:
  RandomParts();
  ~RandomParts();
  RandomParts(const RandomParts&) = delete;
  RandomParts& operator=(const RandomParts&) = delete;

  /// Makes this thread draw from the stream of one part. The destructor restores the thread's
  /// stream.
  class Part {
   public:
    Part(RandomParts& parts, int index);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    RandomParts& parts_;
    RandomScope* scope_;
    std::uint64_t seed_;
    std::int64_t taken_;
  };

 private:
  RandomScope* scope_;  // the caller's; null: its thread's stream
  std::int64_t key_ = 0;
  std::atomic<bool> has_drawn_{false};
};

/// Makes this thread draw from the stream of a seed. The destructor restores the thread's stream.
class SeededStream {
 public:
  explicit SeededStream(std::uint64_t seed);
  ~SeededStream();
  SeededStream(const SeededStream&) = delete;
  SeededStream& operator=(const SeededStream&) = delete;

 private:
  RandomScope* scope_;
  std::uint64_t seed_;
  std::int64_t taken_;
};

/// The inputs of one draw: the key of the active scope (i64[2]) and the number that it takes there.
struct RandomDraw {
  Tensor key;
  /// Takes the next number of the active scope.
  std::int64_t number;
  static RandomDraw take();
};

/// Return the active scope as a stream for a call of a traced function, and advance it by the
/// numbers that the call took.
Tensor current_random_stream();
void advance_random_stream(std::int64_t numbers);

}  // namespace reel
REEL_API_END
