// core/ops/kernels/xsimd_neon.h — functions of xsimd for which NEON of aarch64 has exact
// instructions.
//
// xsimd 8.1 divides floats, and takes their roots, by estimates and Newton's steps: quotients are
// not rounded correctly, and the root of infinity is NaN. It rounds by way of integers or large
// numbers, and leaves the fusion of fnma to the compiler. These are specialisations of xsimd's
// own functions, so that its exp, log and others use them. They are inlined always: no function of
// xsimd with another meaning remains for a program that uses xsimd itself.
#pragma once

#include <arm_neon.h>

#include <xsimd/xsimd.hpp>

namespace xsimd::kernel {

using Floats = batch<float, neon64>;
using Doubles = batch<double, neon64>;

template <>
[[gnu::always_inline]] inline Floats div<neon64>(const Floats& a, const Floats& b,
                                                 requires_arch<neon>) noexcept {
  return vdivq_f32(a, b);
}
template <>
[[gnu::always_inline]] inline Floats sqrt<neon64>(const Floats& x, requires_arch<neon>) noexcept {
  return vsqrtq_f32(x);
}

template <>
[[gnu::always_inline]] inline Floats fnma<neon64, float>(const Floats& x, const Floats& y,
                                                         const Floats& z,
                                                         requires_arch<generic>) noexcept {
  return vfmsq_f32(z, x, y);
}
template <>
[[gnu::always_inline]] inline Doubles fnma<neon64, double>(const Doubles& x, const Doubles& y,
                                                           const Doubles& z,
                                                           requires_arch<generic>) noexcept {
  return vfmsq_f64(z, x, y);
}

template <>
[[gnu::always_inline]] inline Floats trunc<neon64>(const Floats& x,
                                                   requires_arch<generic>) noexcept {
  return vrndq_f32(x);
}
template <>
[[gnu::always_inline]] inline Doubles trunc<neon64>(const Doubles& x,
                                                    requires_arch<generic>) noexcept {
  return vrndq_f64(x);
}
template <>
[[gnu::always_inline]] inline Floats nearbyint<neon64>(const Floats& x,
                                                       requires_arch<generic>) noexcept {
  return vrndnq_f32(x);
}
template <>
[[gnu::always_inline]] inline Doubles nearbyint<neon64>(const Doubles& x,
                                                        requires_arch<generic>) noexcept {
  return vrndnq_f64(x);
}
template <>
[[gnu::always_inline]] inline Floats floor<neon64, float>(const Floats& x,
                                                          requires_arch<generic>) noexcept {
  return vrndmq_f32(x);
}
template <>
[[gnu::always_inline]] inline Doubles floor<neon64, double>(const Doubles& x,
                                                            requires_arch<generic>) noexcept {
  return vrndmq_f64(x);
}
template <>
[[gnu::always_inline]] inline Floats ceil<neon64, float>(const Floats& x,
                                                         requires_arch<generic>) noexcept {
  return vrndpq_f32(x);
}
template <>
[[gnu::always_inline]] inline Doubles ceil<neon64, double>(const Doubles& x,
                                                           requires_arch<generic>) noexcept {
  return vrndpq_f64(x);
}

}  // namespace xsimd::kernel
