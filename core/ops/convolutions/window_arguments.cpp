#include "reel/core/ops/convolutions/window_arguments.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {

std::vector<int> window_axes(std::string_view function, const Tensor& x, const Axes& over) {
  std::vector<int> axes = over.in(x, function);
  constexpr std::size_t kMaxAxes = 3;
  if (axes.empty() || axes.size() > kMaxAxes)
    throw ArgumentError(str(function, ": windows run over one to three axes, got ", axes.size()));
  for (const int axis : axes)
    if (has_lengths_along(x.type(), std::vector<int>{axis}))
      throw ShapeError(str(function, ": lengths of another dim of ", x.type(), " run over ",
                           axis_name(x.type(), axis),
                           ", so that a window has elements of several lengths; give the other dim "
                           "one size first, as in rename(x, dim, Dim(\"dim\", size))"));
  return axes;
}

namespace {

template <class T>
std::vector<T> each_of(std::string_view function, std::string_view option, const PerAxis<T>& values,
                       std::size_t count) {
  std::vector<T> result = values.values();
  if (result.size() == 1) result.resize(count, result[0]);
  if (result.size() != count)
    throw ArgumentError(str(function, ": ", option, " has ", result.size(), " values for ", count,
                            count == 1 ? " axis" : " axes", "; give one value, or one for each"));
  return result;
}

void check_positive(std::string_view function, std::string_view option, std::int64_t number) {
  if (number < 1)
    throw ArgumentError(str(function, ": ", option, ' ', number, "; it must be positive"));
}

/// Sets the zeros in front of the axis and behind it.
void set_padding(Window& window, const WindowPadding& padding) {
  using Kind = WindowPadding::Kind;
  const std::int64_t around = reach_of(window) - 1;
  const bool has_around = padding.kind == Kind::same || padding.kind == Kind::causal;
  window.before = padding.kind == Kind::same     ? around / 2
                  : padding.kind == Kind::causal ? around
                  : padding.kind == Kind::valid  ? 0
                                                 : padding.before;
  window.after = has_around                    ? around - window.before
                 : padding.kind == Kind::valid ? 0
                                               : padding.after;
}

/// Returns the dim of the result along an axis with this dim.
Dim computed_dim(const Window& window, const Dim& dim, bool is_transposed) {
  const std::int64_t reach = reach_of(window), around = window.before + window.after;
  if (!is_transposed) return ceildiv(dim_plus(dim, around - (reach - 1)), window.stride);
  // The size of windowed_size(), in the order of operations that gives a sum or a difference.
  const std::int64_t more = reach - window.stride - around + window.extra;
  return dim_plus(dim_times(dim, window.stride), more);
}

}  // namespace

std::vector<std::int64_t> values_of(std::string_view function, std::string_view option,
                                    const PerAxis<std::int64_t>& values, std::size_t count) {
  std::vector<std::int64_t> result = each_of(function, option, values, count);
  for (const std::int64_t value : result) check_positive(function, option, value);
  return result;
}

std::vector<Window> windows_of(const WindowArguments& arguments, const TensorType& x,
                               bool is_transposed) {
  const std::string_view function = arguments.function;
  const std::size_t count = arguments.axes.size();
  const auto stride = values_of(function, "stride", arguments.stride, count),
             dilation = values_of(function, "dilation", arguments.dilation, count);
  const auto padding = each_of(function, "padding", arguments.padding, count);
  if (!arguments.to.empty() && arguments.to.size() != count)
    throw ArgumentError(str(function, ": to has ", arguments.to.size(), " dims for ", count,
                            count == 1 ? " axis" : " axes"));
  std::vector<Window> windows;
  for (std::size_t i = 0; i < count; ++i) {
    Window window{arguments.taps[i], stride[i], dilation[i], 0, 0, {}};
    set_padding(window, padding[i]);
    // The stride divides a size that `same` or `causal` restores.
    using Kind = WindowPadding::Kind;
    if (is_transposed && (padding[i].kind == Kind::same || padding[i].kind == Kind::causal))
      window.extra = window.stride - 1;
    if (window.before < 0 || window.after < 0)
      throw ArgumentError(str(function, ": padding of ", window.before, " and ", window.after,
                              " elements; it must not be negative"));
    const Dim& dim = dim_at(x, arguments.axes[i]);
    const Dim computed = computed_dim(window, dim, is_transposed);
    const auto to = arguments.to.empty() ? std::nullopt : std::optional(arguments.to[i]);
    if (to)
      window.to = changed_dim(dim, to, {&computed, 1},
                              computed.is_ragged() || !computed.has_size() ? -1 : computed.size(),
                              [&] { return computed.lengths(); });
    else if (dim.is_named())
      window.to = canonical(computed);
    windows.push_back(std::move(window));
  }
  return windows;
}

Tensor in_order(const Tensor& x, const std::vector<int>& order) {
  if (std::ranges::is_sorted(order)) return x;
  return transpose(x, Axes(std::vector<Axis>(order.begin(), order.end())));
}

std::vector<int> inverse_of(const std::vector<int>& order) {
  std::vector<int> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    result[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  return result;
}

}  // namespace reel
