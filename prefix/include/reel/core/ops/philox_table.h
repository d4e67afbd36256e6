// core/ops/philox_table.h — PhiloxTable, many draws of philox.h at once as one instruction set
// gives them.
//
// Read by philox_isa.cpp, which is compiled for several processors: includes nothing that could
// leave a shared inline function compiled for the newest of them.
#pragma once

#include <cstdint>

namespace reel {

/// So many counters are worked on together.
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
