// The type rules of convolutions.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/dims/axis.h"
#include "reel/core/ops/convolutions/conv_axes.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

const char* role_of(ConvOperand which) {
  return which == ConvOperand::x ? "x" : which == ConvOperand::f ? "filter" : "result";
}

/// Two operands of an application.
struct Pair {
  const TypeArgs& args;
  ConvOperand first, second;
  const ConvAttrs& attrs() const { return args.attr<ConvAttrs>(); }
  ConvAxesOf axes(std::size_t i) const { return {attrs(), i ? second : first, args.in[i].rank()}; }
  void check_dims(int in_first, int in_second, int count, const char* what) const {
    for (int i = 0; i < count; ++i) {
      const Dim &a = dim_at(args.in[0], in_first + i), &b = dim_at(args.in[1], in_second + i);
      const bool is_unknown = !a.is_named() && !b.is_named() && !(a.has_size() && b.has_size());
      if (!(a == b) && !is_unknown)
        throw ShapeError(str("conv: ", what, " differ: ", role_of(first), ' ', args.in[0], " has ",
                             a, ", ", role_of(second), ' ', args.in[1], " has ", b));
    }
  }
  /// Checks the operands as all three ops do.
  void check() const {
    const TensorType &a = args.in[0], &b = args.in[1];
    if (a.dtype() != b.dtype())
      throw DTypeError(str("conv: dtypes differ: ", role_of(first), ' ', a, ", ", role_of(second),
                           ' ', b, "; cast one of them"));
    if (a.dtype() == boolean)
      throw DTypeError(str("conv: booleans have no product: ", a, "; cast them"));
    for (const Window& at : attrs().windows)
      if (at.taps < 1 || at.stride < 1 || at.dilation < 1)
        throw ArgumentError(str("conv: taps ", at.taps, ", stride ", at.stride, " and dilation ",
                                at.dilation, " must be positive"));
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const bool is_filter = (i ? second : first) == ConvOperand::f;
      if (is_filter ? axes(i).spatial() != attrs().batch : axes(i).row_count() < 0)
        throw ShapeError(str("conv: ", role_of(i ? second : first), ' ', args.in[i],
                             " does not have the axes of a window"));
    }
    check_dims(0, 0, attrs().batch, "batch dims");
    check_dims(axes(0).groups(), axes(1).groups(), attrs().groups, "groups");
  }
  /// Checks the number of taps of a filter, operand i.
  void check_taps(std::size_t i) const {
    for (int axis = 0; axis < attrs().spatial(); ++axis) {
      const Dim& dim = dim_at(args.in[i], axes(i).spatial() + axis);
      const std::int64_t taps = attrs().windows[static_cast<std::size_t>(axis)].taps;
      if (dim.has_size() && dim.size() != taps)
        throw ShapeError(
            str("conv: filter ", args.in[i], " has ", dim, " where windows have ", taps, " taps"));
    }
  }
};

/// Appends dims first .. first + count - 1 of a type.
void append(Dims& to, const TensorType& from, int first, int count) {
  to.insert(to.end(), from.dims().begin() + first, from.dims().begin() + first + count);
}

/// count: of the windows that an axis `of_x` has.
[[noreturn]] void refuse_count(const TypeArgs& args, const Dim& of_x, const Dim& of_y,
                               std::int64_t count) {
  throw ShapeError(str("conv: transposed, ", args.in[0], " has windows along ", of_y, ", but the ",
                       "dim ", of_x, " of the result has ", count,
                       " windows; leave `to` out, or give the dim that was convolved"));
}

}  // namespace

