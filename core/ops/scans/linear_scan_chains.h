// core/ops/scans/linear_scan_chains.h — linear recurrences of single channels, several at a
// time, and over segments of time.
#pragma once

#include <cstdint>
#include <vector>

namespace reel {

/// One value per time step: `first` points at the first value of the walk, the next value is `step`
/// elements further. A step of 0 repeats one value.
template <class T>
struct ScanChainOperand {
  T* first = nullptr;  ///< null: the operand is absent
  std::int64_t step = 0;
};

/// One channel: h_k = a_k h_{k-1} + b_k x_k, with h_{-1} = initial; without x, b_k alone.
template <class T>
struct ScanChain {
  ScanChainOperand<const T> a, b, x;
  ScanChainOperand<T> h;  ///< may be the memory of a, b or x
  T initial = 0;
};

/// Computes `steps` values of h of every chain. Each chain has the bits that it has alone, on any
/// number of threads.
///
/// may_cut: true cuts chains of many steps into segments. These first compute their products of a
/// and their results from 0 (Blelloch 1990), in doubles; a segment then begins with the state that
/// these give for its predecessor. If that state would be wrong, because a product is infinite or
/// vanishes, the predecessor is walked instead.
template <class T>
void run_chains(const std::vector<ScanChain<T>>& chains, std::int64_t steps, bool may_cut);

extern template void run_chains(const std::vector<ScanChain<float>>&, std::int64_t, bool);
extern template void run_chains(const std::vector<ScanChain<double>>&, std::int64_t, bool);

}  // namespace reel
