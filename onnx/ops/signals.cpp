// Fourier transforms, windows of signals, and filters of frequencies.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/core/functions/transforms.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/ops/convert.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
constexpr std::int64_t kMaxSamples = 1 << 24;  // of a transform
constexpr std::int64_t kMaxWeights = 1 << 14;  // on each side of a matrix
constexpr double kMaxEdge = 0x1p40;            // position of a triangle's edge

/// Returns a matrix with values fn(row, column), as a constant.
template <class Fn>
Tensor matrix(std::int64_t rows, std::int64_t columns, DType dtype, Fn fn) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) values.push_back(fn(i, j));
  const ModeScope aside({});
  return cast(tensor(values, Dims{rows, columns}), dtype);
}

// ---- Windows ----------------------------------------------------------------------------------

/// Returns a - b cos(t) + c cos(2t) for t over one turn.
Values window(const Call& call, double a, double b, double c) {
  const std::int64_t size = call.known_integer(0);
  if (size < 0 || size > std::int64_t{1} << 30) call.refuse(str("the size is ", size));
  check_bytes(call.node(), 8. * static_cast<double>(size));
  const std::int64_t steps =
      std::max<std::int64_t>(call.flag("periodic", true) ? size : size - 1, 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < size; ++i) {
    const double t = kTurn * static_cast<double>(i) / static_cast<double>(steps);
    values.push_back(a - b * std::cos(t) + c * std::cos(2 * t));
  }
  const auto type = static_cast<ElementType>(call.integer("output_datatype", 1));
  return {Value::of(converted(tensor(values), ElementType::float64, type), type)};
}
Values run_hann(const Call& call) { return window(call, 0.5, 0.5, 0); }
Values run_hamming(const Call& call) { return window(call, 25. / 46, 21. / 46, 0); }
Values run_blackman(const Call& call) { return window(call, 0.42, 0.5, 0.08); }

// ---- Transforms -------------------------------------------------------------------------------

/// Splits the last axis, which has a real part and perhaps an imaginary one. im: empty for real
/// numbers.
Complex parts_of(const Call& call, const Tensor& x) {
  const std::int64_t count = x.dim(-1).size();
  if (count != 1 && count != 2)
    call.refuse(str("the last axis of ", x.type(), " has 1 or 2 elements"));
  const auto part = [&](int i) { return gather(x, scalar(i), x.rank() - 1); };
  return {part(0), count == 2 ? part(1) : Tensor()};
}

void check_samples(const Call& call, std::int64_t size) {
  if (size < 1 || size > kMaxSamples)
    call.refuse(str("transforms 1 to ", kMaxSamples, " samples, got ", size));
}

Tensor joined(const Complex& x) { return stack({x.re, x.im}, x.re.rank()); }

/// Returns the parts in f64, as the reference implementation transforms f32 too: its zeros are then
/// zeros here. im: zeros if there is none.
Complex wide(const Complex& x) {
  return {cast(x.re, f64), x.im.is_defined() ? cast(x.im, f64) : zeros_like(cast(x.re, f64))};
}

/// Returns the transform along the last axis, with `bins` frequencies, as [..., bins, 2].
Tensor transformed(const Call& call, const Complex& x, std::int64_t bins, bool is_inverse) {
  const std::int64_t size = x.re.dim(-1).size();
  check_samples(call, size);
  Complex y;
  if (!x.im.is_defined() && !is_inverse && bins == size / 2 + 1)
    y = rfft(cast(x.re, f64), -1);
  else
    y = is_inverse ? ifft(wide(x), -1) : fft(wide(x), -1);
  if (y.re.dim(-1).size() != bins) y = {slice(y.re, -1, 0, bins), slice(y.im, -1, 0, bins)};
  return cast(joined(y), x.re.dtype());
}

Tensor with_size(const Tensor& x, int axis, std::int64_t size) {
  const std::int64_t there = x.dim(axis).size();
  return there >= size ? slice(x, axis, 0, size) : pad(x, axis, 0, size - there);
}

/// Returns the real signal of `size` samples. Its first frequencies are given along the last axis;
/// the others are their complex conjugates.
Tensor real_signal(const Call& call, const Complex& x, std::int64_t size) {
  check_samples(call, size);
  const Tensor signal = cast(irfft(wide(x), -1, Dim(size)), x.re.dtype());
  return stack({signal}, signal.rank());
}

