// core/functions/convolutions.h — convolutions, and the largest and mean elements of windows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

// Windows of `taps` elements, `dilation` apart, are taken at every `stride`-th position of an axis.
// A window reaches over reach = (taps - 1) · dilation + 1 elements.
//
// Along a ragged dim, the windows and values of an entry do not depend on other entries. Padding
// counts as zeros; max_pool and mean_pool leave it out. A result's dim has the size
//
//   ceildiv(size + (before + after) - (reach - 1), stride)        (dim arithmetic)
//
// with `before` and `after` of the padding. All sizes have this form, so that equal calls give
// equal dims. With stride 1 and `same` or `causal` it is the axis' own dim.

/// The elements that windows see in front of an axis and behind it: zeros for conv, none for
/// max_pool and mean_pool. The numbers do not depend on the size of the axis.
struct WindowPadding {
  enum class Kind : std::uint8_t { numbers, same, valid, causal };
  std::int64_t before = 0, after = 0;  ///< of numbers; not negative
  Kind kind = Kind::numbers;           ///< numbers: `before` and `after`

  /// (reach - 1) / 2 in front, the rest of reach - 1 behind: size ceildiv(size, stride).
  /// TensorFlow's "SAME" with a stride is by numbers, which depend on the size.
  static const WindowPadding same;
  /// None: size ceildiv(size - (reach - 1), stride).
  static const WindowPadding valid;
  /// reach - 1 in front, so that no window sees later elements: size ceildiv(size, stride).
  static const WindowPadding causal;
};
inline constexpr WindowPadding WindowPadding::same{0, 0, Kind::same};
inline constexpr WindowPadding WindowPadding::valid{0, 0, Kind::valid};
inline constexpr WindowPadding WindowPadding::causal{0, 0, Kind::causal};

/// One value for all axes of windows, or one for each: .stride = 2, .stride = {2, 1}.
template <class T>
class PerAxis {
 public:
  PerAxis(T all) : values_{std::move(all)} {}
  PerAxis(std::initializer_list<T> each) : values_(each) {}
  PerAxis(std::vector<T> each) : values_(std::move(each)) {}
  const std::vector<T>& values() const { return values_; }  ///< returns one value, or one per axis

 private:
  std::vector<T> values_;
};

/// Options of conv: conv(x, filter, time, {.taps = {taps}, .in = {in}, .stride = 2}).
struct Convolution {
  Dims taps = {};  ///< the filter's dims along the windows, if dims are named
  Dims in = {};    ///< the dims that are summed, if dims are named
  PerAxis<std::int64_t> stride = 1, dilation = 1;  ///< of windows; of the elements of one
  std::int64_t groups = 1;  ///< outputs of a group read the inputs of the same group only
  PerAxis<WindowPadding> padding = WindowPadding::valid;  ///< in front of the axes and behind
  bool transposed = false;  ///< each element of x adds a filter to the result
  /// The dims of the result along the windows; default: computed. A dim without a size gives its
  /// name to a new dim. For a transposed convolution, the dims that it restores.
  Dims to = {};
};

/// Returns the convolution of x and a filter over one to three axes, a sum over taps and input
/// channels: y[o, m] = Σ x[o · stride + k · dilation - before, c] · filter[k, c, m]. The taps are
/// not reversed: the formula is the cross-correlation of PyTorch, JAX and TensorFlow.
///
/// Named dims, in any order: x [..., over, in], filter [taps, in, out] -> the dims of x without
/// `in`, with new ones along `over`, then the dims that only the filter has. Other dims of both
/// operands are matched, as in matmul: a filter [taps, channel] is depthwise. With `groups`, the
/// filter has the dim in / groups.
///
/// Plain dims: x [..., over, ..., in], filter [taps..., in / groups, out] -> [..., out]. A filter
/// [taps...] serves every channel.
///
/// transposed: x has the windows, and each of them is added to the result, as in the gradient of a
/// convolution. The filter is [taps, in, out] as above. The default size is size · stride for
/// `same` and `causal`, otherwise size · stride + (reach - stride) - (before + after). `to`
/// restores another dim if x has as many windows as that dim.
///
/// Gradients of any order. Operands have one dtype, and are numbers. Throws ShapeError if dims do
/// not fit, or if lengths of another ragged dim run over the axis; DTypeError for other dtypes;
/// ArgumentError for numbers that are not positive, or not one for each axis. Cost: 2·(elements of
/// the result)·(taps·in) flop.
Tensor conv(const Tensor& x, const Tensor& filter, const Axes& over,
            const Convolution& options = {});

/// Options of max_pool and mean_pool: max_pool(x, time, {.size = 2}).
struct Pooling {
  PerAxis<std::int64_t> size;  ///< elements of a window
  /// Default: the size, so that windows lie side by side.
  PerAxis<std::int64_t> stride = std::vector<std::int64_t>{};
  PerAxis<std::int64_t> dilation = 1;                     ///< of the elements of a window
  PerAxis<WindowPadding> padding = WindowPadding::valid;  ///< in front of the axes and behind
  Dims to = {};  ///< the dims of the result along the windows, as for conv
  /// mean_pool: true divides by the size of the window, so that padding counts as zeros.
  bool counts_padding = false;
};

/// Return the largest and the mean element of each window along one to three axes. x: any -> the
/// same dims, with new ones along `over`. Padding is left out.
///
/// A window without elements gives max over no elements, and mean 0. The first of several largest
/// elements has the gradient. Gradients of any order. Throw as conv does; mean_pool also
/// DTypeError unless x is floating.
Tensor max_pool(const Tensor& x, const Axes& over, const Pooling& options);
Tensor mean_pool(const Tensor& x, const Axes& over, const Pooling& options);

}  // namespace reel
REEL_API_END
