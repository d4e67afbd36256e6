// distributed/distributed_error.h — DistributedError, thrown if ranks do not work together.
#pragma once

#include "reel/core/base/errors.h"
#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Ranks called different collectives, or a rank did not call one within the time limit. The
/// message has one line for each rank: its call, with the line of the program.
class DistributedError : public Error {
 public:
  using Error::Error;
};

}  // namespace reel
REEL_API_END
