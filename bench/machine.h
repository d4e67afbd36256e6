// bench/machine.h — describes the machine of a benchmark.
#pragma once

#include <string>
#include <vector>

namespace reel::bench {

/// Returns a line each on the processor, the speed-up by a second thread, and Reel with its
/// compiler, kernels and matrix library. Takes 0.6 seconds.
std::vector<std::string> describe_machine();

}  // namespace reel::bench
