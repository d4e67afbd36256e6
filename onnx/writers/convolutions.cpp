// Writers of convolutions and of their gradients, as nodes Conv and ConvTranspose.
#include "reel/core/ops/convolutions/convolutions.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "reel/core/ops/convolutions/window_max.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

/// Axes of a tensor, by their kinds; each kind becomes one axis, spatial ones stay.
struct Kinds {
  std::vector<int> batch, rows, spatial, groups, ins, outs;
};
std::vector<int> take(int& next, int count) {
  std::vector<int> axes;
  for (int i = 0; i < count; ++i) axes.push_back(next++);
  return axes;
}
/// Returns the axes of x or y. channels: the number of ins or outs.
Kinds kinds_of(const ConvAttrs& attrs, const TensorType& type, int channels) {
  Kinds kinds;
  int next = 0;
  kinds.batch = take(next, attrs.batch);
  kinds.rows = take(next, type.rank() - attrs.batch - attrs.spatial() - attrs.groups - channels);
  kinds.spatial = take(next, attrs.spatial());
  kinds.groups = take(next, attrs.groups);
  kinds.ins = take(next, channels);
  return kinds;
}
Kinds kinds_of_filter(const ConvAttrs& attrs) {
  Kinds kinds;
  int next = 0;
  kinds.batch = take(next, attrs.batch);
  kinds.spatial = take(next, attrs.spatial());
  kinds.groups = take(next, attrs.groups);
  kinds.ins = take(next, attrs.ins);
  kinds.outs = take(next, attrs.outs);
  return kinds;
}

/// Writes one convolution. The batch and the groups are the groups of the node.
class ConvWriter {
 public:
  /// has_windows: operand 0 is the result of a convolution, in place of x.
  explicit ConvWriter(const WriteCall& call, bool has_windows = false)
      : call_(call), attrs_(call.attr<ConvAttrs>()), has_windows_(has_windows) {
    if (call.type_out().dtype() != f32)
      throw NotExpressible{"onnxruntime's Conv and ConvTranspose take f32 alone"};
  }
  /// Returns zeros if no element of an operand, or of the result, is there: for such sizes Conv is
  /// open.
  bool is_empty() const {
    return is_known_empty(call_.type_in(0)) || is_known_empty(call_.type_in(1)) ||
           is_known_empty(call_.type_out());
  }
  Name zeros() const {
    return call_.to.expand(call_.to.model().number(0, f32), call_.type_out().dims());
  }

  /// x [rows, groups·ins, s...], f [groups·outs, ins, k...] -> [rows, groups·outs, windows...].
  Name write_forward() const {
    const Kinds x = kinds_of(attrs_, call_.type_in(0), attrs_.ins), f = kinds_of_filter(attrs_);
    const Name made =
        call_.to.add("Conv",
                     {grouped(0, {x.rows, joined(x.batch, x.groups, x.ins)}, x.spatial),
                      grouped(1, {joined(f.batch, f.groups, f.outs), f.ins}, f.spatial)},
                     attributes(false, true));
    const Kinds y = kinds_of(attrs_, call_.type_out(), attrs_.outs);
    return restored(made, joined(y.rows, joined(y.batch, y.groups, y.ins), y.spatial));
  }

  /// y [rows, groups·outs, windows...], f [groups·outs, ins, k...] -> [rows, groups·ins, s...].
  Name write_input() const {
    const Kinds y = kinds_of(attrs_, call_.type_in(0), attrs_.outs), f = kinds_of_filter(attrs_);
    Name made = call_.to.add("ConvTranspose",
                             {grouped(0, {y.rows, joined(y.batch, y.groups, y.ins)}, y.spatial),
                              grouped(1, {joined(f.batch, f.groups, f.outs), f.ins}, f.spatial)},
                             attributes(false, false));
    // The last elements of x may be in no window.
    std::vector<std::int64_t> behind;
    for (const Window& at : attrs_.windows)
      behind.push_back(std::max<std::int64_t>(at.stride - 1 - at.after, 0));
    made = padded(made, behind);
    const Kinds x = kinds_of(attrs_, call_.type_out(), attrs_.ins);
    for (std::size_t i = 0; i < x.spatial.size(); ++i)
      made = cut(made, static_cast<int>(i) + 2, attrs_.windows[i].before,
                 dim_at(call_.type_out(), x.spatial[i]));
    return restored(made, joined(x.rows, joined(x.batch, x.groups, x.ins), x.spatial));
  }

