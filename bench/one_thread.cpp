#include "harness.h"
#include "libtorch.h"
#include "reel/reel.h"

namespace reel::bench {

void start_on_one_thread() {
  set_threads(1);
  if (!libtorch()) return note("libtorch: not in this build, so nothing is compared with it");
  libtorch()->set_threads(1);
  note(libtorch()->describe());
}

}  // namespace reel::bench
