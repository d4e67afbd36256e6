// Convolutions and pooling, by conv and max_pool. Pools of other forms read windows by gather along
// each axis.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/functions/convolutions.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/products.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/windows.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kMaxWindow = std::int64_t{1} << 30;    // of sizes, strides and pads
constexpr std::int64_t kMaxElements = std::int64_t{1} << 58;  // of all windows of a channel

/// Throws ArgumentError for a number beyond kMaxWindow on either side: products of two must fit.
void check_window(const Call& call, std::initializer_list<std::int64_t> numbers) {
  for (const std::int64_t number : numbers)
    if (number < -kMaxWindow || number > kMaxWindow)
      call.refuse(str("a size, stride, dilation or pad is ", number));
}

std::int64_t element(const Sizes& list, std::size_t i, std::int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

}  // namespace

std::vector<std::int64_t> AxisWindow::positions() const {
  Sizes result;
  for (std::int64_t o = 0; o < count; ++o)
    for (std::int64_t k = 0; k < kernel; ++k) result.push_back(o * stride + k * dilation);
  return result;
}

Windows windows_of(const Call& call, const Tensor& x, const Sizes& kernel) {
  const Sizes strides = call.integers("strides"), dilations = call.integers("dilations"),
              pads = call.integers("pads");
  const std::string auto_pad = call.text("auto_pad", "NOTSET");
  if (x.rank() < 3 || static_cast<int>(kernel.size()) != x.rank() - 2)
    call.refuse(str("a kernel of ", kernel.size(), " axes does not fit ", x.type()));
  Windows windows;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    AxisWindow at{x.dim(static_cast<int>(i) + 2).size(),
                  kernel[i],
                  element(strides, i, 1),
                  element(dilations, i, 1),
                  element(pads, i, 0),
                  element(pads, i + kernel.size(), 0),
                  0};
    if (at.kernel < 1 || at.stride < 1 || at.dilation < 1 || at.before < 0 || at.after < 0)
      call.refuse("kernel_shape, strides and dilations are positive, pads are not negative");
    check_window(call, {at.size, at.kernel, at.stride, at.dilation, at.before, at.after});
    const std::int64_t reach = (at.kernel - 1) * at.dilation + 1;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const std::int64_t wanted = (at.size + at.stride - 1) / at.stride;
      const std::int64_t padding =
          std::max<std::int64_t>((wanted - 1) * at.stride + reach - at.size, 0);
      at.before = auto_pad == "SAME_UPPER" ? padding / 2 : padding - padding / 2;
      at.after = padding - at.before;
    } else if (auto_pad == "VALID") {
      at.before = at.after = 0;
    }
    const std::int64_t room = at.size + at.before + at.after - reach;
    if (room < 0)
      call.refuse(str("the kernel reaches over ", reach, " elements, more than there are"));
    at.count = room / at.stride + 1;
    // A further window must begin at an element or in the padding before them.
    if (call.flag("ceil_mode", false) && room % at.stride &&
        at.count * at.stride < at.size + at.before) {
      ++at.count;
      at.beyond = at.stride - room % at.stride;
    }
    if (__builtin_mul_overflow(elements, at.kernel * at.count, &elements) ||
        elements > kMaxElements)
      call.refuse(str("the windows over ", x.type(), " have too many elements"));
    windows.push_back(at);
  }
  return windows;
}

std::vector<std::int64_t> positions_of(const Call& call, const AxisWindow& window) {
  check_bytes(call.node(),
              8. * static_cast<double>(window.count) * static_cast<double>(window.kernel));
  return window.positions();
}

Tensor unfolded(const Call& call, Tensor x, const Windows& windows, double padding) {
  for (std::size_t i = windows.size(); i-- > 0;) {
    const int axis = static_cast<int>(i) + 2;
    x = pad(x, axis, windows[i].before, windows[i].after + windows[i].beyond, padding);
    Dims dims = x.dims();
    x = gather(x, tensor(positions_of(call, windows[i])), axis);
    dims[i + 2] = Dim(windows[i].count);
    dims.insert(dims.begin() + axis + 1, Dim(windows[i].kernel));
    x = reshape(x, dims);
  }
  return x;
}

std::vector<Axis> kernel_axes(std::size_t count) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < count; ++i) axes.emplace_back(static_cast<int>(3 + 2 * i));
  return axes;
}

namespace {

/// Returns the axes of the places in the result of unfolded().
std::vector<Axis> place_axes(std::size_t count) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < count; ++i) axes.emplace_back(static_cast<int>(2 + 2 * i));
  return axes;
}

