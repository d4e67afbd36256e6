// The function conv: finds the axes of its operands, by name or by position.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/functions/convolutions.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/core/ops/convolutions/convolutions.h"
#include "reel/core/ops/convolutions/window_arguments.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/sliced_dims.h"

namespace reel {
namespace {

constexpr std::string_view kName = "conv";

/// The axes of x and of the filter by their use, as positions.
struct ConvAxes {
  std::vector<int> spatial, groups, ins;           ///< of x
  std::vector<int> taps, f_groups, f_ins, f_outs;  ///< of the filter
};

int axis_of(const TensorType& type, const Dim& dim, std::string_view role, std::string_view use) {
  if (!dim.is_named())
    throw ArgumentError(str(kName, ": ", use, " is the plain size ", dim, ", but ", role, ' ', type,
                            " has named dims; give a Dim of it"));
  const int axis = find_axis(type.dims(), dim);
  if (axis < 0)
    throw ShapeError(str(kName, ": ", role, ' ', type, " has no dim ", dim, ", which ", use,
                         " names", lacking_dim_hint(dim, type.dims())));
  return axis;
}

/// Returns the axes of named operands. With `groups`, the filter has a dim of a group's channels.
ConvAxes named_axes(const TensorType& x, const TensorType& f, std::vector<int> spatial,
                    const Convolution& options) {
  ConvAxes axes{};
  axes.spatial = std::move(spatial);
  if (options.taps.size() != axes.spatial.size())
    throw ArgumentError(str(kName, ": the option taps has ", options.taps.size(),
                            " dims of the filter ", f, ", but windows run over ",
                            axes.spatial.size(), axes.spatial.size() == 1 ? " axis" : " axes",
                            " of x ", x, "; give a dim of the filter for each: {.taps = {taps}, ",
                            ".in = {in}}"));
  for (const Dim& dim : options.taps) axes.taps.push_back(axis_of(f, dim, "filter", "taps"));
  if (options.groups > 1 && options.in.size() != 1)
    throw ArgumentError(str(kName, ": groups needs one dim `in`, got ", options.in.size()));
  for (const Dim& dim : options.in) {
    axes.ins.push_back(axis_of(x, dim, "x", "in"));
    if (has(axes.spatial, axes.ins.back()))
      throw ArgumentError(str(kName, ": windows run over ", dim,
                              ", which is in `in`, too; let them ", "run over another dim of x ", x,
                              ", such as time"));
    const Dim of_group = options.groups > 1 ? dim_over(dim, options.groups) : dim;
    if (options.groups > 1 && find_axis(f.dims(), of_group) < 0)
      throw ShapeError(str(kName, ": filter ", f, " has no dim ", of_group,
                           ", the channels of one ", "of ", options.groups,
                           " groups; make it with {taps, in / ", options.groups,
                           ", out}, where in is ", dim));
    axes.f_ins.push_back(axis_of(f, of_group, "filter", "in"));
  }
  for (int axis = 0; axis < f.rank(); ++axis) {
    if (has(axes.taps, axis) || has(axes.f_ins, axis)) continue;
    const int in_x = find(x.dims(), dim_at(f, axis));
    if (in_x < 0 || has(axes.ins, in_x) || has(axes.spatial, in_x)) {
      axes.f_outs.push_back(axis);
    } else {
      axes.groups.push_back(in_x);
      axes.f_groups.push_back(axis);
    }
  }
  return axes;
}

/// Returns the axes of plain operands: x [..., in], filter [taps..., in, out]; or a filter
/// [taps...] for every channel.
ConvAxes plain_axes(const TensorType& x, const TensorType& f, std::vector<int> spatial,
                    const Convolution& options) {
  if (!options.taps.empty() || !options.in.empty())
    throw ArgumentError(str(kName, ": taps and in name dims, but x ", x, " and filter ", f,
                            " have plain ones; leave them out"));
  const int count = static_cast<int>(spatial.size()), channel = x.rank() - 1;
  const bool has_channels = f.rank() != count;
  if (has_channels && (f.rank() != count + 2 || has(spatial, channel)))
    throw ShapeError(str(kName, ": x ", x, " and filter ", f, " over ", count,
                         count == 1 ? " axis" : " axes",
                         ": plain operands are x [..., in] and filter [taps..., in, out]; ",
                         "transpose PyTorch's, which are [batch, in, ...] and [out, in, taps...]"));
  ConvAxes axes{};
  axes.spatial = std::move(spatial);
  if (has_channels) {
    axes.ins = {channel};
    axes.f_ins = {count};
    axes.f_outs = {count + 1};
  }
  for (int axis = 0; axis < count; ++axis) axes.taps.push_back(axis);
  return axes;
}

/// Splits the channels of x and the outer dim of the filter into groups.
void split_groups(Tensor& x, Tensor& f, ConvAxes& axes, std::int64_t groups) {
  if (axes.f_outs.size() != 1)
    throw ShapeError(str(kName, ": groups splits one dim of the filter, but ", f.type(), " has ",
                         axes.f_outs.size(), " dims of the result"));
  const Dim &in = dim_at(x.type(), axes.ins[0]), &each = dim_at(f.type(), axes.f_ins[0]),
            &out = dim_at(f.type(), axes.f_outs[0]);
  if (out.size() % groups)
    throw ShapeError(
        str(kName, ": ", groups, " groups do not divide ", out, " of filter ", f.type()));
  if (in.has_size() && each.has_size() && in.size() != groups * each.size())
    throw ShapeError(str(kName, ": x ", x.type(), " has ", in, " input channels, but filter ",
                         f.type(), " has ", each, " for each of ", groups, " groups, ",
                         groups * each.size(), " together"));
  const bool is_named = x.type().is_named();
  const Dim group = is_named ? Dim("group", groups) : Dim(groups);
  const Dim outs = is_named ? Dim(out.name(), out.size() / groups) : Dim(out.size() / groups);
  const auto behind = [](std::vector<int>& positions, int axis) {
    for (int& position : positions) position += position > axis;
  };
  x = split_dim(x, axes.ins[0], {group, each});
  axes.groups = {axes.ins[0]};
  for (std::vector<int>* positions : {&axes.spatial, &axes.ins}) behind(*positions, axes.ins[0]);
  ++axes.ins[0];
  f = split_dim(f, axes.f_outs[0], {group, outs});
  axes.f_groups = {axes.f_outs[0]};
  for (std::vector<int>* positions : {&axes.taps, &axes.f_ins}) behind(*positions, axes.f_outs[0]);
  ++axes.f_outs[0];
}

/// Appends the positions to an order of axes.
void append(std::vector<int>& order, const std::vector<int>& positions) {
  order.insert(order.end(), positions.begin(), positions.end());
}

/// Returns the order of a result with the axes [rows, windows, groups, outs], such that axes of x
/// have its order: first[i] is the position in x of the result's axis i, and outs follow.
std::vector<int> order_of_result(const std::vector<int>& first, std::size_t rank) {
  std::vector<int> order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<int>(i);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first.size()),
            [&](int a, int b) {
              return first[static_cast<std::size_t>(a)] < first[static_cast<std::size_t>(b)];
            });
  return order;
}

