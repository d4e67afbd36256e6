// error: ::Adam(Net&, double)
#include "reel/reel.h"

using namespace reel;

struct Net {
  Tensor w;
};
void run(Net net) { Adam<Net> wrong(net, 0.01); }
