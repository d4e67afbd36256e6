// tests/threads.h — Threads, which sets the number of threads for a scope.
#pragma once

#include "reel/core/runtime/parallel.h"

namespace reel {

/// Sets the number of threads, and restores the former number when destroyed.
class Threads {
 public:
  explicit Threads(int count) : before_(threads()) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace reel
