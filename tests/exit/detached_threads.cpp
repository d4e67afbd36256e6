// Threads that still use the library when main() returns do not crash the process. Exits with 0 if
// several such processes end without a crash.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "reel/tests/exit/work.h"

namespace {

constexpr int kProcesses = 8, kThreads = 3;

std::atomic<int> rounds{0};  // of all threads together

/// Destroyed at the end of the process, while threads still work.
struct GlobalModel {
  reel::Tensor weight;
  ~GlobalModel() {
    if (weight.is_defined() && reel::sum(weight * 2.f).item<float>() != 8.f) std::_Exit(9);
  }
} model;

/// Returns from main() while threads are in the middle of their work.
int run_process(int number) {
  model.weight = reel::ones({4});
  for (int i = 0; i < kThreads; ++i)
    std::thread([] {
      const reel::Work work;
      for (;; ++rounds)
        if (!work.has_same_values()) std::_Exit(10);
    }).detach();
  while (rounds < kThreads + number) std::this_thread::yield();  // another moment in each process
  return 0;
}

}  // namespace

int main() {
  for (int number = 0; number < kProcesses; ++number) {
    const pid_t child = fork();
    if (child == 0) return run_process(number);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      std::fprintf(stderr, "process %d ended with status %d\n", number, status);
      return 1;
    }
  }
  return 0;
}
