// Reading of images at places: GridSample, AffineGrid, RoiAlign, DeformConv.
#include "reel/onnx/ops/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/products.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kMaxPoints = 1 << 26;   // of a grid
constexpr std::int64_t kMaxSamples = 1 << 20;  // of a region, along an axis

/// Returns places within [low, high], reflected at both ends as often as it takes.
Tensor reflected(const Tensor& x, double low, double high) {
  const double extent = high - low;
  if (extent <= 0) return zeros_like(x) + low;
  const Tensor rest = mod(abs(x - low), 2 * extent);
  return where(rest > extent, 2 * extent - rest, rest) + low;
}

/// The elements that places read along one axis, with their weights.
struct AxisTaps {
  Tensors positions, weights;  ///< [N, P] each; positions are i64 within the axis
};

/// Returns the weights of the four elements around a place. Source: R. G. Keys, Cubic convolution
/// interpolation for digital image processing, equation (4).
Tensors cubic_weights(const Tensor& ratio) {
  constexpr double kA = -0.75;
  const auto near = [](const Tensor& x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1.; };
  const auto far = [](const Tensor& x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {far(ratio + 1), near(ratio), near(1 - ratio), far(2 - ratio)};
}

AxisTaps taps_along(const Tensor& given, std::int64_t size, const SampleOptions& options) {
  using Kind = SampleOptions::Kind;
  const double last = static_cast<double>(size - 1);
  const double low = options.align_corners ? 0 : -0.5,
               high = options.align_corners ? last : last + 0.5;
  const auto moved_inside = [&](const Tensor& x) {
    if (options.outside == OutsidePolicy::border) return clip(x, 0., last);
    if (options.outside == OutsidePolicy::reflection)
      return clip(reflected(x, low, high), 0., last);
    return x;
  };
  // The cubic kernel reads elements outside each on its own; the others move the place.
  const bool is_cubic = options.kind == Kind::cubic;
  const Tensor place = is_cubic ? given : moved_inside(given);
  const Tensor left = options.kind == Kind::nearest ? round(place) : floor(place);
  const Tensor ratio = place - left;
  Tensors weights;
  int first = 0;
  if (options.kind == Kind::nearest) {
    weights = {ones_like(place)};
  } else if (is_cubic) {
    weights = cubic_weights(ratio);
    first = -1;
  } else {
    weights = {1 - ratio, ratio};
  }
  AxisTaps taps;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    Tensor at = left + static_cast<double>(first + static_cast<int>(t));
    if (is_cubic) at = moved_inside(at);
    const Tensor is_inside = at >= 0. && at <= last;
    taps.weights.push_back(where(is_inside, weights[t], 0.));
    taps.positions.push_back(cast(where(is_inside, at, 0.), i64));
  }
  return taps;
}

}  // namespace

Tensors sampled_terms(const Tensor& x, const Tensors& places, const SampleOptions& options) {
  const Sizes sizes = x.shape();
  std::int64_t elements = 1;
  for (std::size_t i = 2; i < sizes.size(); ++i) elements *= sizes[i];
  const Tensor flat = transpose(reshape(x, {sizes[0], sizes[1], elements}), {0, 2, 1});
  // All combinations of the elements along each axis.
  Tensors positions{Tensor()}, weights{Tensor()};
  for (std::size_t axis = 0; axis < places.size(); ++axis) {
    const std::int64_t size = sizes[axis + 2];
    const AxisTaps taps = taps_along(places[axis], size, options);
    Tensors next_positions, next_weights;
    for (std::size_t i = 0; i < positions.size(); ++i)
      for (std::size_t t = 0; t < taps.positions.size(); ++t) {
        next_positions.push_back(axis ? positions[i] * size + taps.positions[t]
                                      : taps.positions[t]);
        next_weights.push_back(axis ? weights[i] * taps.weights[t] : taps.weights[t]);
      }
    positions = std::move(next_positions);
    weights = std::move(next_weights);
  }
  Tensors terms;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Sizes shape = weights[i].shape();
    const Tensor read = gather(flat, positions[i], 1, {.batch_dims = 1});  // [N, P, C]
    const Tensor weight = reshape(weights[i], {shape[0], shape[1], 1});
    // NaN and infinity without a weight do not count.
    terms.push_back(transpose(where(equal(weight, 0.), 0., read * weight), {0, 2, 1}));
  }
  return terms;
}

