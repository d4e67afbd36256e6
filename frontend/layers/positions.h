// frontend/layers/positions.h — encodings of positions: sinusoids, rotary embeddings, ALiBi.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns sines and cosines of positions: element 2i along `feature` is sin(p / 10000^(2i/n)),
/// element 2i + 1 the cosine of the same angle, for n features.
///
/// positions: integers or floats, [...] -> [..., feature]. A Dim stands for range(dim). Throws
/// ArgumentError if the size of `feature` is not known; DTypeError for a dtype that is not
/// floating. Source: Vaswani et al. (2017), section 3.5.
Tensor sinusoidal_positions(const Tensor& positions, const Dim& feature, DType dtype = f32);
Tensor sinusoidal_positions(const Dim& positions, const Dim& feature, DType dtype = f32);

/// Returns x with its features rotated by angles that grow with the position: products of two
/// rotated vectors depend on the difference of their positions.
///
/// With n features, feature i and feature i + n/2 are rotated by p / base^(2i/n), as in GPT-NeoX
/// and LLaMA. x: [..., feature]. positions: integers over some dims of x. Throws ShapeError if x
/// lacks a dim of these or of `feature`; ArgumentError if the size of `feature` is odd or not
/// known. Source: Su et al. (2021), eq. 34.
Tensor rotary(const Tensor& x, const Dim& feature, const Tensor& positions, double base = 10000);

/// Returns the slope of each head, for biases -slope · distance: 2^(-8 (h + 1) / n) for head h of n
/// heads if n is a power of two. Otherwise the slopes for p heads come first, where p is the
/// largest power of two below n, then every other slope for 2p heads. Throws ArgumentError if the
/// size is not known. Source: Press, Smith & Lewis (2022), section 3, and its published code.
Tensor alibi_slopes(const Dim& heads, DType dtype = f32);

}  // namespace reel
REEL_API_END