/// The axis is an attribute; from version 20 on an input.
Values run_dft(const Call& call) {
  Tensor x = call.tensor(0);
  if (x.rank() < 2) call.refuse(str("takes two axes and more, got ", x.type()));
  const bool is_inverse = call.flag("inverse", false), is_one_sided = call.flag("onesided", false);
  const int axis = call.version() < 20
                       ? call.axis(1)
                       : call.axis_in(call.has(2) ? call.known_integer(2) : -2, x.rank());
  if (axis == x.rank() - 1) call.refuse("the last axis has the parts of complex numbers");
  const bool is_real = is_inverse && is_one_sided;  // the result
  std::int64_t size = x.dim(axis).size();
  if (call.has(1))
    size = call.known_integer(1);
  else if (is_real)
    size = std::max<std::int64_t>(2 * (size - 1), 1);
  check_samples(call, size);
  x = with_size(x, axis, is_real ? size / 2 + 1 : size);
  std::vector<Axis> to_end, back;
  for (int i = 0; i + 1 < x.rank(); ++i)
    if (i != axis) to_end.emplace_back(i);
  to_end.emplace_back(axis);
  for (int i = 0; i + 1 < x.rank(); ++i)
    back.emplace_back(i < axis ? i : i == axis ? x.rank() - 2 : i - 1);
  back.emplace_back(x.rank() - 1);
  Complex parts = parts_of(call, x);
  parts.re = transpose(parts.re, Axes(to_end));
  if (parts.im.is_defined()) parts.im = transpose(parts.im, Axes(to_end));
  const Tensor y = is_real
                       ? real_signal(call, parts, size)
                       : transformed(call, parts, is_one_sided ? size / 2 + 1 : size, is_inverse);
  return {call.like(0, transpose(y, Axes(back)))};
}

Values run_stft(const Call& call) {
  const Tensor& x = call.tensor(0);
  if (x.rank() != 3) call.refuse(str("takes [batch, time, 1 or 2], got ", x.type()));
  const std::int64_t step = call.known_integer(1);
  const std::int64_t length = call.has(3) ? call.known_integer(3) : call.tensor(2).dim(0).size();
  const std::int64_t time = x.dim(1).size();
  if (step < 1 || length < 1 || length > time) call.refuse("the frames do not fit the signal");
  std::vector<std::int64_t> positions;
  const std::int64_t frames = (time - length) / step + 1;
  check_bytes(call.node(), 8. * static_cast<double>(frames) * static_cast<double>(length));
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t i = 0; i < length; ++i) positions.push_back(f * step + i);
  const Tensor at = tensor(positions, Dims{frames, length});
  Complex parts = parts_of(call, x);
  for (Tensor* part : {&parts.re, &parts.im}) {
    if (!part->is_defined()) continue;
    *part = gather(*part, at, 1);
    if (call.has(2)) *part = *part * call.tensor(2);
  }
  return {call.like(
      0, transformed(call, parts, call.flag("onesided", true) ? length / 2 + 1 : length, false))};
}

/// Returns triangles over the frequencies of a transform, evenly spaced on the mel scale.
Values run_mel_weights(const Call& call) {
  const std::int64_t bins = call.known_integer(0), length = call.known_integer(1),
                     rate = call.known_integer(2);
  const std::int64_t rows = length / 2 + 1;
  if (bins < 0 || length < 0 || rate < 1 || bins > kMaxWeights || length > kMaxWeights)
    call.refuse("sizes are not negative, and the rate is positive");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(call.known_numbers(3).at(0)), high = mel(call.known_numbers(4).at(0));
  const double width = (high - low) / static_cast<double>(bins + 2);
  std::vector<std::int64_t> edges;
  for (std::int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + width * static_cast<double>(i)) / 2595) - 1);
    const double edge =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(std::abs(edge) <= kMaxEdge)) call.refuse(str("an edge of a triangle is ", edge));
    edges.push_back(static_cast<std::int64_t>(edge));
  }
  const Tensor weights = matrix(rows, bins, f64, [&](std::int64_t row, std::int64_t bin) {
    const std::int64_t begin = edges[bin], centre = edges[bin + 1], end = edges[bin + 2];
    if (row == centre && (begin == centre || end > centre)) return 1.;
    if (begin <= row && row <= centre && begin < centre)
      return static_cast<double>(row - begin) / static_cast<double>(centre - begin);
    if (centre <= row && row < end)
      return static_cast<double>(end - row) / static_cast<double>(end - centre);
    return 0.;
  });
  const auto type = static_cast<ElementType>(call.integer("output_datatype", 1));
  return {Value::of(converted(weights, ElementType::float64, type), type)};
}

const Rule kRules[] = {
    with_numbers({0}, {"BlackmanWindow", run_blackman, "", 17}),
    with_numbers({1, 2}, {"DFT", run_dft, "", 17}),
    with_numbers({0}, {"HammingWindow", run_hamming, "", 17}),
    with_numbers({0}, {"HannWindow", run_hann, "", 17}),
    with_numbers({0, 1, 2, 3, 4}, {"MelWeightMatrix", run_mel_weights, "", 17}),
    with_numbers({1, 3}, {"STFT", run_stft, "", 17}),
};

}  // namespace

std::span<const Rule> signal_rules() { return kRules; }

}  // namespace reel::imported