Tensor sampled(const Tensor& x, const Tensors& places, const SampleOptions& options) {
  Tensor result;
  for (const Tensor& term : sampled_terms(x, places, options))
    result = result.is_defined() ? result + term : term;
  return result;
}

namespace {

SampleOptions sample_options(const Call& call) {
  SampleOptions options;
  const std::string mode = call.text("mode", call.version() < 20 ? "bilinear" : "linear"),
                    padding = call.text("padding_mode", "zeros");
  if (mode == "nearest")
    options.kind = SampleOptions::Kind::nearest;
  else if (mode == "cubic" || mode == "bicubic")
    options.kind = SampleOptions::Kind::cubic;
  else if (mode != "linear" && mode != "bilinear")
    call.refuse(str("the mode ", mode, " is not supported"));
  if (padding == "border")
    options.outside = OutsidePolicy::border;
  else if (padding == "reflection")
    options.outside = OutsidePolicy::reflection;
  else if (padding != "zeros")
    call.refuse(str("the padding_mode ", padding, " is not supported"));
  options.align_corners = call.flag("align_corners", false);
  return options;
}

/// Reads x at places of a grid, which counts -1 to 1 along each axis, the last one first.
Values run_grid_sample(const Call& call) {
  const Tensor &x = call.tensor(0), &grid = call.tensor(1);
  const Sizes sizes = x.shape(), wanted = grid.shape();
  const std::size_t axes = sizes.size() - 2;
  if (sizes.size() < 3 || wanted.size() != sizes.size() || wanted[0] != sizes[0] ||
      wanted.back() != static_cast<std::int64_t>(axes))
    call.refuse(str("the grid ", grid.type(), " does not fit ", x.type()));
  const SampleOptions options = sample_options(call);
  const std::int64_t count = grid.numel() / std::max<std::int64_t>(wanted[0] * wanted.back(), 1);
  const Tensor points = reshape(grid, {wanted[0], count, wanted.back()});
  Tensors places;
  for (std::size_t i = 0; i < axes; ++i) {
    const auto size = static_cast<double>(sizes[i + 2]);
    const Tensor at =
        cast(gather(points, scalar(wanted.back() - 1 - static_cast<std::int64_t>(i)), 2),
             x.dtype() == f64 ? f64 : f32);
    places.push_back(options.align_corners ? (at + 1.) * ((size - 1) / 2)
                                           : ((at + 1.) * size - 1.) / 2.);
  }
  const bool computes = !is_float(x.dtype());
  Tensor y = sampled(computes ? cast(x, f32) : x, places, options);
  if (computes) y = cast(y, x.dtype());
  Sizes result{sizes[0], sizes[1]};
  result.insert(result.end(), wanted.begin() + 1, wanted.end() - 1);
  return {call.stored_like(0, reshape(y, result))};
}

/// Returns the places of all elements of an image, from -1 to 1 along each axis, transformed.
Values run_affine_grid(const Call& call) {
  const Tensor& theta = call.tensor(0);
  Sizes size = call.known_integers(1);
  if (size.size() < 3 || theta.rank() != 3 ||
      theta.dim(1) != Dim(static_cast<std::int64_t>(size.size()) - 2) ||
      theta.dim(2) != Dim(static_cast<std::int64_t>(size.size()) - 1))
    call.refuse(str("theta ", theta.type(), " does not fit an image of ", size.size(), " axes"));
  const bool align_corners = call.flag("align_corners", false);
  size.erase(size.begin(), size.begin() + 2);
  const auto axes = static_cast<std::int64_t>(size.size());
  std::int64_t count = 1;
  for (const std::int64_t n : size) {
    if (n < 0 || n > kMaxPoints || count * std::max<std::int64_t>(n, 1) > kMaxPoints)
      call.refuse(str("a size is ", n, "; a grid has at most ", kMaxPoints, " points"));
    count *= n;
  }
  // A column of theta for each axis, the last axis first, and one that is added: [N, 1, ..., axes].
  const auto column = [&](std::int64_t i) {
    Dims dims(size.size() + 2, Dim(1));
    dims[0] = theta.dim(0);
    dims.back() = Dim(axes);
    return reshape(gather(theta, scalar(i), 2), dims);
  };
  Dims all{theta.dim(0)};
  for (const std::int64_t n : size) all.emplace_back(n);
  all.emplace_back(axes);
  Tensor grid = broadcast_to(column(axes), all);
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    const std::int64_t n = size[static_cast<std::size_t>(axis)];
    std::vector<double> places;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<double>(i), extent = static_cast<double>(n);
      places.push_back(!align_corners ? (2 * at + 1) / extent - 1
                       : n > 1        ? 2 * at / (extent - 1) - 1
                                      : -1);
    }
    Dims along(size.size() + 2, Dim(1));
    along[static_cast<std::size_t>(axis) + 1] = Dim(n);
    grid = grid + tensor(places, along, theta.dtype()) * column(axes - 1 - axis);
  }
  return {call.like(0, grid)};
}

