// core/ops/kernels/each_vector.h — each_vector, a loop over the vectors of a row.
//
// For *_isa.cpp files, as vector_isa.h.
#pragma once

#include <cstdint>

#include "reel/core/ops/kernels/vector_isa.h"

namespace reel::REEL_ISA {
namespace {

/// Calls fn(i, load, store) for vectors of `width` elements. The last vector may be a part.
template <class T, class Fn>
inline void each_vector(std::int64_t width, const Fn& fn) {
  constexpr std::int64_t kStep = kLanes<T>;
  std::int64_t i = 0;
  for (; i + kStep <= width; i += kStep)
    fn(
        i, [](const T* from) { return load(from); },
        [](T* to, const Vector<T>& v) { v.store_unaligned(to); });
  if (i < width)
    fn(
        i, [&](const T* from) { return load_part(from, width - i); },
        [&](T* to, const Vector<T>& v) { store_part(to, v, width - i); });
}

}  // namespace
}  // namespace reel::REEL_ISA
