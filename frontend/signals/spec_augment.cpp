#include "reel/frontend/signals/spec_augment.h"

#include "reel/core/base/str.h"
#include "reel/core/functions/random_bounds.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {
namespace {

/// The axis that masks lie along, and the dims whose entries each have their own masks.
struct Masked {
  const Tensor& x;
  int axis;
  Dims entries;  ///< of the same rank for plain dims, with size 1 along the masked axes

  const Dim& dim() const { return dim_at(x.type(), axis); }
  bool is_named() const { return x.type().is_named(); }
  /// Returns the number of elements along the axis, by entry.
  Tensor lengths() const {
    return is_named() ? canonical(dim()).lengths() : scalar(static_cast<int>(dim().size()), i32);
  }
  Tensor positions() const {
    if (is_named()) {
      Dims dims = entries;
      dims.push_back(canonical(dim()));
      return expand(range(dims.back(), i32), dims);
    }
    Dims dims(static_cast<std::size_t>(x.rank()), Dim(1));
    dims[static_cast<std::size_t>(axis)] = dim();
    return reshape(range(dim(), i32), dims);
  }
};

/// Returns x with `count` masks along an axis.
Tensor with_masks(const Masked& at, std::int64_t count, std::int64_t width, double part,
                  double value) {
  Tensor x = at.x;
  if (count == 0) return x;
  const Tensor lengths = at.lengths(), positions = at.positions();
  Tensor widest = minimum(lengths, static_cast<int>(width));
  if (part < 1) widest = minimum(widest, cast(floor(cast(lengths, f64) * part), i32));
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor size = random_integers(at.entries, 0, widest + 1),
                 begin = random_integers(at.entries, 0, lengths - size + 1);
    x = where(positions >= begin && positions < begin + size, value, x);
  }
  return x;
}

void check_options(const SpecAugmentOptions& options) {
  if (options.time_masks < 0 || options.frequency_masks < 0 || options.time_width < 0 ||
      options.frequency_width < 0 || options.time_width > 1 << 30 ||
      options.frequency_width > 1 << 30)
    throw ArgumentError(str("spec_augment: numbers of masks ", options.time_masks, " and ",
                            options.frequency_masks, " and widths ", options.time_width, " and ",
                            options.frequency_width, " must be from 0 to 2^30"));
  if (!(options.time_part >= 0 && options.time_part <= 1))
    throw ArgumentError(
        str("spec_augment: time_part is ", options.time_part, "; it must be between 0 and 1"));
}

}  // namespace

Tensor spec_augment(const Tensor& x, const Axis& time, const Axis& frequency,
                    const SpecAugmentOptions& options) {
  check_float("spec_augment", x, "cast it to f32");
  check_options(options);
  const int frames = time.in(x, "spec_augment"), bins = frequency.in(x, "spec_augment");
  if (frames == bins)
    throw ArgumentError(
        str("spec_augment: time and frequency are both ", axis_name(x.type(), frames)));
  Dims entries;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis != frames && axis != bins)
      entries.push_back(dim_at(x.type(), axis));
    else if (!x.type().is_named())
      entries.emplace_back(1);
  const Tensor masked = with_masks({x, frames, entries}, options.time_masks, options.time_width,
                                   options.time_part, options.value);
  return with_masks({masked, bins, entries}, options.frequency_masks, options.frequency_width, 1,
                    options.value);
}

}  // namespace reel
