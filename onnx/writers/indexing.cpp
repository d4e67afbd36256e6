// Writers of ops that take or add elements by index.
#include <algorithm>
#include <functional>
#include <limits>

#include "reel/core/dims/dim_facts.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/positions.h"

namespace reel::exported {

Name take_elements(GraphWriter& to, const Name& x, const Name& positions, int axis) {
  return to.add("GatherElements", {x, positions}, {{"axis", integer(axis)}});
}

namespace {

/// A gather or scatter in the form of GatherElements: one axis of x, and a position for every
/// element of the result.
///
///   x:          the axes before, one axis for all indexed ones, the axes behind
///   positions:  the axes before, one axis for all new ones, the axes behind
class Indexing {
 public:
  explicit Indexing(const WriteCall& call)
      : call_(call),
        to_(call.to),
        attrs_(call.attr<GatherAttrs>()),
        x_(call.type_in(0)),
        indices_(call.type_in(1)),
        result_(x_.with(gathered_dims(x_, indices_, attrs_)).dims()) {}

  /// Returns the indices as positions, i64 with the dims of the indices, not negative unless they
  /// mean no element. Indices out of range stay out of range.
  Name places() {
    Name places = to_.cast(call_.in(1), i64);
    const Name zero = to_.model().integer(0);
    places = to_.mask_padding(places, indices_.with(i64),
                              attrs_.rule == IndexRule::optional ? to_.model().integer(-1) : zero);
    if (attrs_.rule == IndexRule::clip)  // -1 in an entry without elements
      return to_.add("Min", {to_.add("Max", {places, zero}), to_.add("Sub", {length(), one()})});
    if (attrs_.rule == IndexRule::optional) return places;
    const Name is_negative = to_.add("Less", {places, zero});
    // ONNX counts negative positions from the end. The size of the axis is out of range.
    if (attrs_.rule == IndexRule::strict)
      return to_.add("Where", {is_negative, to_.squeeze(count(), {0}), places});
    return to_.add("Where", {is_negative, to_.add("Add", {places, length()}), places});
  }

  /// Returns x with its indexed axes merged into one.
  Name merged(const Name& x) {
    if (attrs_.count == 1) return x;
    return to_.add("Reshape",
                   {x, sizes_with({x_.dims().begin() + attrs_.axis,
                                   x_.dims().begin() + attrs_.axis + attrs_.count},
                                  x_.dims(), attrs_.count)},
                   {{"allowzero", integer(1)}});
  }
  /// Returns a tensor with the dims of the result with its new axes merged into one.
  Name flat(const Name& x) {
    if (new_count() == 1) return x;
    const Dims added(result_.begin() + attrs_.axis, result_.begin() + attrs_.axis + new_count());
    return to_.add("Reshape", {x, sizes_with(added, result_, new_count())},
                   {{"allowzero", integer(1)}});
  }
  /// Returns a value over the dims of the indices, with the dims of the result.
  Name spread(const Name& over_indices) {
    std::vector<int> order, missing;
    std::vector<int> places_of(indices_.dims().size());
    int next = attrs_.axis;
    for (std::size_t k = 0; k < places_of.size(); ++k)
      places_of[k] = attrs_.matched[k] < 0 ? next++
                     : attrs_.matched[k] < attrs_.axis
                         ? attrs_.matched[k]
                         : attrs_.matched[k] - attrs_.count + new_count();
    for (std::size_t k = 0; k < places_of.size(); ++k) order.push_back(static_cast<int>(k));
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return places_of[static_cast<std::size_t>(a)] < places_of[static_cast<std::size_t>(b)];
    });
    for (int axis = 0; axis < static_cast<int>(result_.size()); ++axis)
      if (!std::count(places_of.begin(), places_of.end(), axis)) missing.push_back(axis);
    return to_.expand(to_.unsqueeze(to_.transpose(over_indices, order), missing), result_);
  }
  bool is_matched() const {
    return std::any_of(attrs_.matched.begin(), attrs_.matched.end(), [](int i) { return i >= 0; });
  }
  const Dims& result() const { return result_; }
  bool may_be_none() const {
    const bool clips_in_entries =
        attrs_.rule == IndexRule::clip && is_made_from_lengths(dim_at(x_, attrs_.axis));
    return attrs_.rule == IndexRule::optional || clips_in_entries;
  }
  Name is_element(const Name& places) {
    return to_.add("GreaterOrEqual", {places, to_.model().integer(0)});
  }
  /// True if no place may mean an element, because the indexed axes have none.
  bool may_be_empty() const {
    for (int i = 0; i < attrs_.count; ++i)
      if (known_size(dim_at(x_, attrs_.axis + i)) <= 0) return may_be_none();
    return false;
  }
  /// Returns the number of elements along the indexed axes: i64[1].
  Name count() {
    Name count = to_.size(dim_at(x_, attrs_.axis));
    for (int i = 1; i < attrs_.count; ++i)
      count = to_.add("Mul", {count, to_.size(dim_at(x_, attrs_.axis + i))});
    return count;
  }
  Name not_negative(const Name& places) {
    return may_be_none() ? to_.add("Max", {places, to_.model().integer(0)}) : places;
  }

