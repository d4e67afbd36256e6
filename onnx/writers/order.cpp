// Writers of ops that compute the order of elements. Padding comes behind all elements.
#include "reel/core/ops/indexing/sort.h"

#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/positions.h"

namespace reel::exported {
namespace {

/// Returns a mask of the elements that are no padding, as i32.
Name valid_elements(GraphWriter& to, const TensorType& type) {
  const Name yes = to.expand(to.model().integer(1, i32), type.dims());
  return to.mask_padding(yes, type.with(i32), to.model().integer(0, i32));
}

/// Positions along an axis in the order of the elements: first of valid elements, then of others.
struct Order {
  Name positions, valid;  ///< valid: 1 or 0, i32, for each of the positions
};
/// valid: of all positions. count: the number of results, i64[1]. TopK puts equal numbers in the
/// order of their positions.
Order valid_first(GraphWriter& to, const Name& positions, const Name& valid, int axis,
                  const Name& count) {
  const Names front = to.add("TopK", {valid, count}, 2, {{"axis", integer(axis)}});
  return {take_elements(to, positions, front[1], axis), front[0]};
}

/// Returns x as TopK takes it. Padding may be NaN, which has no place in an order.
Name sortable(const WriteCall& call) {
  const TensorType& x = call.type_in(0);
  const Name in = x.dtype() == boolean ? call.to.cast(call.in(0), i32) : call.in(0);
  const DType dtype = x.dtype() == boolean ? i32 : x.dtype();
  return call.to.mask_padding(in, x.with(dtype), call.to.model().number(0, dtype));
}

/// Returns all positions along an axis, by their elements. Padding stays in its place.
Names write_argsort(const WriteCall& call) {
  GraphWriter& to = call.to;
  const SortAttrs& attrs = call.attr<SortAttrs>();
  const TensorType& x = call.type_in(0);
  const Dim& dim = dim_at(x, attrs.axis);
  const Name count = to.size(dim);
  const Names sorted =
      to.add("TopK", {sortable(call), count}, 2,
             {{"axis", integer(attrs.axis)}, {"largest", integer(attrs.descending)}});
  if (!reduces_padding(x, {attrs.axis})) return {to.cast(sorted[1], i32)};
  const Name valid = valid_elements(to, x);
  const Order order = valid_first(to, sorted[1], take_elements(to, valid, sorted[1], attrs.axis),
                                  attrs.axis, count);
  // The n-th valid element gets the n-th position.
  const Name number =
      to.add("CumSum", {valid, to.model().integer(attrs.axis)}, {{"exclusive", integer(1)}});
  const Name made = take_elements(to, order.positions, to.cast(number, i64), attrs.axis);
  std::vector<int> behind;
  for (int i = 1; i < x.rank() - attrs.axis; ++i) behind.push_back(i);
  const Name own = to.unsqueeze(to.range(dim, i64), behind);
  return {to.cast(to.add("Where", {to.cast(valid, boolean), made, own}), i32)};
}

/// Returns a value with the dims of x with some adjacent axes merged into one.
Name with_merged_axes(GraphWriter& to, const Name& value, const TensorType& x,
                      const TopKAttrs& attrs) {
  if (attrs.count == 1) return value;
  const auto first = x.dims().begin() + attrs.axis, end = first + attrs.count;
  const Dims before(x.dims().begin(), first), behind(end, x.dims().end());
  // The size -1 does not go together with sizes of 0.
  Names sizes{to.add("ReduceProd", {to.shape(Dims(first, end))}, {{"keepdims", integer(1)}})};
  if (!before.empty()) sizes.insert(sizes.begin(), to.shape(before));
  if (!behind.empty()) sizes.push_back(to.shape(behind));
  return to.add("Reshape", {value, to.concat(sizes, 0)}, {{"allowzero", integer(1)}});
}

/// Returns x with as many zeros as `count` behind its elements along an axis.
Name with_zeros_behind(GraphWriter& to, const Name& x, int rank, int axis, const Name& count,
                       const Name& zero) {
  const auto none = [&](int number) {
    return to.model().integers(std::vector<std::int64_t>(static_cast<std::size_t>(number)));
  };
  Names pads{none(rank + axis), count};  // first those in front, for all axes
  if (axis + 1 < rank) pads.push_back(none(rank - axis - 1));
  return to.add("Pad", {x, to.concat(pads, 0), zero});
}

/// Returns the k first of the positions of valid elements. There may be fewer.
Order best_valid(const WriteCall& call, const Name& in) {
  GraphWriter& to = call.to;
  const TopKAttrs& attrs = call.attr<TopKAttrs>();
  const TensorType& x = call.type_in(0);
  const int rank = x.rank() - attrs.count + 1;
  const Name count =
      to.add("Shape", {in}, {{"start", integer(attrs.axis)}, {"end", integer(attrs.axis + 1)}});
  const Names sorted = to.add("TopK", {in, count}, 2, {{"axis", integer(attrs.axis)}});
  const Name valid = take_elements(to, with_merged_axes(to, valid_elements(to, x), x, attrs),
                                   sorted[1], attrs.axis);
  const Name k = to.size(attrs.k);
  const auto longer = [&](const Name& value, DType dtype) {
    return with_zeros_behind(to, value, rank, attrs.axis, k, to.model().integer(0, dtype));
  };
  return valid_first(to, longer(sorted[1], i64), longer(valid, i32), attrs.axis, k);
}

/// Results: the position along all axes together, -1 if there is none; then along each axis.
Names write_top_k(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TopKAttrs& attrs = call.attr<TopKAttrs>();
  const TensorType& x = call.type_in(0);
  const Name in = with_merged_axes(to, sortable(call), x, attrs);
  Name positions, together;
  if (reduces_padding(x, attrs.axes())) {
    const Order best = best_valid(call, in);
    const Name is_valid = to.cast(best.valid, boolean);
    positions = to.add("Where", {is_valid, best.positions, to.model().integer(0)});
    together = to.add("Where", {is_valid, best.positions, to.model().integer(-1)});
  } else {
    together = positions =
        to.add("TopK", {in, to.size(attrs.k)}, 2, {{"axis", integer(attrs.axis)}})[1];
  }
  Names result{to.cast(together, i32)};
  Name rest = positions;
  for (int i = attrs.count; i-- > 0;) {
    const Name size = to.size(dim_at(x, attrs.axis + i));
    const Name quotient = i ? to.add("Div", {rest, size}) : rest;
    const Name place = i ? to.add("Sub", {rest, to.add("Mul", {quotient, size})}) : rest;
    result.insert(result.begin() + 1, to.cast(place, i32));
    rest = quotient;
  }
  return result;
}

const Writer kWriters[] = {{"argsort", write_argsort}, {"top_k", write_top_k}};

}  // namespace

std::span<const Writer> order_writers() { return kWriters; }

}  // namespace reel::exported
