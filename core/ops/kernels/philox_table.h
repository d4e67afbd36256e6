// core/ops/kernels/philox_table.h — PhiloxTable, computes many draws of philox.h at once, per
// instruction set.
//
// Included by philox_isa.cpp, which is compiled for several processors. Must not include headers
// with shared inline functions: the linker might keep one compiled for the newest processor.
#pragma once

#include <cstdint>

#include "reel/core/runtime/isa_list.h"

namespace reel {

/// Number of counters that are computed together.
inline constexpr int kPhiloxBlock = 64;

/// Sets words[w][i] to word w of philox(key, high, low[i]).
using PhiloxBlock = void (*)(std::uint64_t key, std::uint64_t high, const std::uint64_t* low,
                             std::uint32_t (*words)[kPhiloxBlock]);

/// Sets out[i], for i < count <= kPhiloxBlock, to a number in [low, high) that draw i gives; span
/// is high - low.
template <class T>
using UniformBlock = void (*)(const std::uint32_t (*words)[kPhiloxBlock], T low, T span, T high,
                              T* out, std::int64_t count);

struct PhiloxTable {
  PhiloxBlock block;        ///< all four words
  PhiloxBlock one_word;     ///< the first word only, for uniform_f32
  PhiloxBlock two_words;    ///< the first two, for uniform_f64
  PhiloxBlock three_words;  ///< the first three, for normal_f32
  UniformBlock<float> uniform_f32;
  UniformBlock<double> uniform_f64;
  /// Sets out[i], for i < count <= kPhiloxBlock, to a normal number that draw i gives.
  void (*normal_f32)(const std::uint32_t (*words)[kPhiloxBlock], float* out, std::int64_t count);
};

REEL_DECLARE_TABLES(PhiloxTable, philox_table)

}  // namespace reel