 private:
  Name one() { return to_.model().integer(1); }
  int new_count() const {
    return static_cast<int>(
        std::count_if(attrs_.matched.begin(), attrs_.matched.end(), [](int i) { return i < 0; }));
  }
  /// Returns the number of positions that an index counts from the end of, for each index.
  Name length() {
    const Dim& dim = x_.dims()[static_cast<std::size_t>(attrs_.axis)];
    if (is_masked(x_, attrs_.axis) && attrs_.count == 1)
      return to_.aligned(to_.cast(to_.lengths(dim), i64), dim.length_dims(), indices_.dims());
    return to_.squeeze(count(), {0});
  }
  /// Returns the sizes of `all` with `count` axes from the indexed one replaced by one axis for
  /// `merged`.
  Name sizes_with(const Dims& merged, const Dims& all, int count) {
    Names parts;
    const auto add = [&](auto begin, auto end) {
      if (begin != end) parts.push_back(to_.shape(Dims(begin, end)));
    };
    add(all.begin(), all.begin() + attrs_.axis);
    Name product = to_.model().integers({1});
    for (const Dim& dim : merged) product = to_.add("Mul", {product, to_.size(dim)});
    parts.push_back(product);
    add(all.begin() + attrs_.axis + count, all.end());
    return to_.concat(parts, 0);
  }

  const WriteCall& call_;
  GraphWriter& to_;
  const GatherAttrs& attrs_;
  const TensorType &x_, &indices_;
  Dims result_;
};

/// Returns the result of `make`, or zeros of a type unless a condition holds.
Name zeros_unless(GraphWriter& to, const Name& condition, const TensorType& type,
                  const std::function<Name(GraphWriter&)>& make) {
  const auto branch = [&](const char* name, const std::function<Name(GraphWriter&)>& result) {
    InnerGraph inner(to.model(), name);
    GraphWriter inside(to.model(), inner.nodes(), to.graph(), &to);
    inner.add_output(inside, result(inside), type);
    return graph(inner.graph());
  };
  const Name sizes = to.shape(type.dims());
  const auto zeros = [&](GraphWriter& inside) {
    return inside.add("Expand", {to.model().number(0, type.dtype()), sizes});
  };
  return to.add(
      "If", {condition},
      {{"then_branch", branch("elements", make)}, {"else_branch", branch("none", zeros)}});
}

Names write_gather(const WriteCall& call) {
  GraphWriter& to = call.to;
  const GatherAttrs& attrs = call.attr<GatherAttrs>();
  Indexing indexing(call);
  const Name places = indexing.places(), valid = indexing.not_negative(places);
  const Name x = indexing.merged(call.in(0));
  const bool is_matched = indexing.is_matched();
  const Name at = is_matched ? indexing.flat(indexing.spread(valid)) : valid;
  const TensorType type(call.type_out().dtype(), indexing.result());
  const Name sizes = is_matched ? to.shape(type.dims()) : "";
  const auto take = [&](GraphWriter& in) {
    if (!is_matched) return in.add("Gather", {x, at}, {{"axis", integer(attrs.axis)}});
    const Name elements = take_elements(in, x, at, attrs.axis);
    return in.add("Reshape", {elements, sizes}, {{"allowzero", integer(1)}});
  };
  // Positions of an empty axis are no elements: none can be taken.
  const Name result =
      !indexing.may_be_empty()
          ? take(to)
          : zeros_unless(
                to, to.squeeze(to.add("Greater", {indexing.count(), to.model().integer(0)}), {0}),
                type, take);
  if (!indexing.may_be_none()) return {result};
  const Name is_element = indexing.spread(indexing.is_element(places));
  const DType dtype = call.type_out().dtype();
  return {to.where(is_element, result, to.model().number(0, dtype), dtype)};
}

/// Returns the updates of a scatter, with `neutral` at indices that mean no element and at padding
/// of the indices, which scatters skip.
Name counting_updates(const WriteCall& call, Indexing& indexing, const Name& places,
                      const Name& neutral) {
  GraphWriter& to = call.to;
  const TensorType& type = call.type_in(2);
  Name updates = call.in(2);
  if (indexing.may_be_none())
    updates =
        to.where(indexing.spread(indexing.is_element(places)), updates, neutral, type.dtype());
  return call.type_in(1).is_ragged() ? to.mask_padding(updates, type, neutral) : updates;
}

/// Returns x with a spare element behind the last one of an axis.
Name with_spare_element(GraphWriter& to, const Name& x, int axis, int rank, DType dtype) {
  std::vector<std::int64_t> pads(2 * static_cast<std::size_t>(rank));
  pads[static_cast<std::size_t>(rank + axis)] = 1;
  return to.add("Pad", {x, to.model().integers(pads), to.model().number(0, dtype)});
}
Name without_spare_element(GraphWriter& to, const Name& x, int axis) {
  ModelWriter& model = to.model();
  return to.add("Slice", {x, model.integers({0}), model.integers({-1}), model.integers({axis})});
}

