#include "reel/core/ops/products/one_thread.h"

#include <dlfcn.h>

namespace reel {
namespace {

int one() { return 1; }
void ignore(int) {}

/// Two functions of the OpenMP runtime that oneDNN has loaded. They are looked up, not linked:
/// CMake's FindOpenMP finds the runtime of the compiler, which for clang is not oneDNN's.
struct OpenMp {
  int (*max_threads)() = one;
  void (*set_threads)(int) = ignore;

  OpenMp() {
    void* const max = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    void* const set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (!max || !set) return;
    max_threads = reinterpret_cast<int (*)()>(max);
    set_threads = reinterpret_cast<void (*)(int)>(set);
  }
};
const OpenMp& openmp() {
  static const OpenMp found;
  return found;
}

}  // namespace

OneThread::OneThread() : before_(openmp().max_threads()) {
  if (before_ != 1) openmp().set_threads(1);
}
OneThread::~OneThread() {
  if (before_ != 1) openmp().set_threads(before_);
}

}  // namespace reel
