// frontend/files/broken_pipe_scope.h — BrokenPipeScope, for writing to a pipe that may be closed.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace reel {

/// Blocks SIGPIPE on this thread during its lifetime: writing to a closed pipe fails with EPIPE and
/// does not end the program. A signal that was pending before stays pending.
class BrokenPipeScope {
 public:
  BrokenPipeScope() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~BrokenPipeScope() {
    const timespec at_once{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipeScope(const BrokenPipeScope&) = delete;
  BrokenPipeScope& operator=(const BrokenPipeScope&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

}  // namespace reel
