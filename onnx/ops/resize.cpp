// Resize and Upsample: each element of the result is a weighted sum of elements along each axis.
#include <algorithm>
#include <cmath>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

constexpr std::int64_t kMaxAxisSize = 1 << 24;
constexpr double kMaxScale = 1e9;  // and of its inverse

/// One axis that is resized.
struct ResizedAxis {
  int axis = 0;
  std::int64_t from = 0, to = 0;      ///< sizes
  double scale = 1;                   ///< as given, or of the sizes
  double roi_begin = 0, roi_end = 1;  ///< of tf_crop_and_resize
};

/// The elements that each position of the result reads, with their weights.
struct Taps {
  std::size_t count = 0;                ///< of each position
  std::vector<std::int64_t> positions;  ///< [to, count]; within the axis
  std::vector<double> weights;          ///< [to, count]
  std::vector<bool> is_outside;         ///< of each position: it reads no element at all
};

/// The options of a node.
struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool antialias = false, exclude_outside = false;
};

/// Returns the place in the input that a position of the result shows.
double source_of(const ResizeOptions& options, const ResizedAxis& at, double i) {
  const double from = static_cast<double>(at.from), width = at.scale * from;
  const std::string& mode = options.coordinates;
  if (mode == "asymmetric") return i / at.scale;
  if (mode == "align_corners") return width == 1 ? 0 : i * (from - 1) / (width - 1);
  if (mode == "tf_crop_and_resize") {
    const double extent = (at.roi_end - at.roi_begin) * (from - 1);
    return at.roi_begin * (from - 1) + (width == 1 ? extent / 2 : i * extent / (width - 1));
  }
  if (mode == "tf_half_pixel_for_nn") return (i + 0.5) / at.scale;
  const double centre = (i + 0.5) / at.scale - 0.5;
  if (mode == "pytorch_half_pixel") return width == 1 ? -0.5 : centre;
  if (mode == "half_pixel_symmetric")
    return centre + from / 2 * (1 - static_cast<double>(at.to) / width);
  return centre;
}

