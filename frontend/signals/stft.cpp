#include "reel/frontend/signals/stft.h"

#include <optional>
#include <string_view>

#include "reel/core/base/str.h"
#include "reel/core/functions/transforms.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/frontend/signals/frames.h"
#include "reel/frontend/signals/windows.h"

namespace reel {
namespace {

constexpr double kLeastWeight = 1e-11;  // of squared windows, as in torch.istft

std::int64_t hop_of(const StftOptions& options) {
  return options.hop == 0 ? options.size / 4 : options.hop;
}

void check_options(std::string_view name, const StftOptions& options) {
  if (options.size < 1 || hop_of(options) < 1)
    throw ArgumentError(
        str(name, ": size ", options.size, " and hop ", hop_of(options), " must be positive"));
}

WindowPadding padding_of_frames(const StftOptions& options) {
  const std::int64_t half = options.is_centred ? options.size / 2 : 0;
  return {half, half};
}

Dim sample_dim(bool is_named, std::int64_t size) {
  return is_named ? Dim("sample", size) : Dim(size);
}

/// Returns the weights over `samples`, in shape to be multiplied with axis `axis` of a tensor of
/// this rank.
Tensor weights_of(std::string_view name, const StftOptions& options, const Dim& samples,
                  DType dtype, int axis, int rank) {
  Tensor w;
  if (!options.window.is_defined()) {
    w = hann_window(samples, {.dtype = dtype});
  } else {
    w = options.window;
    if (w.dtype() != dtype)
      throw DTypeError(
          str(name, ": the window ", w.type(), " has another dtype than x, ", dtype, "; cast it"));
    if (w.rank() != 1 || w.dims()[0].size() > options.size)
      throw ArgumentError(str(name, ": the window is ", w.type(), "; it has one axis of at most ",
                              options.size, " elements"));
    const std::int64_t missing = options.size - w.dims()[0].size(), before = missing / 2;
    w = reshape(w, {w.dims()[0].size()});
    w = reshape(pad(w, 0, before, missing - before), Dims{samples});
  }
  if (samples.is_named()) return w;
  Dims dims(static_cast<std::size_t>(rank - axis), Dim(1));
  dims[0] = samples;
  return reshape(w, dims);
}

}  // namespace

Dim stft_frames(const Dim& time, const StftOptions& options) {
  check_options("stft_frames", options);
  return detail::frames_of(time, options.size, hop_of(options), padding_of_frames(options));
}

Complex stft(const Tensor& x, const Axis& time, const StftOptions& options) {
  check_options("stft", options);
  const int axis = time.in(x, "stft");
  if (!is_float(x.dtype()))
    throw DTypeError(str("stft: x must be f32 or f64, got ", x.type(), "; cast it"));
  const bool is_named = x.type().is_named();
  const Dim samples = sample_dim(is_named, options.size);
  const Tensor frames = frame(x, axis, samples, hop_of(options), padding_of_frames(options));
  const Tensor weighted =
      frames * weights_of("stft", options, samples, x.dtype(), axis + 1, frames.rank());
  return rfft(
      weighted, axis + 1,
      is_named ? std::optional(options.frequency.is_named() ? options.frequency : Dim("frequency"))
               : std::nullopt);
}

Tensor istft(const Complex& x, const Axis& frames, const Dim& time, const StftOptions& options) {
  check_options("istft", options);
  const int axis = frames.in(x.re, "istft");
  if (axis + 1 >= x.re.rank())
    throw ShapeError(str("istft: x ", x.re.type(), " has no frequencies behind the frames"));
  const Dim& frequency = dim_at(x.re.type(), axis + 1);
  if (frequency.has_size() && frequency.size() != options.size / 2 + 1)
    throw ShapeError(str("istft: x ", x.re.type(), " has ", frequency.size(),
                         " frequencies behind the frames, but a transform of size ", options.size,
                         " has ", options.size / 2 + 1, "; pass the options that stft had"));
  const bool is_named = x.re.type().is_named();
  const Dim samples = sample_dim(is_named, options.size),
            dim = canonical(dim_at(x.re.type(), axis));
  const std::int64_t hop = hop_of(options), before = padding_of_frames(options).before;
  const Tensor signals = irfft(x, axis + 1, samples);
  const Tensor weights =
      weights_of("istft", options, samples, signals.dtype(), axis + 1, signals.rank());
  const Tensor sum = overlap_add(signals * weights, axis, hop, time, before);
  // The squared windows of an entry's frames.
  const Tensor flat = is_named ? weights : reshape(weights, {options.size});
  Dims dims = is_named ? dim.length_dims() : Dims{};
  dims.push_back(dim);
  dims.push_back(samples);
  Tensor norm =
      overlap_add(expand(square(flat), dims), static_cast<int>(dims.size()) - 2, hop, time, before);
  if (!is_named) {  // the axes behind time
    Dims shape(static_cast<std::size_t>(sum.rank() - axis), Dim(1));
    shape[0] = time;
    norm = reshape(norm, shape);
  }
  return sum / where(norm > kLeastWeight, norm, 1);
}

}  // namespace reel
