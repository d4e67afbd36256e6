// core/ops/kernels/vector_base_isa.h — Vector, by the Arch of a file's instruction set.
//
// vector_x86_64.h and vector_aarch64.h define Arch and include this file.
#pragma once

#include <cstdint>
#include <xsimd/xsimd.hpp>

namespace reel::REEL_ISA {
namespace {

template <class T>
using Vector = xsimd::batch<T, Arch>;
template <class T>
inline constexpr int kLanes = static_cast<int>(Vector<T>::size);

template <class T>
inline Vector<T> load(const T* from) {
  return Vector<T>::load_unaligned(from);
}

}  // namespace
}  // namespace reel::REEL_ISA
