// Runs the tests on each rank. `mpirun -n 3 distributed_tests` is green if it is on all ranks.
#include <optional>

#include "world_of_tests.h"

namespace {
std::optional<reel::World> the_world;
}

const reel::World& reel::world() { return *the_world; }

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  the_world.emplace(reel::WorldOptions{.timeout = std::chrono::minutes(10)});
  const int failed = RUN_ALL_TESTS();
  the_world.reset();
  return failed;
}