void conv_type(TypeArgs& args) {
  const Pair pair{args, ConvOperand::x, ConvOperand::f};
  pair.check();
  pair.check_taps(1);
  const ConvAttrs& attrs = pair.attrs();
  const ConvAxesOf x = pair.axes(0), f = pair.axes(1);
  pair.check_dims(x.channels(), f.channels(), attrs.ins, "inner dims");
  Dims dims;
  append(dims, args.in[0], 0, x.spatial());
  for (int axis = 0; axis < attrs.spatial(); ++axis) {
    const Window& at = attrs.windows[static_cast<std::size_t>(axis)];
    const Dim& from = dim_at(args.in[0], x.spatial() + axis);
    const std::int64_t count = from.has_size() ? window_count(at, from.size()) : -1;
    dims.push_back(checked_dim("conv", at.to, count, [&] {
      return str("the axis of windows of ", at.taps, " over ",
                 axis_name(args.in[0], x.spatial() + axis));
    }));
  }
  append(dims, args.in[0], x.groups(), attrs.groups);
  append(dims, args.in[1], f.outs(), attrs.outs);
  args.out.push_back(args.in[0].with(dims));
}

void conv_input_type(TypeArgs& args) {
  const Pair pair{args, ConvOperand::y, ConvOperand::f};
  pair.check();
  pair.check_taps(1);
  const ConvAttrs& attrs = pair.attrs();
  const ConvAxesOf y = pair.axes(0), f = pair.axes(1);
  pair.check_dims(y.channels(), f.outs(), attrs.outs, "outer dims");
  Dims dims;
  append(dims, args.in[0], 0, y.spatial());
  for (int axis = 0; axis < attrs.spatial(); ++axis) {
    const Window& at = attrs.windows[static_cast<std::size_t>(axis)];
    const Dim& of_y = dim_at(args.in[0], y.spatial() + axis);
    const Dim dim = at.to ? *at.to
                    : args.in.size() > 2
                        ? dim_at(args.in[2], first_spatial_of_x(attrs, args.in[2]) + axis)
                    : of_y.has_size() ? Dim(windowed_size(at, of_y.size()))
                                      : Dim::unknown();
    if (dim.has_size() && of_y.has_size() && !has_no_entry(dim) && !has_no_entry(of_y) &&
        window_count(at, dim.size()) != of_y.size())
      refuse_count(args, dim, of_y, window_count(at, dim.size()));
    dims.push_back(dim);
  }
  append(dims, args.in[0], y.groups(), attrs.groups);
  append(dims, args.in[1], f.channels(), attrs.ins);
  args.out.push_back(args.in[0].with(dims));
}

void conv_filter_type(TypeArgs& args) {
  const Pair pair{args, ConvOperand::x, ConvOperand::y};
  pair.check();
  const ConvAttrs& attrs = pair.attrs();
  const ConvAxesOf x = pair.axes(0), y = pair.axes(1);
  if (x.row_count() != y.row_count())
    throw ShapeError(str("conv: rows differ: x ", args.in[0], ", result ", args.in[1]));
  pair.check_dims(x.rows(), y.rows(), x.row_count(), "rows");
  Dims dims;
  append(dims, args.in[0], 0, attrs.batch);
  for (int axis = 0; axis < attrs.spatial(); ++axis) {
    const Window& at = attrs.windows[static_cast<std::size_t>(axis)];
    const Dim &of_x = dim_at(args.in[0], x.spatial() + axis),
              &of_y = dim_at(args.in[1], y.spatial() + axis);
    if (of_x.has_size() && of_y.has_size() && !has_no_entry(of_x) && !has_no_entry(of_y) &&
        window_count(at, of_x.size()) != of_y.size())
      throw ShapeError(str("conv: ", of_y, " windows of ", args.in[1], " do not fit the axis ",
                           of_x, " of x ", args.in[0]));
    dims.push_back(checked_dim("conv_filter", at.to, at.taps, [&] { return "a window"; }));
  }
  append(dims, args.in[0], x.groups(), attrs.groups + attrs.ins);
  append(dims, args.in[1], y.outs(), attrs.outs);
  args.out.push_back(args.in[0].with(dims));
}

}  // namespace reel
