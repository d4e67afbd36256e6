// error: functions given to loops, branches and transformations return their results
#include "reel/reel.h"

using namespace reel;

auto run() {
  return switch_case(
      0, [] {}, [] {});
}
