// core/ops/kernels/vector_parts_isa.h — loads and stores of part of a vector, for instruction sets
// without masked ones.
#pragma once

#include "reel/core/ops/kernels/vector_base_isa.h"

namespace reel::REEL_ISA {
namespace {

template <class T>
inline Vector<T> load_part(const T* from, std::int64_t count) {
  alignas(16) T padded[kLanes<T>] = {};
  for (std::int64_t i = 0; i < count; ++i) padded[i] = from[i];
  return Vector<T>::load_aligned(padded);
}
template <class T>
inline void store_part(T* to, Vector<T> values, std::int64_t count) {
  alignas(16) T padded[kLanes<T>];
  values.store_aligned(padded);
  for (std::int64_t i = 0; i < count; ++i) to[i] = padded[i];
}

template <class T>
inline Vector<T> load_part_or(const T* from, std::int64_t count, Vector<T> rest) {
  alignas(16) T lanes[kLanes<T>];
  rest.store_aligned(lanes);
  for (std::int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return Vector<T>::load_aligned(lanes);
}

template <class T>
inline Vector<T> load_repeated(const T* from, std::int64_t count) {
  alignas(16) T padded[kLanes<T>];
  for (std::int64_t i = 0; i < kLanes<T>; ++i) padded[i] = from[i < count ? i : 0];
  return Vector<T>::load_aligned(padded);
}

}  // namespace
}  // namespace reel::REEL_ISA