double nearest_of(const std::string& mode, double x) {
  if (x == std::floor(x)) return x;
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

/// Returns the weight of an element at a distance. Source: R. G. Keys, Cubic convolution
/// interpolation for digital image processing, equation (4).
double kernel_at(const ResizeOptions& options, double distance) {
  const double x = std::abs(distance), a = options.cubic;
  if (options.mode == "linear") return std::max(1 - x, 0.);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Returns the elements that are read, and their weights. When the axis becomes shorter, antialias
/// stretches the kernel.
Taps taps_of(const ResizeOptions& options, const ResizedAxis& at) {
  Taps taps;
  const bool is_nearest = options.mode == "nearest";
  const double stretch = options.antialias ? std::min(at.scale, 1.) : 1;
  const double reach = options.mode == "linear" ? 1 : 2;
  const auto before = static_cast<std::int64_t>(std::floor(-reach / stretch)) + 1;
  taps.count = is_nearest ? 1 : static_cast<std::size_t>(2 - 2 * before);
  for (std::int64_t i = 0; i < at.to; ++i) {
    const double source = source_of(options, at, static_cast<double>(i));
    taps.is_outside.push_back(options.coordinates == "tf_crop_and_resize" &&
                              (source < 0 || source > static_cast<double>(at.from - 1)));
    const auto add = [&](double position, double weight) {
      const auto p =
          static_cast<std::int64_t>(std::clamp(position, 0., static_cast<double>(at.from - 1)));
      const bool is_inside = position >= 0 && position <= static_cast<double>(at.from - 1);
      taps.positions.push_back(p);
      taps.weights.push_back(options.exclude_outside && !is_inside ? 0 : weight);
    };
    if (is_nearest) {
      taps.positions.push_back(static_cast<std::int64_t>(
          std::clamp(nearest_of(options.nearest, source), 0., static_cast<double>(at.from - 1))));
      taps.weights.push_back(1);
      continue;
    }
    // An element itself lies at the right end of its interval, with the ratio 1.
    const double left = std::ceil(source) - 1, ratio = source - left;
    double total = 0;
    for (std::size_t t = 0; t < taps.count; ++t) {
      const double offset = static_cast<double>(before) + static_cast<double>(t);
      add(left + offset, kernel_at(options, stretch * (offset - ratio)));
      total += taps.weights.back();
    }
    if ((options.antialias || options.exclude_outside) && total != 0)
      for (std::size_t t = 0; t < taps.count; ++t)
        taps.weights[taps.weights.size() - 1 - t] /= total;
  }
  return taps;
}

/// Returns numbers of each position such that they broadcast along an axis.
Tensor along(const std::vector<double>& numbers, int axis, const Tensor& x) {
  Dims dims(static_cast<std::size_t>(x.rank()), Dim(1));
  dims[static_cast<std::size_t>(axis)] = Dim(static_cast<std::int64_t>(numbers.size()));
  return tensor(numbers, dims, x.dtype());
}

/// Sums the elements of each tap, weighted.
Tensor resized_along(const Tensor& x, const ResizedAxis& at, const Taps& taps) {
  Tensor y;
  for (std::size_t t = 0; t < taps.count; ++t) {
    std::vector<std::int64_t> positions;
    std::vector<double> weights;
    for (std::size_t i = t; i < taps.positions.size(); i += taps.count) {
      positions.push_back(taps.positions[i]);
      weights.push_back(taps.weights[i]);
    }
    const Tensor elements = gather(x, tensor(positions), at.axis);
    if (taps.count == 1) return elements;
    const Tensor term = elements * along(weights, at.axis, x);
    y = t ? y + term : term;
  }
  return y;
}

/// Returns x resized along several axes.
Tensor resized(const Call& call, const Tensor& x, const ResizeOptions& options,
               const std::vector<ResizedAxis>& axes) {
  const bool computes = options.mode != "nearest" && !is_float(x.dtype());
  Tensor y = computes ? cast(x, f32) : x;
  Tensor outside;
  for (const ResizedAxis& at : axes) {
    if (at.to < 0 || at.to > kMaxAxisSize || (at.to > 0 && at.from < 1))
      call.refuse(str("axis ", at.axis, " of ", x.type(), " cannot get the size ", at.to));
    const bool has_scale = at.to == 0 || (at.scale >= 1 / kMaxScale && at.scale <= kMaxScale);
    if (!has_scale || !(std::abs(at.roi_begin) <= kMaxScale && std::abs(at.roi_end) <= kMaxScale))
      call.refuse(str("axis ", at.axis, " of ", x.type(), " gets the scale ", at.scale,
                      " and the roi ", at.roi_begin, " to ", at.roi_end));
    const bool is_same = at.from == at.to && at.scale == 1 && at.roi_begin == 0 && at.roi_end == 1;
    if (is_same) continue;
    const double stretch = options.antialias ? std::min(at.scale, 1.) : 1;
    check_bytes(call.node(),
                96 / stretch * static_cast<double>(at.to));  // up to 6 taps of 16 bytes
    const Taps taps = taps_of(options, at);
    y = resized_along(y, at, taps);
    if (std::count(taps.is_outside.begin(), taps.is_outside.end(), true)) {
      const std::vector<double> flags(taps.is_outside.begin(), taps.is_outside.end());
      const Tensor here = along(flags, at.axis, y);
      outside = outside.is_defined() ? outside + here : here;
    }
  }
  if (outside.is_defined()) y = where(outside > 0, options.extrapolation, y);
  return computes ? cast(saturated(round(y), call.type(0)), x.dtype()) : y;
}

ResizeOptions options_of(const Call& call) {
  ResizeOptions options{call.text("mode", "nearest"),
                        call.text("coordinate_transformation_mode", "half_pixel"),
                        call.text("nearest_mode", "round_prefer_floor"),
                        call.number("cubic_coeff_a", -0.75),
                        call.number("extrapolation_value", 0),
                        call.flag("antialias", false),
                        call.flag("exclude_outside", false)};
  if (options.mode == "bilinear") options.mode = "linear";
  // Until version 10 an element shows the one before it.
  if (call.version() < 11) options.coordinates = "asymmetric", options.nearest = "floor";
  if (options.mode != "nearest" && options.mode != "linear" && options.mode != "cubic")
    call.refuse(str("the mode ", options.mode, " is not supported"));
  for (const char* known :
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_crop_and_resize", "tf_half_pixel_for_nn"})
    if (options.coordinates == known) return options;
  call.refuse(str("the coordinate_transformation_mode ", options.coordinates, " is not supported"));
}

/// Returns the axes with sizes from scales.
void set_scales(const Call& call, const std::vector<double>& scales,
                std::vector<ResizedAxis>& axes) {
  if (scales.size() != axes.size())
    call.refuse(str(scales.size(), " scales for ", axes.size(), " axes"));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis& at = axes[i];
    at.scale = scales[i];
    const double size =
        std::floor(static_cast<double>(at.from) * (at.roi_end - at.roi_begin) * at.scale);
    if (!(size >= 0 && size <= kMaxAxisSize)) call.refuse(str("a scale is ", at.scale));
    at.to = static_cast<std::int64_t>(size);
  }
}

/// Returns the axes with sizes as given, or with one scale for all that keeps the ratio of sizes.
void set_sizes(const Call& call, const std::vector<std::int64_t>& sizes,
               std::vector<ResizedAxis>& axes) {
  if (sizes.size() != axes.size())
    call.refuse(str(sizes.size(), " sizes for ", axes.size(), " axes"));
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis& at = axes[i];
    at.to = sizes[i];
    at.scale = static_cast<double>(at.to) / static_cast<double>(std::max<std::int64_t>(at.from, 1));
    const bool is_first = i == 0;
    if (policy == "not_larger") common = is_first ? at.scale : std::min(common, at.scale);
    if (policy == "not_smaller") common = is_first ? at.scale : std::max(common, at.scale);
  }
  if (policy == "stretch") return;
  if (common == 0) call.refuse(str("the keep_aspect_ratio_policy ", policy, " is not supported"));
  for (ResizedAxis& at : axes) {
    at.scale = common;
    const double size = std::floor(common * static_cast<double>(at.from) + 0.5);
    if (!(size >= 0 && size <= kMaxAxisSize)) call.refuse(str("an axis gets the size ", size));
    at.to = static_cast<std::int64_t>(size);
  }
}

bool has_elements(const Call& call, std::size_t i) {
  return call.has(i) && call.tensor(i).numel() > 0;
}

Values run_resize(const Call& call) {
  const Tensor& x = call.tensor(0);
  const ResizeOptions options = options_of(call);
  std::vector<ResizedAxis> axes;
  std::vector<std::int64_t> given = call.integers("axes");
  if (!call.has_attribute("axes"))
    for (int axis = 0; axis < x.rank(); ++axis) given.push_back(axis);
  for (const std::int64_t axis : given) {
    const int at = call.axis_in(axis, x.rank());
    axes.push_back({at, x.dim(at).size()});
  }
  const bool is_old = call.version() < 11;
  if (!is_old && options.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = call.known_numbers(1);
    if (roi.size() != 2 * axes.size())
      call.refuse(str(roi.size(), " numbers of roi for ", axes.size(), " axes"));
    for (std::size_t i = 0; i < axes.size(); ++i)
      axes[i].roi_begin = roi[i], axes[i].roi_end = roi[i + axes.size()];
  }
  if (is_old)
    set_scales(call, call.known_numbers(1), axes);
  else if (has_elements(call, 3))
    set_sizes(call, call.known_integers(3), axes);
  else
    set_scales(call, call.known_numbers(2), axes);
  return {call.stored_like(0, resized(call, x, options, axes))};
}

/// Version 1 has attributes for the last two axes, version 7 one for all axes, version 9 an input.
Values run_upsample(const Call& call) {
  const Tensor& x = call.tensor(0);
  std::vector<double> scales(static_cast<std::size_t>(x.rank()), 1);
  if (call.version() >= 9) {
    scales = call.known_numbers(1);
  } else if (call.version() >= 7) {
    scales = call.numbers("scales");
  } else {
    if (x.rank() < 2) call.refuse(str("does not fit ", x.type()));
    scales[scales.size() - 2] = call.number("height_scale", 1);
    scales.back() = call.number("width_scale", 1);
  }
  std::vector<ResizedAxis> axes;
  for (int axis = 0; axis < x.rank(); ++axis) axes.push_back({axis, x.dim(axis).size()});
  set_scales(call, scales, axes);
  return {call.stored_like(0, resized(call, x, options_of(call), axes))};
}

const Rule kRules[] = {
    with_numbers({1, 2, 3}, {"Resize", run_resize, "", 10}),
    with_numbers({1}, {"Upsample", run_upsample, "", 1, 9}),
};

}  // namespace

std::span<const Rule> resize_rules() { return kRules; }

}  // namespace reel::imported
