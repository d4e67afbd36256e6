#include "reel/frontend/signals/mel.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/frontend/signals/along.h"

namespace reel {
namespace {

// Slaney's scale: 200/3 Hz are one mel up to 1000 Hz; from there, 27 mel are a factor of 6.4.
constexpr double kHertzOfMel = 200. / 3, kBend = 1000, kMelOfBend = kBend / kHertzOfMel;
const double kLogStep = std::log(6.4) / 27;

double mel_of(double hertz, MelScale scale) {
  if (scale == MelScale::htk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < kBend ? hertz / kHertzOfMel : kMelOfBend + std::log(hertz / kBend) / kLogStep;
}
double hertz_of(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < kMelOfBend ? mel * kHertzOfMel : kBend * std::exp(kLogStep * (mel - kMelOfBend));
}

void check_dim(std::string_view name, const Dim& dim) {
  if (!dim.has_size() || dim.is_ragged() || dim.raw_size() < 1)
    throw ArgumentError(str(name, ": needs a dim of one known size above 0, got ", dim));
}

/// Throws ArgumentError if x has named dims and the dim of its result is a plain size, or the other
/// way round.
void check_kind(std::string_view name, std::string_view role, const Dim& dim, const TensorType& x) {
  if (dim.is_named() == x.is_named()) return;
  throw ArgumentError(str(
      name, ": ", role, " is ", dim, x.is_named() ? ", a plain size" : ", a named dim", ", but x ",
      x,
      x.is_named() ? str(" has named dims; give it a name, as in Dim(\"", role, "\", ", dim, ')')
                   : str(" has plain ones; give the size, ", dim.size())));
}

}  // namespace

Tensor mel_filters(const Dim& frequency, const Dim& mel, const MelOptions& options) {
  check_dim("mel_filters", frequency);
  check_dim("mel_filters", mel);
  const double high = options.high == 0 ? options.rate / 2 : options.high;
  if (!(options.low >= 0 && options.low < high && high <= options.rate / 2))
    throw ArgumentError(str("mel_filters: low ", options.low, " and high ", high,
                            " must be between 0 and half of the rate ", options.rate));
  if (options.dtype != f32 && options.dtype != f64)
    throw DTypeError(str("mel_filters: dtype is ", options.dtype, "; give f32 or f64"));
  const std::int64_t bins = frequency.size(), count = mel.size();
  const double first = mel_of(options.low, options.scale), last = mel_of(high, options.scale);
  std::vector<double> edges;
  for (std::int64_t m = 0; m < count + 2; ++m)
    edges.push_back(
        hertz_of(first + (last - first) * static_cast<double>(m) / static_cast<double>(count + 1),
                 options.scale));
  std::vector<double> values;
  for (std::int64_t k = 0; k < bins; ++k) {
    const double hertz = options.rate / 2 * static_cast<double>(k) /
                         static_cast<double>(std::max<std::int64_t>(bins - 1, 1));
    for (std::size_t m = 0; m < static_cast<std::size_t>(count); ++m) {
      const double rising = (hertz - edges[m]) / (edges[m + 1] - edges[m]),
                   falling = (edges[m + 2] - hertz) / (edges[m + 2] - edges[m + 1]);
      const double top = options.has_unit_area ? 2 / (edges[m + 2] - edges[m]) : 1;
      values.push_back(top * std::max(0., std::min(rising, falling)));
    }
  }
  return cast(tensor(values, Dims{frequency, mel}, f64), options.dtype);
}

Tensor log_mel(const Tensor& x, const Axis& time, const Dim& mel, const LogMelOptions& options) {
  const int axis = time.in(x, "log_mel");
  check_dim("log_mel", mel);
  check_kind("log_mel", "mel", mel, x.type());
  const Tensor energy = squared_abs(stft(x, axis, options.stft));
  MelOptions filters = options.mel;
  filters.dtype = energy.dtype();
  const Tensor sums = detail::product_along(
      energy, axis + 1, mel_filters(dim_at(energy.type(), axis + 1), mel, filters));
  return log(maximum(sums, options.floor));
}

Tensor mfcc(const Tensor& x, const Axis& mel, const Dim& coefficient) {
  const int axis = mel.in(x, "mfcc");
  const Dim features = dim_at(x.type(), axis);
  check_dim("mfcc", features);
  check_dim("mfcc", coefficient);
  check_kind("mfcc", "coefficient", coefficient, x.type());
  const std::int64_t count = features.size();
  if (coefficient.size() > count)
    throw ArgumentError(str("mfcc: ", coefficient, " are more coefficients than the features ",
                            features, " of x ", x.type()));
  const double to_decibel = 10 / std::numbers::ln10;
  std::vector<double> values;
  for (std::int64_t m = 0; m < count; ++m)
    for (std::int64_t k = 0; k < coefficient.size(); ++k)
      values.push_back(to_decibel * std::sqrt((k == 0 ? 1. : 2.) / static_cast<double>(count)) *
                       std::cos(std::numbers::pi * static_cast<double>(k) *
                                (static_cast<double>(m) + 0.5) / static_cast<double>(count)));
  return detail::product_along(x, axis,
                               cast(tensor(values, Dims{features, coefficient}, f64), x.dtype()));
}

}  // namespace reel