  /// x [ins, groups·rows, s...], y [groups·outs, rows, windows...] -> [ins, groups·outs, k...]:
  /// windows of x are multiplied by y, with its elements `stride` apart.
  Name write_filter() const {
    const Kinds x = kinds_of(attrs_, call_.type_in(0), attrs_.ins),
                y = kinds_of(attrs_, call_.type_in(1), attrs_.outs), f = kinds_of_filter(attrs_);
    Name made = call_.to.add("Conv",
                             {grouped(0, {x.ins, joined(x.batch, x.groups, x.rows)}, x.spatial),
                              grouped(1, {joined(y.batch, y.groups, y.ins), y.rows}, y.spatial)},
                             attributes(true, true));
    for (std::size_t i = 0; i < f.spatial.size(); ++i)
      made = cut(made, static_cast<int>(i) + 2, 0, dim_at(call_.type_out(), f.spatial[i]));
    return restored(made, joined(f.ins, joined(f.batch, f.groups, f.outs), f.spatial));
  }

 private:
  static std::vector<int> joined(std::vector<int> a, const std::vector<int>& b,
                                 const std::vector<int>& c) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), c.begin(), c.end());
    return a;
  }
  /// Returns the number of elements along some axes: i64[1].
  Name count(const TensorType& type, const std::vector<int>& axes) const {
    Name result;
    for (const int axis : axes) {
      const Name size = call_.to.size(dim_at(type, axis));
      result = result.empty() ? size : call_.to.add("Mul", {result, size});
    }
    return result.empty() ? call_.to.model().integers({1}) : result;
  }
  /// Returns an operand with these axes joined to two, and the spatial ones behind.
  Name grouped(std::size_t i, const std::vector<std::vector<int>>& front,
               const std::vector<int>& spatial) const {
    const TensorType& type = call_.type_in(i);
    Names sizes;
    for (const auto& axes : front) sizes.push_back(count(type, axes));
    for (const int axis : spatial) sizes.push_back(call_.to.size(dim_at(type, axis)));
    const Name turned = call_.to.transpose(call_.in(i), joined(front[0], front[1], spatial));
    return call_.to.add("Reshape", {turned, call_.to.concat(sizes, 0)},
                        {{"allowzero", integer(1)}});
  }
  /// Returns the result. order: its axes in the order in which `made` has them.
  Name restored(const Name& made, const std::vector<int>& order) const {
    Dims dims;
    for (const int axis : order) dims.push_back(dim_at(call_.type_out(), axis));
    std::vector<int> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    return call_.to.transpose(call_.to.reshape(made, dims), back);
  }
  Attributes attributes(bool is_of_filter, bool has_pads) const {
    std::vector<std::int64_t> strides, dilations, pads, after;
    for (const Window& at : attrs_.windows) {
      strides.push_back(is_of_filter ? at.dilation : at.stride);
      dilations.push_back(is_of_filter ? at.stride : at.dilation);
      pads.push_back(has_pads ? at.before : 0);
      after.push_back(has_pads ? at.after : 0);
    }
    pads.insert(pads.end(), after.begin(), after.end());
    std::int64_t groups = 1;
    const TensorType& x = call_.type_in(0);
    for (const std::vector<int>& axes : {kinds_of(attrs_, x, 0).batch, group_axes(x)})
      for (const int axis : axes) {
        const std::int64_t size = known_size(dim_at(x, axis));
        if (size < 0) throw NotExpressible{"a convolution with a number of groups of a run"};
        groups *= size;
      }
    return {{"group", integer(groups)},
            {"strides", integers(strides)},
            {"dilations", integers(dilations)},
            {"pads", integers(pads)}};
  }
  /// Returns the axes of groups of operand 0.
  std::vector<int> group_axes(const TensorType& type) const {
    return kinds_of(attrs_, type, has_windows_ ? attrs_.outs : attrs_.ins).groups;
  }
  /// Returns x with zeros behind its spatial axes, from the third on.
  Name padded(const Name& x, const std::vector<std::int64_t>& behind) const {
    if (std::ranges::all_of(behind, [](std::int64_t count) { return count == 0; })) return x;
    const std::size_t rank = behind.size() + 2;
    std::vector<std::int64_t> pads(2 * rank);
    std::copy(behind.begin(), behind.end(), pads.begin() + static_cast<std::ptrdiff_t>(rank + 2));
    ModelWriter& model = call_.to.model();
    return call_.to.add("Pad", {x, model.integers(pads), model.number(0, f32)});
  }
  /// Returns as many elements of an axis as the dim has, from `begin` on.
  Name cut(const Name& x, int axis, std::int64_t begin, const Dim& dim) const {
    ModelWriter& model = call_.to.model();
    Name end = call_.to.size(dim);
    if (begin) end = call_.to.add("Add", {end, model.integers({begin})});
    return call_.to.add("Slice", {x, model.integers({begin}), end, model.integers({axis})});
  }

  const WriteCall& call_;
  const ConvAttrs& attrs_;
  const bool has_windows_;
};

