// trace/executors/plan/rates.h — Rates, how fast this machine is.
#pragma once

#include <string>

namespace reel {

/// What one thread does in a second, on values that lie in its caches; measured once per process,
/// in some milliseconds.
struct Rates {
  double flops;     ///< of a product of 16 rows by 256·256 in f32
  double bytes;     ///< read and written by a copy
  double elements;  ///< of sigmoid in f32
  double call;      ///< seconds of a kernel on one element
};
const Rates& machine_rates();

}  // namespace reel
