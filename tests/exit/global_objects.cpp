// The library works in destructors of global and thread_local objects, after its per-thread state
// is gone. Exits with 0 if the values there equal the values in main().
#include <cstdlib>
#include <memory>
#include <thread>

#include "reel/tests/exit/work.h"

namespace {

/// Repeats its work when it is destroyed.
struct AtTheEnd {
  std::unique_ptr<const reel::Work> work;
  reel::Tensor kept;
  ~AtTheEnd() {
    if (!work) return;
    if (!work->has_same_values()) std::_Exit(9);
    if (kept.to_vector<float>() != std::vector<float>{2, 3}) std::_Exit(10);
  }
  void begin() {
    work = std::make_unique<const reel::Work>();
    kept = reel::tensor({1., 2.}) + 1.f;
  }
};

AtTheEnd global;                       // destroyed after everything that main() made
thread_local AtTheEnd of_each_thread;  // made before the thread's first tensor

}  // namespace

int main() {
  of_each_thread.begin();
  std::thread([] { of_each_thread.begin(); }).join();
  global.begin();
  static AtTheEnd made_late;
  made_late.begin();
  return 0;
}
