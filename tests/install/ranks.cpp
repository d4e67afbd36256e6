// A program that uses the installed reel::distributed.
#include <reel/distributed.h>
#include <reel/reel.h>

int main() {
  const reel::World world;
  const float ranks = world.all_reduce(reel::scalar(1.f)).item<float>();
  return ranks == static_cast<float>(world.size()) ? 0 : 1;
}
