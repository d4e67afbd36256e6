// tests/many_threads.h — OnManyThreads, runs by tokens in which threads meet.
#pragma once

#include "reel/tests/threads.h"
#include "reel/trace/executors/dataflow/token_run.h"

namespace reel {

/// While it lives, three threads share what the dataflow executor runs, the smallest ops too: by
/// itself it calls another one for ops of ten microseconds, which tests hardly have.
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
