// core/functions/transforms.h — Fourier transforms along an axis.
#pragma once

#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/complex.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

// f32 and f64, of any size: n log n operations, also for prime sizes. Other axes may be ragged:
// each line along the axis is transformed alone. Gradients of any order.
//
// All throw DTypeError unless the parts are floating and of one dtype. They throw ShapeError if the
// axis is ragged, has no elements, or has lengths of a ragged dim that run over it; in a trace also
// for a plain axis whose size only a run knows. A signal with entries of different lengths is
// transformed in frames of one size (stft).

/// Returns the spectrum of a real signal: X[k] = Σ x[j] · e^(-2πi jk/n), for k from 0 to n / 2
/// (integer division). The other frequencies are conjugates of these.
///
/// x: any -> the same dims with n / 2 + 1 frequencies along the axis. A named axis becomes `to`;
/// default: the dim along / 2 + 1. Throws ShapeError if `to` has another size.
Complex rfft(const Tensor& x, const Axis& along, std::optional<Dim> to = {});
/// Returns the real signal with this spectrum, the inverse of rfft: divided by n. Imaginary parts
/// of frequency 0, and of n / 2 for even n, are ignored.
///
/// to: the axis of n elements, named if x's dims are; default: an even n, (along - 1) * 2.
/// Throws ShapeError unless the axis has n / 2 + 1 frequencies.
Tensor irfft(const Complex& x, const Axis& along, std::optional<Dim> to = {});

/// Return the discrete Fourier transform X[k] = Σ x[j] · e^(-2πi jk/n), and its inverse, x[j] =
/// (1/n) Σ X[k] · e^(2πi jk/n). Any dims -> the same.
Complex fft(const Complex& x, const Axis& along);
Complex ifft(const Complex& x, const Axis& along);

}  // namespace reel
REEL_API_END
