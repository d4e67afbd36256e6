// core/random.h — the hierarchy of keys from which random numbers are drawn.
#pragma once

#include <atomic>
#include <cstdint>

#include "reel/core/fwd.h"
#include "reel/core/tensor.h"

namespace reel {

/// Where random numbers of the running code come from.
///
/// A scope has a key; its draws, loops and conds take its numbers 0, 1, ... in program order. The
/// outermost scope of eager mode is the stream that manual_seed starts. A loop is a scope of its
/// own, whose key folds in the iteration; a branch of cond folds in which one it is. So a number
/// depends on where in the program it is drawn, and on nothing else: not on the mode, the order of
/// execution, or whether it is drawn again to recompute something.
class RandomScope {
 public:
  /// The outermost scope of a trace: `stream` (i64[2]: key, first number) comes in when the graph
  /// runs.
  explicit RandomScope(const Tensor& stream);
  /// A loop's or a branch's: takes the next number of the scope around it, and gives it back when
  /// an exception ends it.
  RandomScope();
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

  /// A loop's iteration (or a cond's branch), before its body runs. part: 0 for a body, 1 for the
  /// cond of a loop.
  void begin(std::int64_t iteration, int part = 0);
  void begin(const Tensor& iteration, int part = 0);

  /// How many numbers were taken.
  std::int64_t taken() const { return taken_; }

 private:
  friend struct RandomDraw;
  friend Tensor current_random_stream();
  friend void advance_random_stream(std::int64_t);
  friend class RandomParts;
  Tensor key();

  RandomScope* outer_;
  GraphBuilder* builder_;
  std::int64_t number_ = -1;  // of this scope in the one around it; -1 for the outermost
  int exceptions_;
  std::int64_t taken_ = 0;
  std::int64_t iteration_ = 0;
  int part_ = 0;
  Tensor traced_iteration_;
  Tensor key_;
};

/// The streams of parts that run in any order and on any threads. They are like the iterations of a
/// loop: their keys fold in a number of the caller's scope (in a trace, of the eager scope around
/// it) and the part's index. The number is taken when any of the parts has drawn.
class RandomParts {
 public:
  RandomParts();
  ~RandomParts();
  RandomParts(const RandomParts&) = delete;
  RandomParts& operator=(const RandomParts&) = delete;

  /// While it lives, this thread draws from the stream of one part; its own goes on afterwards.
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

/// What one draw needs: the key of the active scope (i64[2]) and the number it takes there.
struct RandomDraw {
  Tensor key;
  std::int64_t number;
  static RandomDraw take();
};

/// For a call of a traced function: the active scope as a stream, and the numbers that the call
/// took from it.
Tensor current_random_stream();
void advance_random_stream(std::int64_t numbers);

}  // namespace reel
