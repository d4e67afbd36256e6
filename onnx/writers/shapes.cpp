// Writers of ops that arrange elements: reshapes, slices, padding.
#include <limits>
#include <numeric>

#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/merge.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/positions.h"

namespace reel::exported {
namespace {

constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

const Dim& dim_of(const TensorType& type, int axis) {
  return type.dims()[static_cast<std::size_t>(axis)];
}
Name slice(GraphWriter& to, const Name& x, int axis, std::int64_t begin, std::int64_t end,
           std::int64_t step) {
  ModelWriter& model = to.model();
  return to.add("Slice", {x, model.integers({begin}), model.integers({end}), model.integers({axis}),
                          model.integers({step})});
}

Names write_transpose(const WriteCall& call) {
  return {call.to.transpose(call.in(0), call.attr<TransposeAttrs>().order)};
}
Names write_reshape(const WriteCall& call) {
  return {call.to.reshape(call.in(0), call.type_out().dims())};
}
Names write_reshape_like(const WriteCall& call) {
  if (call.type_out().is_known()) return write_reshape(call);
  return {call.to.add("Reshape", {call.in(0), call.to.add("Shape", {call.in(1)})},
                      {{"allowzero", integer(1)}})};
}

/// Drops axes of one element that are not in the result, and adds axes.
Names write_expand(const WriteCall& call) {
  const ExpandAttrs& attrs = call.attr<ExpandAttrs>();
  const int rank = call.type_in(0).rank();
  std::vector<int> dropped, places(static_cast<std::size_t>(rank), -1), order, added;
  for (int axis = 0, kept = 0; axis < rank; ++axis) {
    const bool is_kept = std::find(attrs.from.begin(), attrs.from.end(), axis) != attrs.from.end();
    if (is_kept)
      places[static_cast<std::size_t>(axis)] = kept++;
    else
      dropped.push_back(axis);
  }
  for (std::size_t i = 0; i < attrs.from.size(); ++i) {
    if (attrs.from[i] < 0)
      added.push_back(static_cast<int>(i));
    else
      order.push_back(places[static_cast<std::size_t>(attrs.from[i])]);
  }
  GraphWriter& to = call.to;
  const Name thin = to.unsqueeze(to.transpose(to.squeeze(call.in(0), dropped), order), added);
  for (const Dim& dim : attrs.added)
    if (known_size(dim) != 1) return {to.expand(thin, call.type_out().dims())};
  return {thin};
}

Names write_slice(const WriteCall& call) {
  const SliceAttrs& attrs = call.attr<SliceAttrs>();
  return {
      slice(call.to, call.in(0), attrs.axis, attrs.begin, attrs.end.value_or(kEnd), attrs.step)};
}

/// Pads an axis up to the size of the result. before: i64[1].
Name pad_to(const WriteCall& call, int axis, const Name& before, const Name& size) {
  GraphWriter& to = call.to;
  const TensorType& x = call.type_in(0);
  const auto rank = static_cast<std::size_t>(x.rank());
  const Name filled = to.add("Add", {before, to.size(dim_of(x, axis))});
  const Name after = to.add("Sub", {size, filled});
  const Name none = to.model().integers({0});
  Names pads(2 * rank, none);
  pads[static_cast<std::size_t>(axis)] = before;
  pads[rank + static_cast<std::size_t>(axis)] = after;
  return to.add("Pad", {call.in(0), to.concat(pads, 0), to.model().number(0, x.dtype())});
}

/// Returns the size of an axis of the result: from the types, or from a second input.
Name size_out(const WriteCall& call, int axis) {
  if (call.count_in() == 1) return call.to.size(dim_of(call.type_out(), axis));
  return call.to.add("Shape", {call.in(1)}, {{"start", integer(axis)}, {"end", integer(axis + 1)}});
}

/// Writes x's elements `step` positions apart, with zeros behind each: a new axis of `step`
/// elements, all but the first of them zeros, merged with the axis.
Name spread_apart(const WriteCall& call, int axis, std::int64_t step) {
  GraphWriter& to = call.to;
  const TensorType& x = call.type_in(0);
  const auto rank = static_cast<std::size_t>(x.rank()), at = static_cast<std::size_t>(axis);
  std::vector<std::int64_t> pads(2 * rank + 2);
  pads[rank + 1 + at + 1] = step - 1;
  const Name wide = to.add("Pad", {to.unsqueeze(call.in(0), {axis + 1}), to.model().integers(pads),
                                   to.model().number(0, x.dtype())});
  Names sizes;
  for (std::size_t i = 0; i < rank; ++i) {
    const Name size = to.size(x.dims()[i]);
    sizes.push_back(i == at ? to.add("Mul", {size, to.model().integers({step})}) : size);
  }
  return to.add("Reshape", {wide, to.concat(sizes, 0)}, {{"allowzero", integer(1)}});
}

/// Writes x into a part of zeros. A begin that counts from the end becomes a position.
Names write_unslice(const WriteCall& call) {
  GraphWriter& to = call.to;
  const SliceAttrs& attrs = call.attr<SliceAttrs>();
  const Name size = size_out(call, attrs.axis);
  Name before = to.model().integers({attrs.begin});
  if (attrs.begin < 0)
    before = to.add("Max", {to.add("Add", {size, before}), to.model().integers({0})});
  if (attrs.step == 1) return {pad_to(call, attrs.axis, before, size)};
  const auto rank = static_cast<std::size_t>(call.type_in(0).rank()),
             axis = static_cast<std::size_t>(attrs.axis);
  Names pads(2 * rank, to.model().integers({0}));
  pads[axis] = before;
  pads[rank + axis] = size;  // cut below: the result may end within the last element's step
  const Name longer = to.add("Pad", {spread_apart(call, attrs.axis, attrs.step), to.concat(pads, 0),
                                     to.model().number(0, call.type_in(0).dtype())});
  return {
      to.add("Slice", {longer, to.model().integers({0}), size, to.model().integers({attrs.axis})})};
}

/// Pads x. Booleans are padded as integers, which more runtimes support.
Name padded(GraphWriter& to, const Name& x, DType dtype, const std::vector<std::int64_t>& pads,
            double value) {
  ModelWriter& model = to.model();
  if (dtype != boolean) return to.add("Pad", {x, model.integers(pads), model.number(value, dtype)});
  const Name numbers =
      to.add("Pad", {to.cast(x, i32), model.integers(pads), model.number(value != 0, i32)});
  return to.cast(numbers, boolean);
}

Names write_pad(const WriteCall& call) {
  const PadAttrs& attrs = call.attr<PadAttrs>();
  const auto rank = static_cast<std::size_t>(call.type_in(0).rank());
  std::vector<std::int64_t> pads(2 * rank);
  pads[static_cast<std::size_t>(attrs.axis)] = attrs.before;
  pads[rank + static_cast<std::size_t>(attrs.axis)] = attrs.after;
  return {padded(call.to, call.in(0), call.type_in(0).dtype(), pads, attrs.value)};
}

/// Along a ragged dim, each entry is reversed within its own length, and padding stays in place.
Names write_reverse(const WriteCall& call) {
  GraphWriter& to = call.to;
  const int axis = call.attr<ReverseAttrs>().axis;
  const TensorType& type = call.type_in(0);
  if (!is_masked(type, axis))
    return {slice(to, call.in(0), axis, -1, std::numeric_limits<std::int64_t>::min() + 1, -1)};
  const Dim& dim = dim_of(type, axis);
  const Name own = to.aligned(to.range(dim, i64), {dim}, type.dims());
  const Name lengths = to.aligned(to.cast(to.lengths(dim), i64), dim.length_dims(), type.dims());
  const Name left = to.add("Sub", {lengths, own});
  const Name opposite = to.add("Sub", {left, to.model().integer(1)});
  const Name is_inside = to.add("Greater", {left, to.model().integer(0)});
  const Name places = to.add("Where", {is_inside, opposite, own});
  return {take_elements(to, call.in(0), to.expand(places, type.dims()), axis)};
}

/// Returns x with one more element, the value, at the end of an axis.
Name with_element(GraphWriter& to, const Name& x, const TensorType& type, int axis, double value) {
  const auto rank = static_cast<std::size_t>(type.rank());
  std::vector<std::int64_t> pads(2 * rank);
  pads[rank + static_cast<std::size_t>(axis)] = 1;
  return padded(to, x, type.dtype(), pads, value);
}

/// result[p] = x[p + offset], or the value outside x.
Names write_shift(const WriteCall& call) {
  GraphWriter& to = call.to;
  const ShiftAttrs& attrs = call.attr<ShiftAttrs>();
  const TensorType& x = call.type_in(0);
  const Dims& dims = call.type_out().dims();
  const Dim& dim = dim_of(call.type_out(), attrs.axis);
  const Name offsets = to.aligned(to.cast(call.in(1), i64), call.type_in(1).dims(), dims);
  std::vector<int> behind(dims.size() - 1 - static_cast<std::size_t>(attrs.axis));
  std::iota(behind.begin(), behind.end(), 1);
  const Name own = to.unsqueeze(to.range(dim, i64), behind);
  const Name places = to.add("Add", {own, offsets});
  const Name size = to.size(dim_of(x, attrs.axis)), zero = to.model().integers({0});
  const Name is_inside =
      to.add("And", {to.add("GreaterOrEqual", {places, zero}), to.add("Less", {places, size})});
  const Name known = to.add("Where", {is_inside, places, size});
  const Name longer = with_element(to, call.in(0), x, attrs.axis, attrs.value);
  return {take_elements(to, longer, to.expand(known, dims), attrs.axis)};
}

const Writer kWriters[] = {
    {"transpose", write_transpose},
    {"reshape", write_reshape},
    {"reshape_like", write_reshape_like},
    {"expand", write_expand},
    {"slice", write_slice},
    {"unslice", write_unslice},
    {"pad", write_pad},
    {"shift", write_shift},
    {"reverse", write_reverse},
    {"merge_dims", write_reshape},
    {"split_dim", write_reshape},
};

}  // namespace

std::span<const Writer> shape_writers() { return kWriters; }

}  // namespace reel::exported