Names write_conv(const WriteCall& call) {
  const ConvWriter writer(call);
  return {writer.is_empty() ? writer.zeros() : writer.write_forward()};
}
Names write_conv_input(const WriteCall& call) {
  const ConvWriter writer(call, true);
  return {writer.is_empty() ? writer.zeros() : writer.write_input()};
}
Names write_conv_filter(const WriteCall& call) {
  const ConvWriter writer(call);
  return {writer.is_empty() ? writer.zeros() : writer.write_filter()};
}

// ---- The largest element of each window ---------------------------------------------------------

/// Returns the smallest value of the dtype.
Name lowest(ModelWriter& model, DType dtype) {
  if (dtype == i32) return model.integer(std::numeric_limits<std::int32_t>::min(), dtype);
  if (dtype == i64) return model.integer(std::numeric_limits<std::int64_t>::min(), dtype);
  return model.number(-std::numeric_limits<double>::infinity(), dtype);
}

/// Returns the elements that each tap reads, side by side along a new last axis. x: with padding.
Name elements_of_taps(GraphWriter& to, const Name& x, const std::vector<Window>& windows, int first,
                      int rank) {
  std::int64_t taps = 1;
  for (const Window& at : windows) taps *= at.taps;
  Names elements;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    std::vector<std::int64_t> begin, end, axes, steps;
    std::int64_t rest = tap;
    for (std::size_t i = windows.size(); i-- > 0; rest /= windows[i].taps) {
      const Window& at = windows[i];
      const std::int64_t offset = rest % at.taps * at.dilation, behind = reach_of(at) - 1 - offset;
      begin.push_back(offset);
      end.push_back(behind ? -behind : INT64_MAX);
      axes.push_back(first + static_cast<int>(i));
      steps.push_back(at.stride);
    }
    ModelWriter& model = to.model();
    const Name read = to.add("Slice", {x, model.integers(begin), model.integers(end),
                                       model.integers(axes), model.integers(steps)});
    elements.push_back(to.unsqueeze(read, {rank}));
  }
  return to.concat(elements, rank);
}

/// Writes slices rather than a MaxPool, which numbers elements otherwise, and refuses windows in
/// padding. A window without elements has tap 0, which only gradients would read.
Names write_window_max(const WriteCall& call) {
  GraphWriter& to = call.to;
  const auto& attrs = call.attr<PoolAttrs>();
  const TensorType& type = call.type_in(0);
  const int rank = type.rank(), first = rank - attrs.inner - attrs.spatial();
  const Name least = lowest(to.model(), type.dtype());
  if (is_known_empty(type) || is_known_empty(call.type_out()))
    return {to.expand(least, call.type_out().dims()),
            to.expand(to.model().integer(-1, i32), call.type_out().dims())};
  std::vector<std::int64_t> pads(2 * static_cast<std::size_t>(rank));
  for (int i = 0; i < attrs.spatial(); ++i) {
    const Window& at = attrs.windows[static_cast<std::size_t>(i)];
    pads[static_cast<std::size_t>(first + i)] = at.before;
    pads[static_cast<std::size_t>(rank + first + i)] = at.after;
  }
  const bool has_padding = std::ranges::any_of(pads, [](std::int64_t count) { return count != 0; });
  const Name x =
      has_padding ? to.add("Pad", {call.in(0), to.model().integers(pads), least}) : call.in(0);
  const Name elements = elements_of_taps(to, x, attrs.windows, first, rank);
  return {to.add("ReduceMax", {elements},
                 {{"axes", integers(std::vector<int>{rank})}, {"keepdims", integer(0)}}),
          to.cast(to.add("ArgMax", {elements}, {{"axis", integer(rank)}, {"keepdims", integer(0)}}),
                  i32)};
}

const Writer kWriters[] = {{"conv", write_conv},
                           {"conv_input", write_conv_input},
                           {"conv_filter", write_conv_filter},
                           {"window_max", write_window_max}};

}  // namespace

std::span<const Writer> convolution_writers() { return kWriters; }

}  // namespace reel::exported