std::int64_t product(const Sizes& sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

/// Adds a bias for each channel.
Tensor with_bias(const Call& call, const Tensor& y) {
  if (!call.has(2)) return y;
  Dims dims(static_cast<std::size_t>(y.rank() - 1), Dim(1));
  dims[0] = call.tensor(2).dims()[0];
  return y + reshape(call.tensor(2), dims);
}

/// [N, o..., M] -> [N, M, o...]
Tensor channels_second(const Tensor& x) {
  std::vector<Axis> order{0, x.rank() - 1};
  for (int i = 1; i + 1 < x.rank(); ++i) order.emplace_back(i);
  return transpose(x, Axes(order));
}

/// Returns the axes behind the first `first` ones.
Axes axes_from(int first, std::size_t count) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < count; ++i) axes.emplace_back(first + static_cast<int>(i));
  return axes;
}
/// [N, C, s...] -> [N, s..., C]
Tensor channels_last(const Tensor& x) {
  std::vector<Axis> order{0};
  for (int axis = 2; axis < x.rank(); ++axis) order.emplace_back(axis);
  order.emplace_back(1);
  return transpose(x, Axes(order));
}
/// Returns weights with the axes of the kernel in front, then the first two in this order.
Tensor kernel_first(const Tensor& weight, int first, int second) {
  std::vector<Axis> order;
  for (int axis = 2; axis < weight.rank(); ++axis) order.emplace_back(axis);
  order.emplace_back(first);
  order.emplace_back(second);
  return transpose(weight, Axes(order));
}

/// Returns the options of conv for windows.
Convolution convolution_of(const Windows& windows, std::int64_t groups) {
  Sizes stride, dilation;
  std::vector<WindowPadding> padding;
  for (const AxisWindow& at : windows) {
    stride.push_back(at.stride);
    dilation.push_back(at.dilation);
    padding.push_back({at.before, at.after + at.beyond});
  }
  return {.stride = stride, .dilation = dilation, .groups = groups, .padding = padding};
}

}  // namespace

Tensor convolved(const Call& call, const Tensor& x, const Tensor& weight) {
  const std::int64_t groups = call.integer("group", 1);
  check_window(call, {groups});
  Sizes kernel = weight.shape();
  if (kernel.size() < 3 || kernel.size() > 5) call.refuse(str("weights are ", weight.type()));
  const std::int64_t outputs = kernel[0], inputs = kernel[1];
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  const Windows windows = windows_of(call, x, kernel);
  if (groups < 1 || outputs % groups || x.dim(1).size() != inputs * groups)
    call.refuse(str("weights ", weight.type(), " in ", groups, " groups do not fit ", x.type()));
  if (x.dtype() == f32)
    return channels_second(conv(channels_last(x), kernel_first(weight, 1, 0),
                                axes_from(1, windows.size()), convolution_of(windows, groups)));
  // A saved model has Conv for f32 alone. [N, o..., C, k...], as rows of each group.
  std::vector<Axis> order{0};
  for (const Axis& axis : place_axes(windows.size())) order.push_back(axis);
  order.emplace_back(1);
  for (const Axis& axis : kernel_axes(windows.size())) order.push_back(axis);
  const std::int64_t width = inputs * product(kernel);
  Sizes shape{x.dim(0).size()};
  for (const AxisWindow& at : windows) shape.push_back(at.count);
  const std::int64_t rows = product(shape);
  const Tensor patches = transpose(
      reshape(transpose(unfolded(call, x, windows, 0), Axes(order)), {rows, groups, width}),
      {1, 0, 2});
  const Tensor matrices = transpose(reshape(weight, {groups, outputs / groups, width}), {0, 2, 1});
  const Tensor product_of_rows = transpose(matmul(patches, matrices), {1, 0, 2});
  shape.push_back(outputs);
  return channels_second(reshape(product_of_rows, shape));
}

