// distributed.h — includes the public header of reel::distributed: training on several machines.
#pragma once

#include "reel/distributed/world.h"
