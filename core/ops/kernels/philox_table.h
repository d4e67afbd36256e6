// core/ops/kernels/philox_table.h — PhiloxTable, computes many draws of philox.h at once, per
// instruction set.
//
// Included by philox_isa.cpp, which is compiled for several processors. Must not include headers
// with shared inline functions: the linker might keep one compiled for the newest processor.
#pragma once

#include <cstdint>

namespace reel {

/// Number of counters that are computed together.
inline constexpr int kPhiloxBlock = 64;

struct PhiloxTable {
  /// words[w][i] is word w of philox(key, high, low[i]).
  void (*block)(std::uint64_t key, std::uint64_t high, const std::uint64_t* low,
                std::uint32_t (*words)[kPhiloxBlock]);
};

namespace sse42 {
extern const PhiloxTable philox_table;
}
namespace avx2 {
extern const PhiloxTable philox_table;
}
namespace avx512 {
extern const PhiloxTable philox_table;
}

}  // namespace reel