namespace {

Values run_conv(const Call& call) {
  return {call.like(0, with_bias(call, convolved(call, call.tensor(0), call.tensor(1))))};
}

/// Returns the weights of a transposed convolution, [C, M / groups, k...], as conv takes them:
/// [k..., C / groups, M].
Tensor transposed_filter(const Tensor& weight, std::int64_t groups) {
  const Sizes given = weight.shape();
  const Sizes kernel(given.begin() + 2, given.end());
  const std::int64_t inputs = given[0] / groups, outputs = given[1];
  Sizes by_group{groups, inputs, outputs};
  by_group.insert(by_group.end(), kernel.begin(), kernel.end());
  std::vector<Axis> order;
  for (std::size_t i = 0; i < kernel.size(); ++i) order.emplace_back(static_cast<int>(i) + 3);
  for (const int axis : {1, 0, 2}) order.emplace_back(axis);
  Sizes filter = kernel;
  filter.insert(filter.end(), {inputs, groups * outputs});
  return reshape(transpose(reshape(weight, by_group), Axes(order)), filter);
}

/// The transposed map of Conv: each element adds a kernel to the result.
Values run_conv_transpose(const Call& call) {
  const Tensor &x = call.tensor(0), &weight = call.tensor(1);
  const std::int64_t groups = call.integer("group", 1);
  Sizes kernel = weight.shape();
  const Sizes given = x.shape();
  check_window(call, {groups});
  if (kernel.size() < 3 || kernel.size() > 5 || kernel.size() != given.size() || groups < 1 ||
      given[1] != kernel[0] || kernel[0] % groups)
    call.refuse(str("weights ", weight.type(), " in ", groups, " groups do not fit ", x.type()));
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  const std::size_t count = kernel.size();
  const Sizes strides = call.integers("strides"), dilations = call.integers("dilations"),
              extra = call.integers("output_padding"), wanted = call.integers("output_shape");
  Sizes pads = call.integers("pads");
  pads.resize(2 * count);
  if (!wanted.empty() && wanted.size() < count) call.refuse("output_shape has too few sizes");
  const std::string auto_pad = call.text("auto_pad", "NOTSET");

  Windows windows;
  for (std::size_t i = 0; i < count; ++i) {
    windows.push_back(
        {0, kernel[i], element(strides, i, 1), element(dilations, i, 1), 0, 0, given[i + 2]});
    if (windows[i].stride < 1 || windows[i].dilation < 1)
      call.refuse("strides and dilations are positive");
    check_window(call, {kernel[i], windows[i].stride, windows[i].dilation, given[i + 2], pads[i],
                        pads[i + count], element(extra, i, 0)});
  }
  for (const std::int64_t size : wanted) {
    check_window(call, {size});
    if (size < 0) call.refuse(str("output_shape has the size ", size));
  }
  Convolution options = convolution_of(windows, groups);
  options.transposed = true;
  Tensor y = channels_second(
      conv(channels_last(x), transposed_filter(weight, groups), axes_from(1, count), options));
  for (std::size_t i = 0; i < count; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const AxisWindow& at = windows[i];
    const std::int64_t full =
        (at.count - 1) * at.stride + (at.kernel - 1) * at.dilation + 1 + element(extra, i, 0);
    std::int64_t size = full - pads[i] - pads[i + count];
    if (!wanted.empty() || auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      size = wanted.empty() ? at.count * at.stride : wanted[wanted.size() - count + i];
      const std::int64_t total = std::max<std::int64_t>(full - size, 0);
      const std::int64_t half = total / 2;
      pads[i] = auto_pad == "SAME_UPPER" ? half : total - half;
    }
    const std::int64_t made = y.dim(axis).size();
    y = slice(pad(y, axis, 0, std::max<std::int64_t>(pads[i] + size - made, 0)), axis, pads[i],
              pads[i] + size);
  }
  return {call.like(0, with_bias(call, y))};
}

// ---- Pooling ----------------------------------------------------------------------------------

Values run_average_pool(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Windows windows = windows_of(call, x, call.integers("kernel_shape"));
  // Elements count, and with count_include_pad the padding of the attribute, too.
  const bool counts_padding = call.flag("count_include_pad", false);
  Sizes ones_of(2, 1);
  for (const AxisWindow& at : windows) ones_of.push_back(at.size);
  Tensor counted = ones(Dims(ones_of.begin(), ones_of.end()), x.dtype());
  Windows around = windows;
  for (std::size_t i = 0; counts_padding && i < windows.size(); ++i) {
    counted = pad(counted, static_cast<int>(i) + 2, windows[i].before, windows[i].after, 1);
    around[i].before = around[i].after = 0;
  }
  Dims kernel;
  for (const AxisWindow& at : windows) kernel.emplace_back(at.kernel);
  const auto sums = [&](const Tensor& of, const Windows& windows) {
    return conv(of, ones(kernel, x.dtype()), axes_from(2, windows.size()),
                convolution_of(windows, 1));
  };
  return {call.like(0, sums(x, windows) / sums(counted, around))};
}

double lowest_of(DType dtype) {
  return is_float(dtype) ? -std::numeric_limits<double>::infinity()
                         : static_cast<double>(std::numeric_limits<std::int32_t>::min());
}

/// The second output has the flat position of each largest element in x.
Values run_max_pool(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Windows windows = windows_of(call, x, call.integers("kernel_shape"));
  const std::size_t count = windows.size();
  if (!call.wants(1)) {
    const Convolution options = convolution_of(windows, 1);
    Sizes size;
    for (const AxisWindow& at : windows) size.push_back(at.kernel);
    return {call.like(0, max_pool(x, axes_from(2, count),
                                  {.size = size,
                                   .stride = options.stride,
                                   .dilation = options.dilation,
                                   .padding = options.padding}))};
  }
  const Tensor all = unfolded(call, x, windows, lowest_of(x.dtype()));
  Values results{call.like(0, max(all, Axes(kernel_axes(count))))};

  std::vector<Axis> order{0, 1};
  for (const Axis& axis : place_axes(count)) order.push_back(axis);
  for (const Axis& axis : kernel_axes(count)) order.push_back(axis);
  Sizes shape{x.dim(0).size(), x.dim(1).size()};
  for (const AxisWindow& at : windows) shape.push_back(at.count);
  std::int64_t kernel = 1;
  for (const AxisWindow& at : windows) kernel *= at.kernel;
  shape.push_back(kernel);
  const auto by_window = [&](const Tensor& t) { return reshape(transpose(t, Axes(order)), shape); };
  Sizes sizes = x.shape();
  Tensor positions = reshape(range(product(sizes), i64), sizes);
  if (call.flag("storage_order", false)) {  // the first spatial axis varies fastest
    std::vector<Axis> swapped{0, 1};
    for (int axis = x.rank() - 1; axis >= 2; --axis) swapped.emplace_back(axis);
    std::reverse(sizes.begin() + 2, sizes.end());
    positions = transpose(reshape(range(product(sizes), i64), sizes), Axes(swapped));
  }
  const Tensor largest = argmax(by_window(all), -1);
  const Tensor candidates = by_window(unfolded(call, positions, windows, 0));
  const std::int64_t places = largest.numel();
  const Tensor chosen = gather(reshape(candidates, {places, kernel}), reshape(largest, {places}), 1,
                               {.batch_dims = 1});
  results.push_back(Value::of(reshape(chosen, largest.dims())));
  return results;
}

/// Puts elements back to the positions that MaxPool returned; others are 0.
Values run_max_unpool(const Call& call) {
  const Tensor &x = call.tensor(0), &positions = call.tensor(1);
  const Sizes given = x.shape(), kernel = call.integers("kernel_shape"),
              strides = call.integers("strides"), pads = call.integers("pads");
  if (kernel.size() + 2 != given.size()) call.refuse("kernel_shape does not fit");
  for (const Sizes* list : {&kernel, &strides, &pads, &given})
    for (const std::int64_t number : *list) check_window(call, {number});
  Sizes inner(given.begin(), given.begin() + 2);
  for (std::size_t i = 0; i < kernel.size(); ++i)
    inner.push_back((given[i + 2] - 1) * element(strides, i, 1) + kernel[i] - element(pads, i, 0) -
                    element(pads, i + kernel.size(), 0));
  // Positions count in the inferred shape; output_shape is larger, with the elements at its front.
  const Sizes outer = call.has(2) ? call.known_integers(2) : inner;
  std::int64_t elements = 1;
  for (const std::int64_t size : inner)
    if (size < 0 || __builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements))
      call.refuse(str("the result would have an axis of size ", size));
  for (const std::int64_t size : outer) check_window(call, {size});
  const Tensor flat = scatter_add(zeros({Dim(product(inner))}, x.dtype()), reshape(positions, {-1}),
                                  reshape(x, {-1}), 0);
  Tensor y = reshape(flat, inner);
  for (std::size_t i = 2; i < outer.size() && i < inner.size(); ++i)
    y = pad(y, static_cast<int>(i), 0, std::max<std::int64_t>(outer[i] - inner[i], 0));
  return {call.like(0, y)};
}

template <class Fn>
Values global_pool(const Call& call, Fn fn) {
  const Tensor& x = call.tensor(0);
  std::vector<Axis> axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.emplace_back(axis);
  return {call.like(0, fn(x, Axes(axes)))};
}
Values run_global_average_pool(const Call& call) {
  return global_pool(call,
                     [](const Tensor& x, const Axes& axes) { return mean(x, axes, Keep::yes); });
}
Values run_global_max_pool(const Call& call) {
  return global_pool(call,
                     [](const Tensor& x, const Axes& axes) { return max(x, axes, Keep::yes); });
}

const Rule kRules[] = {
    {"AveragePool", run_average_pool},
    {"Conv", run_conv},
    {"ConvTranspose", run_conv_transpose},
    {"GlobalAveragePool", run_global_average_pool},
    {"GlobalMaxPool", run_global_max_pool},
    {"MaxPool", run_max_pool},
    with_numbers({2}, {"MaxUnpool", run_max_unpool, "", 9}),
};

}  // namespace

std::span<const Rule> window_rules() { return kRules; }

}  // namespace reel::imported
