// tests/many_threads.h — OnManyThreads, dataflow runs that use several threads.
#pragma once

#include "reel/tests/threads.h"
#include "reel/trace/executors/dataflow/token_run.h"

namespace reel {

/// During its lifetime the dataflow executor runs every op on three threads, even the smallest. By
/// default it calls another thread only for ops of ten microseconds, which tests hardly have.
class OnManyThreads {
 public:
  OnManyThreads() { every_op_takes_long = true; }
  ~OnManyThreads() { every_op_takes_long = false; }
  OnManyThreads(const OnManyThreads&) = delete;
  OnManyThreads& operator=(const OnManyThreads&) = delete;

 private:
  Threads three_{3};
};

}  // namespace reel