// ---- Regions ----------------------------------------------------------------------------------

/// The elements that samples of regions read, as RoiAlign counts them: places up to one element
/// outside are moved to the border, others read 0. places: [R, P].
Tensor is_near(const Tensor& places, std::int64_t size) {
  return places >= -1. && places <= static_cast<double>(size);
}

/// Pools samples of each region: their mean, or their maximum of weighted elements.
class RegionPooling {
 public:
  explicit RegionPooling(const Call& call)
      : call_(call),
        rois_(call.tensor(1)),
        sizes_(call.tensor(0).shape()),
        height_(call.integer("output_height", 1)),
        width_(call.integer("output_width", 1)),
        given_(call.integer("sampling_ratio", 0)),
        scale_(call.number("spatial_scale", 1)) {
    if (sizes_.size() != 4 || rois_.rank() != 2)
      call.refuse(str("does not fit ", call.tensor(0).type()));
    count_ = rois_.dim(0).size();
    const std::string mode = call.text("mode", "avg");
    if (mode != "avg" && mode != "max") call.refuse(str("the mode ", mode, " is not supported"));
    is_mean_ = mode == "avg";
    check_samples(height_, 1), check_samples(width_, 1);
    is_half_pixel_ = call.version() >= 16 &&
                     call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  }

  Values run() const {
    if (given_ < 1 && call_.is_known(1) == false) call_.known_numbers(1);  // throws
    // Images of the regions, one for each: [R, C, H, W].
    const Tensor images = gather(call_.tensor(0), call_.tensor(2), 0);
    const std::int64_t rows = given_ < 1 ? most_samples(1, height_) : given_,
                       columns = given_ < 1 ? most_samples(0, width_) : given_;
    check_samples(height_, static_cast<double>(rows));
    check_samples(width_, static_cast<double>(columns));
    const AxisSamples ys = samples_along(1, height_, rows), xs = samples_along(0, width_, columns);
    const Tensor read = read_samples(images, ys, xs, height_ * rows, width_ * columns);
    const Tensor bins = reshape(read, {count_, sizes_[1], height_, rows, width_, columns});
    const Tensor number = reshape(ys.number * xs.number, {count_, 1, 1, 1});
    const Axes within_bins(std::vector<Axis>{3, 5});
    return {call_.like(0, is_mean_ ? sum(bins, within_bins) / number : max(bins, within_bins))};
  }

 private:
  struct AxisSamples {
    Tensor places, counts;  // [R, bins samples]: the places, and 1 for samples that are there
    Tensor number;          // [R, 1]
  };

