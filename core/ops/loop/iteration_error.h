// core/ops/loop/iteration_error.h — in_iteration, which names the iteration in errors of a loop.
#pragma once

#include <cstdint>
#include <string>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel {

/// Runs fn, a part of a loop. An Error that it throws gets a line naming the iteration and the
/// loop; while recording, code runs as the first iteration.
template <class Fn>
auto in_iteration(std::int64_t iteration, const std::string& loop, Fn&& fn) {
  try {
    return fn();
  } catch (Error& error) {
    error.add_line(str("in iteration ", iteration, " of ", loop));
    throw;
  }
}

}  // namespace reel
