// trace/executors/plan/base/rates.h — Rates: the speed of this machine.
#pragma once

#include <string>

namespace reel {

/// Rates of one thread per second, for values in its caches.
struct Rates {
  double flops;     ///< floating-point operations of a product of 16 rows by 256·256 in f32
  double bytes;     ///< bytes read and written by a copy
  double elements;  ///< elements of sigmoid in f32
  double call;      ///< seconds of a kernel call on one element
};
/// Returns the rates. The first call in a process measures them, in some milliseconds.
const Rates& machine_rates();

}  // namespace reel