  void check_samples(std::int64_t bins, double samples) const {
    if (bins < 1 || !(samples * static_cast<double>(bins) <= kMaxSamples))
      call_.refuse(str("a region has ", bins, " bins of ", samples, " samples along an axis"));
  }
  Tensor corner(int i) const {
    return gather(rois_, scalar(i), 1) * scale_ - (is_half_pixel_ ? 0.5 : 0.);
  }
  /// Returns the extents of the regions along an axis, whose corners begin with `first`.
  Tensor extent(int first) const {
    const Tensor length = corner(first + 2) - corner(first);
    return is_half_pixel_ ? length : maximum(length, 1.);
  }
  /// Returns the number of samples in each bin along an axis: as many as a bin of the largest
  /// region has elements.
  std::int64_t most_samples(int first, std::int64_t bins) const {
    const std::vector<double> all = cast(extent(first), f64).to_vector<double>();
    double largest = 1;
    for (const double one : all)
      largest = std::max(largest, std::ceil(one / static_cast<double>(bins)));
    check_samples(bins, largest);
    return static_cast<std::int64_t>(largest);
  }
  /// Returns the number of samples of each region along an axis, [R, 1]: as given, or its own.
  Tensor samples_of(const Tensor& length, std::int64_t bins) const {
    if (given_ > 0) return full({Dim(count_), Dim(1)}, static_cast<double>(given_), rois_.dtype());
    return reshape(maximum(ceil(length / static_cast<double>(bins)), 1.), {count_, 1});
  }
  AxisSamples samples_along(int first, std::int64_t bins, std::int64_t samples) const {
    const Tensor length = extent(first), number = samples_of(length, bins);
    std::vector<double> bin, sample;
    for (std::int64_t b = 0; b < bins; ++b)
      for (std::int64_t s = 0; s < samples; ++s)
        bin.push_back(static_cast<double>(b)), sample.push_back(static_cast<double>(s));
    const Tensor bin_size = reshape(length / static_cast<double>(bins), {count_, 1});
    const Tensor in_bin = (tensor(sample, {}, rois_.dtype()) + 0.5) / number;
    return {
        reshape(corner(first), {count_, 1}) + (tensor(bin, {}, rois_.dtype()) + in_bin) * bin_size,
        cast(in_bin < 1., rois_.dtype()), number};
  }
  /// Returns the elements at all samples of an image, [R, C, rows columns]; those that do not count
  /// are neutral.
  Tensor read_samples(const Tensor& images, const AxisSamples& ys, const AxisSamples& xs,
                      std::int64_t rows, std::int64_t columns) const {
    const auto for_all = [&](const Tensor& t, const Sizes& shape) {
      return reshape(broadcast_to(reshape(t, shape), {count_, rows, columns}),
                     {count_, rows * columns});
    };
    const auto for_rows = [&](const Tensor& t) { return for_all(t, {count_, rows, 1}); };
    const auto for_columns = [&](const Tensor& t) { return for_all(t, {count_, 1, columns}); };
    const Tensor py = for_rows(ys.places), px = for_columns(xs.places);
    SampleOptions options;
    options.outside = OutsidePolicy::border;
    const Tensor is_counted = is_near(py, sizes_[2]) && is_near(px, sizes_[3]) &&
                              for_rows(ys.counts) > 0 && for_columns(xs.counts) > 0;
    const Tensors terms = sampled_terms(images, {py, px}, options);
    Tensor read = terms[0];  // [R, C, P]
    for (std::size_t t = 1; t < terms.size(); ++t)
      read = is_mean_ ? read + terms[t] : maximum(read, terms[t]);
    return where(reshape(is_counted, {count_, 1, rows * columns}), read,
                 is_mean_ ? 0. : -std::numeric_limits<double>::infinity());
  }

  const Call& call_;
  const Tensor& rois_;
  const Sizes sizes_;
  const std::int64_t height_, width_, given_;
  const double scale_;
  std::int64_t count_ = 0;
  bool is_mean_ = true, is_half_pixel_ = false;
};

