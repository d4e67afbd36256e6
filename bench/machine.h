// bench/machine.h — what a benchmark ran on, in words.
#pragma once

#include <string>
#include <vector>

namespace reel::bench {

/// Processor, what a second thread is worth, and Reel with its compiler, its kernels and its
/// library for products: a line each. Takes 0.6 seconds.
std::vector<std::string> describe_machine();

}  // namespace reel::bench