void check_operands(const Tensor& x, const Tensor& filter, const Convolution& options) {
  check_defined(kName, x);
  check_defined(kName, filter);
  if (x.type().is_named() != filter.type().is_named())
    throw ShapeError(str(kName, ": named and plain dims meet: x ", x.type(), ", filter ",
                         filter.type(), "; name the dims of both, as in reshape(x, {dim, ...})"));
  if (options.groups < 1)
    throw ArgumentError(str(kName, ": groups ", options.groups, "; it must be positive"));
}

}  // namespace

Tensor conv(const Tensor& given, const Tensor& filter, const Axes& over,
            const Convolution& options) {
  check_operands(given, filter, options);
  Tensor x = given, f = filter;
  if (has_slices()) meet_slices(std::array{&x, &f});
  const std::vector<int> spatial = window_axes(kName, x, over);
  ConvAxes axes = x.type().is_named() ? named_axes(x.type(), f.type(), spatial, options)
                                      : plain_axes(x.type(), f.type(), spatial, options);
  const std::optional<Dim> out = options.groups > 1 && axes.f_outs.size() == 1
                                     ? std::optional(dim_at(f.type(), axes.f_outs[0]))
                                     : std::nullopt;
  if (options.groups > 1) split_groups(x, f, axes, options.groups);

  std::vector<std::int64_t> taps;
  for (const int axis : axes.taps) taps.push_back(dim_at(f.type(), axis).size());
  ConvAttrs attrs{.groups = static_cast<int>(axes.groups.size()),
                  .ins = static_cast<int>(axes.ins.size()),
                  .outs = static_cast<int>(axes.f_outs.size())};
  attrs.windows = windows_of(
      {kName, axes.spatial, taps, options.stride, options.dilation, options.padding, options.to},
      x.type(), options.transposed);

  std::vector<int> x_order, f_order = axes.taps;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!has(axes.spatial, axis) && !has(axes.groups, axis) && !has(axes.ins, axis))
      x_order.push_back(axis);
  for (const auto* positions : {&axes.spatial, &axes.groups}) append(x_order, *positions);
  const std::vector<int> kept = x_order;
  append(x_order, axes.ins);
  append(f_order, axes.f_groups);
  if (options.transposed) {
    // The filter of a convolution with this gradient: x has its outs.
    append(f_order, axes.f_outs);
    append(f_order, axes.f_ins);
    std::swap(attrs.ins, attrs.outs);
  } else {
    append(f_order, axes.f_ins);
    append(f_order, axes.f_outs);
  }
  const Tensor y = masked_conv(options.transposed ? conv_input_op : conv_op,
                               {in_order(x, x_order), in_order(f, f_order)}, std::move(attrs));
  std::vector<int> order = order_of_result(kept, static_cast<std::size_t>(y.rank()));
  if (options.groups <= 1) return in_order(y, order);
  // The groups and the outs of a group are one axis, the last.
  const int group = static_cast<int>(kept.size()) - 1;
  std::erase(order, group);
  order.insert(order.end() - 1, group);
  const Tensor grouped = in_order(y, order);
  const int last = grouped.rank() - 1;
  return merge_dims(grouped, {last - 1, last},
                    out->is_named() ? std::optional(*out) : std::nullopt);
}

}  // namespace reel