Values run_roi_align(const Call& call) { return RegionPooling(call).run(); }

// ---- Deformed windows -------------------------------------------------------------------------

/// A convolution with offsets that move the places in its windows. Source: arXiv 1811.11168.
Values run_deform_conv(const Call& call) {
  const Tensor &x = call.tensor(0), &weight = call.tensor(1), &offset = call.tensor(2);
  const Sizes sizes = x.shape(), kernel_sizes = weight.shape(), places = offset.shape();
  const std::int64_t groups = call.integer("group", 1), parts = call.integer("offset_group", 1);
  if (sizes.size() != 4 || kernel_sizes.size() != 4 || places.size() != 4 || groups < 1 ||
      parts < 1 || groups > std::max<std::int64_t>(kernel_sizes[0], 1) ||
      parts > std::max<std::int64_t>(sizes[1], 1) || sizes[1] % parts || kernel_sizes[0] % groups ||
      sizes[1] != kernel_sizes[1] * groups)
    call.refuse(
        str("weights ", weight.type(), " and offsets ", offset.type(), " do not fit ", x.type()));
  const auto element = [&](const char* name, std::size_t i, std::int64_t otherwise) {
    const Sizes list = call.integers(name);
    return i < list.size() ? list[i] : otherwise;
  };
  const std::int64_t batch = sizes[0], kernel = kernel_sizes[2] * kernel_sizes[3],
                     area = places[2] * places[3], depth = sizes[1] / parts;
  if (places[1] != parts * kernel * 2) call.refuse(str("offsets are ", offset.type()));
  check_bytes(call.node(), 8. * static_cast<double>(kernel) * static_cast<double>(area));
  // The places without offsets: [1, kernel, area] for each axis.
  Tensors at;
  const Tensor moved = reshape(offset, {batch * parts, kernel, 2, area});
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto stride = static_cast<double>(element("strides", axis, 1)),
               dilation = static_cast<double>(element("dilations", axis, 1)),
               pad = static_cast<double>(element("pads", axis, 0));
    std::vector<double> regular;
    for (std::int64_t k = 0; k < kernel; ++k)
      for (std::int64_t o = 0; o < area; ++o) {
        const std::int64_t in_kernel = axis ? k % kernel_sizes[3] : k / kernel_sizes[3];
        const std::int64_t in_result = axis ? o % places[3] : o / places[3];
        regular.push_back(static_cast<double>(in_result) * stride +
                          static_cast<double>(in_kernel) * dilation - pad);
      }
    const Tensor shift = gather(moved, scalar(static_cast<std::int64_t>(axis)), 2);
    at.push_back(reshape(shift + tensor(regular, Dims{Dim(kernel), Dim(area)}, x.dtype()),
                         {batch * parts, kernel * area}));
  }
  Tensor read = sampled(reshape(x, {batch * parts, depth, sizes[2], sizes[3]}), at, {});
  if (call.has(4)) read = read * reshape(call.tensor(4), {batch * parts, 1, kernel * area});
  // [N, groups, C / groups kernel, area] by the weights of each group.
  const std::int64_t outputs = kernel_sizes[0] / groups;
  const Tensor columns = reshape(read, {batch, groups, kernel_sizes[1] * kernel, area});
  const Tensor matrices = reshape(weight, {groups, outputs, kernel_sizes[1] * kernel});
  Tensor y = reshape(matmul(matrices, columns), {batch, kernel_sizes[0], places[2], places[3]});
  if (call.has(3)) y = y + reshape(call.tensor(3), {kernel_sizes[0], 1, 1});
  return {call.like(0, y)};
}

const Rule kRules[] = {
    with_numbers({1}, {"AffineGrid", run_affine_grid, "", 20}),
    {"DeformConv", run_deform_conv, "", 19},
    {"GridSample", run_grid_sample, "", 16},
    with_numbers({1}, {"RoiAlign", run_roi_align, "", 10}),
};

}  // namespace

std::span<const Rule> sampling_rules() { return kRules; }

}  // namespace reel::imported
