#include "reel/onnx/writers/uneven_lists.h"

#include <algorithm>

#include "reel/core/ops.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/lists.h"

namespace reel::exported {
namespace {

std::vector<int> open_axes(const TensorType& type) {
  std::vector<int> axes;
  for (std::size_t i = 0; i < type.dims().size(); ++i)
    if (known_size(type.dims()[i]) < 0) axes.push_back(static_cast<int>(i));
  return axes;
}

Name shape_of(GraphWriter& to, const Name& x) { return to.add("Shape", {x}); }
Name zeros_of(GraphWriter& to, std::size_t count) {
  return to.model().integers(std::vector<std::int64_t>(count, 0));
}

/// Returns x with zeros behind its elements such that each axis has at least the size in `sizes`,
/// i64[rank].
Name padded(GraphWriter& to, const Name& x, const Name& sizes, std::size_t rank, DType dtype) {
  const Name missing = to.add("Sub", {sizes, shape_of(to, x)});
  const Name more = to.add("Max", {missing, to.model().integers({0})});
  const Name pads = to.concat({zeros_of(to, rank), more}, 0);
  if (dtype == boolean)
    return to.cast(to.add("Pad", {to.cast(x, i32), pads, to.model().integer(0, i32)}), boolean);
  return to.add("Pad", {x, pads, to.model().number(0, dtype)});
}

std::size_t rank_of(const TensorType& list) { return static_cast<std::size_t>(list.rank()); }

/// Returns a list with at least the sizes of another tensor of the list's rank, i64[rank + 1].
UnevenList grown(GraphWriter& to, const UnevenList& list, const Name& sizes,
                 const TensorType& type) {
  const Name count = to.add("Slice", {sizes, to.model().integers({0}), to.model().integers({1})});
  const Name columns = to.model().integers({type.rank()});
  return {padded(to, list.elements, sizes, rank_of(type) + 1, type.dtype()),
          padded(to, list.sizes, to.concat({count, columns}, 0), 2, i64)};
}

/// Returns positions 0, 1, ... below a size, i64[1].
Name positions(GraphWriter& to, const Name& size) {
  return to.add("Range", {to.model().integer(0), to.squeeze(size, {0}), to.model().integer(1)});
}
Name largest_of(GraphWriter& to, const Name& lengths) {
  const Name all = to.concat({to.model().integers({0}), lengths}, 0);
  return to.add("ReduceMax", {all}, {{"axes", integers(std::vector<int>{0})}});
}
/// Returns the sizes of x behind its first `axes` axes.
Name sizes_behind(GraphWriter& to, const Name& x, int axes) {
  return to.add("Shape", {x}, {{"start", integer(axes)}});
}

}  // namespace

const Name& even(const GraphWriter& to, const Name& list) {
  if (to.model().element_sizes.count(list))
    throw NotExpressible{std::string(reason_against("list_resize"))};
  return list;
}

UnevenList uneven_list(GraphWriter& to, const Name& list, const TensorType& type) {
  const auto found = to.model().element_sizes.find(list);
  if (found != to.model().element_sizes.end()) return {list, found->second};
  const Name sizes = to.concat({list_size(to, list), to.model().integers({type.rank()})}, 0);
  return {list, to.add("Expand", {sizes_behind(to, list, 1), sizes})};
}

Name recorded(GraphWriter& to, const UnevenList& list) {
  to.model().element_sizes.insert_or_assign(list.elements, list.sizes);
  return list.elements;
}

UnevenList empty_uneven_list(GraphWriter& to, const TensorType& type) {
  Dims dims{Dim(0)};
  for (const Dim& dim : type.dims()) dims.emplace_back(std::max<std::int64_t>(known_size(dim), 0));
  return {to.model().constant(zeros(dims, type.dtype())),
          to.model().constant(zeros({Dim(0), Dim(type.rank())}, i64))};
}

UnevenList with_sizes(GraphWriter& to, const UnevenList& list,
                      const std::vector<std::int64_t>& sizes, const TensorType& type) {
  return grown(to, list, to.model().integers(sizes), type);
}

Name with_largest_sizes(GraphWriter& to, const UnevenList& list,
                        const std::vector<std::int64_t>& sizes, const TensorType& type) {
  const std::vector<int> open = open_axes(type);
  std::vector<std::int64_t> least, axes;
  for (const int axis : open) {
    least.push_back(sizes[static_cast<std::size_t>(axis)]);
    axes.push_back(axis + 1);
  }
  const Name columns =
      to.add("Gather", {list.sizes, to.model().integers({open.begin(), open.end()})},
             {{"axis", integer(1)}});
  const Name all =
      to.concat({to.model().constant(tensor(least, {Dim(1), Dim(open.size())})), columns}, 0);
  const Name ends = to.add("ReduceMax", {all},
                           {{"axes", integers(std::vector<int>{0})}, {"keepdims", integer(0)}});
  return to.add("Slice",
                {list.elements, zeros_of(to, open.size()), ends, to.model().integers(axes)});
}

UnevenList with_element(GraphWriter& to, const UnevenList& list, const Name& element,
                        const TensorType& type, bool in_front) {
  const Name sizes = shape_of(to, element);
  const Name largest = to.add("Max", {sizes_behind(to, list.elements, 1), sizes});
  const Name before =
      padded(to, list.elements, to.concat({list_size(to, list.elements), largest}, 0),
             rank_of(type) + 1, type.dtype());
  const Name one = to.unsqueeze(padded(to, element, largest, rank_of(type), type.dtype()), {0});
  const Name row = to.unsqueeze(sizes, {0});
  if (in_front) return {to.concat({one, before}, 0), to.concat({row, list.sizes}, 0)};
  return {to.concat({before, one}, 0), to.concat({list.sizes, row}, 0)};
}

Name element_at(GraphWriter& to, const UnevenList& list, const Name& index,
                const TensorType& type) {
  const Name element = to.add("Gather", {list.elements, index}, {{"axis", integer(0)}});
  const std::vector<int> open = open_axes(type);
  if (open.empty()) return element;
  const Name axes = to.model().integers({open.begin(), open.end()});
  const Name sizes = to.add("Gather", {list.sizes, index}, {{"axis", integer(0)}});
  const Name ends = to.add("Gather", {sizes, axes}, {{"axis", integer(0)}});
  return to.add("Slice", {element, zeros_of(to, open.size()), ends, axes});
}

UnevenList with_written(GraphWriter& to, const UnevenList& list, const Name& element,
                        const Name& index, const TensorType& type) {
  const Name sizes = shape_of(to, element);
  const Name count = to.add("Add", {index, to.model().integers({1})});
  const Name least = to.concat({count, sizes}, 0);
  const UnevenList long_enough = grown(to, list, least, type);
  const Name one =
      padded(to, element, sizes_behind(to, long_enough.elements, 1), rank_of(type), type.dtype());
  const Name place = to.unsqueeze(index, {0});
  return {to.add("ScatterND", {long_enough.elements, place, to.unsqueeze(one, {0})}),
          to.add("ScatterND", {long_enough.sizes, place, to.unsqueeze(sizes, {0})})};
}

Name element_like(GraphWriter& to, const UnevenList& list, const Name& index, const Name& like,
                  const TensorType& type) {
  const Name sizes = shape_of(to, like);
  const Name count = to.add("Add", {index, to.model().integers({1})});
  const UnevenList long_enough = grown(to, list, to.concat({count, sizes}, 0), type);
  const Name element =
      to.add("Gather", {long_enough.elements, to.squeeze(index, {0})}, {{"axis", integer(0)}});
  return type.rank() ? to.add("Slice", {element, zeros_of(to, rank_of(type)), sizes}) : element;
}

UnevenList extended(GraphWriter& to, const UnevenList& list, const UnevenList& more,
                    const Name& count, const TensorType& type) {
  const Name first = to.concat({count, sizes_behind(to, more.elements, 1)}, 0);
  const UnevenList front = grown(to, list, first, type);
  const Name second = to.concat({to.model().integers({0}), sizes_behind(to, front.elements, 1)}, 0);
  const UnevenList rest = grown(to, more, second, type);
  return {to.concat({front.elements, rest.elements}, 0), to.concat({front.sizes, rest.sizes}, 0)};
}

UnevenList sum_of(GraphWriter& to, const UnevenList& a, const UnevenList& b,
                  const TensorType& type) {
  const UnevenList left = grown(to, a, shape_of(to, b.elements), type),
                   right = grown(to, b, shape_of(to, a.elements), type);
  return {to.add("Add", {left.elements, right.elements}), to.add("Max", {left.sizes, right.sizes})};
}

UnevenList split(GraphWriter& to, const Name& x, const TensorType& x_type, const Name& lengths) {
  ModelWriter& model = to.model();
  const Name counts = to.cast(lengths, i64);
  const Name ends = to.add("CumSum", {counts, model.integer(0)});
  const Name begins = to.unsqueeze(to.add("Sub", {ends, counts}), {1});
  const Name places = to.add("Add", {begins, positions(to, largest_of(to, counts))});
  const Name is_inside = to.add("Less", {places, to.unsqueeze(ends, {1})});
  // A row of zeros, which others take, behind x.
  const Name size = to.add("Shape", {x}, {{"end", integer(1)}});
  const Name one_more =
      to.concat({to.add("Add", {size, model.integers({1})}), sizes_behind(to, x, 1)}, 0);
  const Name rows =
      padded(to, x, one_more, static_cast<std::size_t>(x_type.rank()), x_type.dtype());
  const Name elements =
      to.add("Gather", {rows, to.add("Where", {is_inside, places, size})}, {{"axis", integer(0)}});
  const Name count = list_size(to, counts);
  Names columns{to.unsqueeze(counts, {1})};
  if (x_type.rank() > 1) {
    const Name others = sizes_behind(to, x, 1);
    columns.push_back(
        to.add("Expand", {others, to.concat({count, model.integers({x_type.rank() - 1})}, 0)}));
  }
  return {elements, to.concat(columns, 1)};
}

Name joined(GraphWriter& to, const UnevenList& list, const TensorType& type, const Name& lengths) {
  const Name counts = to.cast(lengths, i64);
  const Name longest = largest_of(to, counts);
  const Name least =
      to.concat({list_size(to, counts), longest, sizes_behind(to, list.elements, 2)}, 0);
  const Name all = padded(to, list.elements, least, rank_of(type) + 1, type.dtype());
  const Name first = to.model().integers({0});
  const Name rows = to.add("Slice", {all, first, list_size(to, counts), first});
  const Name largest_axis = to.add("Shape", {rows}, {{"start", integer(1)}, {"end", integer(2)}});
  const Name places = positions(to, largest_axis);
  const Name is_inside = to.add("Less", {places, to.unsqueeze(counts, {1})});
  // The size -1 does not go together with sizes of 0.
  const Name count = to.add("Mul", {list_size(to, rows), largest_axis});
  const Name merged = to.concat({count, sizes_behind(to, rows, 2)}, 0);
  const Name flat = to.add("Reshape", {rows, merged}, {{"allowzero", integer(1)}});
  const Name kept = to.add("Reshape", {is_inside, count}, {{"allowzero", integer(1)}});
  return to.add("Compress", {flat, kept}, {{"axis", integer(0)}});
}

}  // namespace reel::exported