/// Updates at indices that mean no element become zeros at position 0. An axis that may be empty
/// gets a spare element, so that it has this position.
Names write_scatter_add(const WriteCall& call) {
  GraphWriter& to = call.to;
  const GatherAttrs& attrs = call.attr<GatherAttrs>();
  Indexing indexing(call);
  const bool may_be_empty = indexing.may_be_empty();
  const Name places = indexing.places();
  const Name updates =
      counting_updates(call, indexing, places, to.model().number(0, call.type_in(2).dtype()));
  Name x = indexing.merged(call.in(0));
  if (may_be_empty)
    x = with_spare_element(to, x, attrs.axis, call.type_in(0).rank() - attrs.count + 1,
                           call.type_in(0).dtype());
  Name summed = to.add(
      "ScatterElements",
      {x, indexing.flat(indexing.spread(indexing.not_negative(places))), indexing.flat(updates)},
      {{"axis", integer(attrs.axis)}, {"reduction", text("add")}});
  if (may_be_empty) summed = without_spare_element(to, summed, attrs.axis);
  const bool has_other_axes = attrs.count > 1 || may_be_empty;
  return {has_other_axes ? to.reshape(summed, call.type_out().dims()) : summed};
}

/// Returns the least number of a dtype.
Name least_number(ModelWriter& model, DType dtype) {
  if (is_float(dtype)) return model.number(-std::numeric_limits<double>::infinity(), dtype);
  return model.integer(dtype == i32 ? std::numeric_limits<std::int32_t>::min()
                                    : std::numeric_limits<std::int64_t>::min(),
                       dtype);
}

/// ScatterElements takes maxima from op set 18 on only. Each element is the largest of itself and
/// the updates at its position: these are compared with all positions.
Names write_scatter_max(const WriteCall& call) {
  GraphWriter& to = call.to;
  const GatherAttrs& attrs = call.attr<GatherAttrs>();
  Indexing indexing(call);
  const Name places = indexing.places();
  const DType dtype = call.type_in(2).dtype();
  const Name least = least_number(to.model(), dtype);
  const Name updates = indexing.flat(counting_updates(call, indexing, places, least));
  const Name at = indexing.flat(indexing.spread(indexing.not_negative(places)));
  const Name x = indexing.merged(call.in(0));
  // One axis for the positions of x, one behind it for the updates.
  const int rank = call.type_in(0).rank() - attrs.count + 1;
  const Name count =
      to.add("Shape", {x}, {{"start", integer(attrs.axis)}, {"end", integer(attrs.axis + 1)}});
  const Name positions =
      to.add("Range", {to.model().integer(0), to.squeeze(count, {0}), to.model().integer(1)});
  std::vector<int> behind;
  for (int i = 1; i <= rank - attrs.axis; ++i) behind.push_back(i);
  const Name is_here =
      to.add("Equal", {to.unsqueeze(at, {attrs.axis}), to.unsqueeze(positions, behind)});
  const Name here = to.where(is_here, to.unsqueeze(updates, {attrs.axis}), least, dtype);
  const Name all = to.concat({here, to.unsqueeze(x, {attrs.axis + 1})}, attrs.axis + 1);
  const Name largest =
      to.add("ReduceMax", {all},
             {{"axes", integers(std::vector<int>{attrs.axis + 1})}, {"keepdims", integer(0)}});
  return {attrs.count == 1 ? largest : to.reshape(largest, call.type_out().dims())};
}

/// Returns the positions of true elements along the axis that the result has another dim for. TopK
/// takes the positions with the largest numbers: the earliest true ones. Missing ones are 0.
Names write_true_positions(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType &mask = call.type_in(0), &out = call.type_out();
  int axis = 0;
  while (axis + 1 < mask.rank() &&
         mask.dims()[static_cast<std::size_t>(axis)] == out.dims()[static_cast<std::size_t>(axis)])
    ++axis;
  const Dim &from = mask.dims()[static_cast<std::size_t>(axis)],
            &dim = out.dims()[static_cast<std::size_t>(axis)];
  const Name zero = to.model().integer(0);
  const Name left = to.add("Sub", {to.squeeze(to.size(from), {0}), to.range(from, i64)});
  std::vector<int> behind;
  for (int i = 1; i < mask.rank() - axis; ++i) behind.push_back(i);
  const Name numbers = to.add("Where", {call.in(0), to.unsqueeze(left, behind), zero});
  const Name count =
      dim.is_named() ? to.size(dim)
                     : to.add("ReduceSum", {to.cast(call.in(0), i64), to.model().integers({0})});
  const Names largest = to.add("TopK", {numbers, count}, 2, {{"axis", integer(axis)}});
  const Name places = to.add("Where", {to.add("Greater", {largest[0], zero}), largest[1], zero});
  return {to.cast(places, i32)};
}

const Writer kWriters[] = {
    {"true_positions", write_true_positions},
    {"gather", write_gather},
    {"scatter_add", write_scatter_add},
    {"scatter_max", write_scatter_max},
};

}  // namespace

std::span<const Writer> indexing_writers() { return kWriters; }

}  // namespace reel::exported
