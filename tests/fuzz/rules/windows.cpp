// Rules for convolutions and pools along an axis, with windows that keep its dim, for Fourier
// transforms, and for signals in frames.
#include "reel/core/functions/activations.h"
#include "reel/core/functions/convolutions.h"
#include "reel/core/functions/transforms.h"
#include "reel/frontend/signals/frames.h"
#include "reel/frontend/signals/stft.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// Operand a, and an axis along which no lengths run, with the dims of its own lengths.
bool along_alone(Drafter& d, Instruction& in) {
  if (!along(real)(d, in)) return false;
  const std::vector<int>& dims = d.type(in.inputs[0]).dims;
  if (d.is_named() && !is_subset(d.dim(in.axes[0]).over, dims)) return false;
  return dims_running_over(d.program(), dims, in.axes[0]).empty() &&
         (d.is_named() || d.dim(dims[in.axes[0]]).has_size());
}
bool along_named(Drafter& d, Instruction& in) { return d.is_named() && along_alone(d, in); }
/// Operand a, and an axis of one size with elements.
bool along_lines(Drafter& d, Instruction& in) {
  if (!along_alone(d, in)) return false;
  const DimInfo& dim = d.dim(d.dim_at(in.inputs[0], in.axes[0]));
  return !dim.is_ragged() && dim.has_size() && dim.size > 0;
}
bool along_plain(Drafter& d, Instruction& in) { return !d.is_named() && along_alone(d, in); }

}  // namespace

Rules window_rules() {
  return {
      expression(REEL_EXPRESSION(
                     max_pool(a, axes, {.size = 3, .stride = 1, .padding = WindowPadding::same})),
                 4, along_alone),
      expression(
          REEL_EXPRESSION(mean_pool(
              a, axes, {.size = 2, .stride = 1, .dilation = 2, .padding = WindowPadding::causal})),
          4, along_alone),
      expression(REEL_EXPRESSION([&] {
                   const Dim taps("taps", 3);
                   const Tensor filter = tensor({0.5, -1.0, 0.25}, {taps}, real);
                   return conv(tanh(a), filter * sin(mean(tanh(a))), axes,
                               {.taps = {taps}, .padding = WindowPadding::same});
                 }()),
                 5, along_named),
      expression(REEL_EXPRESSION(conv(sin(a), cast(tensor({0.5, -1.0}), real) * cos(mean(tanh(a))),
                                      axes, {.dilation = 2, .padding = WindowPadding::causal})),
                 4, along_plain),
      expression(
          REEL_EXPRESSION(conv(conv(tanh(a), cast(tensor({1.0, -0.5}), real), axes,
                                    {.stride = 2, .padding = WindowPadding::causal}),
                               cast(tensor({1.0, -0.5}), real), axes,
                               {.stride = 2,
                                .padding = WindowPadding::causal,
                                .transposed = true,
                                .to = {a.dims()[static_cast<std::size_t>(axis.in(a, "conv"))]}})),
          4, along_plain),
      expression(REEL_EXPRESSION([&] {
                   const int at = axis.in(a, "rfft");
                   const Dim line = a.dims()[static_cast<std::size_t>(at)];
                   const Complex spectrum = rfft(tanh(a), at);
                   return irfft(spectrum * conj(spectrum) + cos(mean(tanh(a))), at, line);
                 }()),
                 4, along_lines),
      expression(REEL_EXPRESSION([&] {
                   const Complex line = ifft(fft(Complex{sin(a), 1.5 + tanh(a)}, axis) * 0.5, axis);
                   return squared_abs(line) + abs(line);
                 }()),
                 4, along_lines),
      expression(REEL_EXPRESSION([&] {
                   const int at = axis.in(a, "frame");
                   const Dim time = a.dims()[static_cast<std::size_t>(at)];
                   const Dim window = time.is_named() ? Dim("window", 3) : Dim(3);
                   const Tensor frames = frame(tanh(a), at, window, 2, WindowPadding(1, 2));
                   return overlap_add(sin(frames) * cos(mean(tanh(a))), at, 2, time, 1);
                 }()),
                 5, along_alone),
      expression(REEL_EXPRESSION([&] {
                   const int at = axis.in(a, "stft");
                   const Dim time = a.dims()[static_cast<std::size_t>(at)];
                   const Complex spectra = stft(tanh(a), at, {.size = 4, .hop = 2});
                   return istft(spectra * cos(mean(tanh(a))), at, time, {.size = 4, .hop = 2});
                 }()),
                 3, along_alone),
      expression(REEL_EXPRESSION([&] {
                   const int at = axis.in(a, "glu");
                   const Tensor both = concat({sin(a), a}, at);
                   return glu(both, at, a.dims()[static_cast<std::size_t>(at)]);
                 }()),
                 4, along_alone),
  };
}

}  // namespace reel::fuzz
