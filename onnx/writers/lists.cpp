// Writers of ops on lists.
#include "reel/onnx/writers/lists.h"

#include <algorithm>

#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/onnx/writer_registry.h"
#include "reel/onnx/writers/uneven_lists.h"

namespace reel::exported {

Name empty_list(GraphWriter& to, const TensorType& list) {
  Dims dims = list.dims();
  dims.insert(dims.begin(), Dim(0));
  const Name zero = to.model().number(0, list.dtype());
  // Plain sizes, since shape() does not mix them with named dims.
  return to.add("Expand", {zero, to.shape(dims)});
}

Name list_size(GraphWriter& to, const Name& list) {
  return to.add("Shape", {list}, {{"end", integer(1)}});
}

Name padded_list(GraphWriter& to, const Name& list, const TensorType& type, const Name& size) {
  ModelWriter& model = to.model();
  const auto rank = static_cast<std::size_t>(type.rank()) + 1;
  const Name missing = to.add("Sub", {size, list_size(to, list)});
  const Name more = to.add("Max", {missing, model.integers({0})});
  const Name pads = to.concat({model.integers(std::vector<std::int64_t>(rank, 0)), more,
                               model.integers(std::vector<std::int64_t>(rank - 1, 0))},
                              0);
  if (type.dtype() == boolean)
    return to.cast(to.add("Pad", {to.cast(list, i32), pads, model.integer(0, i32)}), boolean);
  return to.add("Pad", {list, pads, model.number(0, type.dtype())});
}

Name add_lists(GraphWriter& to, const Name& a, const Name& b, const TensorType& type) {
  return to.add("Add", {padded_list(to, a, type, list_size(to, b)),
                        padded_list(to, b, type, list_size(to, a))});
}

bool is_only_joined(const GraphWriter& at, ValueId list) {
  const Graph& graph = at.graph();
  const TensorType& type = at.type(list);
  if (type.dims().empty() || !is_open(type)) return false;
  for (std::size_t axis = 1; axis < type.dims().size(); ++axis)
    if (known_size(type.dims()[axis]) < 0) return false;
  const auto holds = [&](std::span<const ValueId> values) {
    return std::find(values.begin(), values.end(), list) != values.end();
  };
  if (holds(graph.outputs)) return false;
  const OpRecord* maker = nullptr;
  for (const OpRecord& record : graph.records) {
    if (holds(graph.inputs_of(record)) && record.op->name != "list_concat") return false;
    if (holds(graph.outputs_of(record))) maker = &record;
  }
  if (!maker || maker->op->name != "loop") return false;
  const auto& attrs = get<LoopAttrs>(maker->attrs.get());
  return holds(results_of(attrs, graph.outputs_of(*maker)).stacks);
}

bool reads_joined_lengths(const GraphWriter& at, ValueId list) {
  const Graph& graph = at.graph();
  for (const OpRecord& record : graph.records)
    if (record.op->name == "list_concat" && graph.inputs_of(record)[0] == list &&
        at.is_read(graph.outputs_of(record)[1]))
      return true;
  return false;
}

namespace {

const TensorType& list_type(const WriteCall& call) { return call.type_in(0); }
/// Returns true if elements of an input, a list, may differ in size.
bool is_uneven(const WriteCall& call, std::size_t i = 0) {
  return is_open(call.type_in(i)) || call.to.model().element_sizes.count(call.in(i));
}
UnevenList uneven(const WriteCall& call, std::size_t i = 0) {
  return uneven_list(call.to, call.in(i), call.type_in(i));
}
/// Throws NotExpressible if elements of a list may differ in size.
void check_equal_sizes(const WriteCall& call, const TensorType& list) {
  const bool is_input = call.count_in() && call.type_in(0).is_list();
  if (is_open(list) || (is_input && is_uneven(call)))
    throw NotExpressible{std::string(reason_against("list_resize"))};
}
void check_equal_sizes(const WriteCall& call) { check_equal_sizes(call, list_type(call)); }
/// Returns an index (an integer scalar) as i64[1].
Name as_vector(const WriteCall& call, std::size_t i) {
  return call.to.unsqueeze(call.to.cast(call.in(i), i64), {0});
}
/// Returns one more than an index: the size of a list that has it.
Name size_for(GraphWriter& to, const Name& index) {
  return to.add("Add", {index, to.model().integers({1})});
}
/// Returns one more than the largest of some indices, at least 0: i64[1].
Name size_for_all(GraphWriter& to, const Name& indices) {
  const Name all = to.concat({indices, to.model().integers({-1})}, 0);
  return size_for(to, to.add("ReduceMax", {all}, {{"axes", integers(std::vector<int>{0})}}));
}

Names write_new(const WriteCall& call) {
  const auto& attrs = call.attr<ListNewAttrs>();
  if (is_open(attrs.list.type)) {
    const UnevenList none = empty_uneven_list(call.to, attrs.list.type);
    if (!attrs.size) return {recorded(call.to, none)};
    std::vector<std::int64_t> sizes(attrs.list.type.dims().size() + 1);
    sizes[0] = attrs.size;
    return {recorded(call.to, with_sizes(call.to, none, sizes, attrs.list.type))};
  }
  Dims dims = attrs.list.type.dims();
  const Name zero = call.to.model().number(0, attrs.list.type.dtype());
  dims.insert(dims.begin(), Dim(attrs.size));
  const Name list = call.to.add("Expand", {zero, call.to.shape(dims)});
  if (!attrs.may_grow && attrs.size > 0) call.to.model().fixed_lists.insert(list);
  return {list};
}

bool is_fixed(const WriteCall& call) { return call.to.model().fixed_lists.count(call.in(0)) > 0; }
/// Returns a changed list, which never grows if the first input does not.
Names changed(const WriteCall& call, const Name& list) {
  if (is_fixed(call)) call.to.model().fixed_lists.insert(list);
  return {list};
}

Names write_write(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& type = list_type(call);
  if (is_uneven(call))
    return {
        recorded(to, is_list_push(call.record)
                         ? with_element(to, uneven(call), call.in(1), type)
                         : with_written(to, uneven(call), call.in(1), as_vector(call, 2), type))};
  const Name element = to.unsqueeze(call.in(1), {0});
  if (is_list_push(call.record)) return {to.concat({call.in(0), element}, 0)};
  const Name index = as_vector(call, 2);
  const Name list =
      is_fixed(call) ? call.in(0) : padded_list(to, call.in(0), type, size_for(to, index));
  return changed(call, to.add("ScatterND", {list, to.unsqueeze(index, {0}), element}));
}

/// Returns a boolean for each element: true at the indices, which have one axis.
Name is_among(GraphWriter& to, const Name& list, const Name& indices) {
  const Name places = to.add("Range", {to.model().integer(0), to.squeeze(list_size(to, list), {0}),
                                       to.model().integer(1)});
  return to.any(to.add("Equal", {to.unsqueeze(places, {1}), indices}), {1});
}
/// Returns a value over the elements such that it broadcasts to the list.
Name over_elements(GraphWriter& to, const Name& value, const TensorType& type) {
  std::vector<int> behind;
  for (int i = 1; i <= type.rank(); ++i) behind.push_back(i);
  return to.unsqueeze(value, behind);
}

Names write_drop(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& type = list_type(call);
  const Name indices = call.type_in(1).rank() ? to.cast(call.in(1), i64) : as_vector(call, 1);
  const Name dropped = over_elements(to, is_among(to, call.in(0), indices), type);
  const Name list = to.where(dropped, to.model().number(0, type.dtype()), call.in(0), type.dtype());
  if (is_uneven(call)) return {recorded(to, {list, uneven(call).sizes})};
  return changed(call, list);
}

Names write_read(const WriteCall& call) {
  GraphWriter& to = call.to;
  Name list = call.in(0);
  if (is_uneven(call) && !call.attr<ListReadAttrs>().is_lenient)
    return {element_at(to, uneven(call), to.cast(call.in(1), i64), list_type(call))};
  check_equal_sizes(call);
  if (call.attr<ListReadAttrs>().is_lenient)
    list = padded_list(to, list, list_type(call), size_for(to, as_vector(call, 1)));
  return {to.add("Gather", {list, to.cast(call.in(1), i64)}, {{"axis", integer(0)}})};
}
/// Unwritten elements are zeros of the sizes of the third input, which all elements have.
Names write_read_like(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name index = as_vector(call, 1);
  if (is_uneven(call)) return {element_like(to, uneven(call), index, call.in(2), list_type(call))};
  const Name list = padded_list(to, call.in(0), list_type(call), size_for(to, index));
  return {to.add("Gather", {list, to.squeeze(index, {0})}, {{"axis", integer(0)}})};
}
Names write_one_hot(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& type = call.type_out();
  if (is_open(type))
    return {recorded(
        to, with_written(to, empty_uneven_list(to, type), call.in(0), as_vector(call, 1), type))};
  const Name before = padded_list(to, empty_list(to, type), type, as_vector(call, 1));
  return {to.concat({before, to.unsqueeze(call.in(0), {0})}, 0)};
}
Names write_index(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name index = to.cast(call.in(1), i64);
  const Name size = to.squeeze(list_size(to, call.in(0)), {0});
  return {to.add("Where", {to.add("Less", {index, to.model().integer(0)}),
                           to.add("Add", {index, size}), index})};
}

Names write_stack(const WriteCall& call) {
  GraphWriter& to = call.to;
  const auto& attrs = call.attr<ListStackAttrs>();
  const TensorType& type = list_type(call);
  std::vector<std::int64_t> least;
  for (const Dim& dim : call.type_out().dims())
    least.push_back(std::max<std::int64_t>(known_size(dim), 0));
  const std::vector<std::int64_t> of_element(least.begin() + 1, least.end());
  // Elements have equal sizes, or it is an error.
  if (!attrs.is_lenient)
    return {is_uneven(call) ? with_largest_sizes(to, uneven(call), of_element, type) : call.in(0)};
  Name result = call.in(0);
  if (is_uneven(call))
    result = with_largest_sizes(to, with_sizes(to, uneven(call), least, type), of_element, type);
  if (!attrs.dim || !attrs.dim->has_size()) return {result};
  const Name size = to.size(*attrs.dim), zero = to.model().integers({0});
  return {to.add("Slice", {padded_list(to, result, type, size), zero, size, zero})};
}
Names write_first(const WriteCall& call) { return {call.in(0)}; }  // with its recorded sizes
Names write_size(const WriteCall& call) {
  return {call.to.cast(call.to.squeeze(list_size(call.to, call.in(0)), {0}), i32)};
}
Names write_zeros_like(const WriteCall& call) {
  const Name list = call.to.add("Expand", {call.to.model().number(0, list_type(call).dtype()),
                                           call.to.add("Shape", {call.in(0)})});
  if (is_uneven(call)) return {recorded(call.to, {list, uneven(call).sizes})};
  return {list};
}
Names write_add(const WriteCall& call) {
  if (is_uneven(call) || is_uneven(call, 1))
    return {recorded(call.to, sum_of(call.to, uneven(call), uneven(call, 1), list_type(call)))};
  return {add_lists(call.to, call.in(0), call.in(1), list_type(call))};
}

/// Returns true for each index that occurs again later.
Name occurs_later(GraphWriter& to, const Name& indices) {
  const Name count = to.add("Shape", {indices});
  const Name places =
      to.add("Range", {to.model().integer(0), to.squeeze(count, {0}), to.model().integer(1)});
  const Name is_same = to.add("Equal", {to.unsqueeze(indices, {1}), indices});
  const Name is_later = to.add("Less", {to.unsqueeze(places, {1}), places});
  return to.any(to.add("And", {is_same, is_later}), {1});
}
Name zero_if_later(GraphWriter& to, const Name& elements, const Name& indices,
                   const TensorType& type) {
  return to.where(over_elements(to, occurs_later(to, indices), type),
                  to.model().number(0, type.dtype()), elements, type.dtype());
}

Names write_gather(const WriteCall& call) {
  GraphWriter& to = call.to;
  const auto& attrs = call.attr<ListGatherAttrs>();
  const TensorType& type = list_type(call);
  check_equal_sizes(call);
  const Name indices = to.cast(call.in(1), i64);
  Name list = call.in(0);
  if (attrs.is_lenient) list = padded_list(to, list, type, size_for_all(to, indices));
  const Name elements = to.add("Gather", {list, indices}, {{"axis", integer(0)}});
  return {attrs.last_only ? zero_if_later(to, elements, indices, type) : elements};
}
Names write_scatter(const WriteCall& call) {
  GraphWriter& to = call.to;
  check_equal_sizes(call);
  const Name indices = to.cast(call.in(2), i64);
  Name list = call.in(0);
  if (!is_fixed(call)) list = padded_list(to, list, list_type(call), size_for_all(to, indices));
  return changed(call, to.add("ScatterND", {list, to.unsqueeze(indices, {1}), call.in(1)}));
}
Names write_spread(const WriteCall& call) {
  GraphWriter& to = call.to;
  const auto& attrs = call.attr<ListSpreadAttrs>();
  const TensorType& type = attrs.list.type;
  check_equal_sizes(call, type);
  const Name indices = to.cast(call.in(1), i64);
  Name elements = call.in(0);
  if (attrs.last_only) elements = zero_if_later(to, elements, indices, type);
  const Name list = padded_list(to, empty_list(to, type), type, size_for_all(to, indices));
  return {to.add("ScatterND", {list, to.unsqueeze(indices, {1}), elements},
                 {{"reduction", text("add")}})};
}
/// The first list may lack elements at its end, which are zeros.
Names write_extend(const WriteCall& call) {
  GraphWriter& to = call.to;
  const TensorType& type = list_type(call);
  if (is_uneven(call) || is_uneven(call, 1))
    return {recorded(to, extended(to, uneven(call), uneven(call, 1), as_vector(call, 2), type))};
  return {to.concat({padded_list(to, call.in(0), type, as_vector(call, 2)), call.in(1)}, 0)};
}
Names write_part(const WriteCall& call) {
  GraphWriter& to = call.to;
  ModelWriter& model = to.model();
  const Name size = as_vector(call, 1), zero = model.integers({0});
  const Name first = to.add("Slice", {call.in(0), zero, size, zero});
  const Name count = list_size(to, call.in(0));
  const Name rest = to.add("Slice", {call.in(0), size, count, zero});
  if (is_uneven(call)) {
    const Name sizes = uneven(call).sizes;
    recorded(to, {first, to.add("Slice", {sizes, zero, size, zero})});
    recorded(to, {rest, to.add("Slice", {sizes, size, count, zero})});
  }
  return {first, rest};
}

/// Joins elements along their first axis. A loop may have joined the elements that it makes.
Names write_concat(const WriteCall& call) {
  GraphWriter& to = call.to;
  ModelWriter& model = to.model();
  const TensorType& type = list_type(call);
  const bool reads_lengths = to.is_read(call.value_out(1));
  if (is_only_joined(to, call.value_in(0)))
    return {call.in(0), reads_lengths ? to.cast(model.joined_lengths.at(call.in(0)), i32) : ""};
  if (is_uneven(call)) {
    const UnevenList list = uneven(call);
    const Name lengths = to.add("Gather", {list.sizes, model.integer(0)}, {{"axis", integer(1)}});
    return {joined(to, list, type, lengths), to.cast(lengths, i32)};
  }
  const std::vector<std::int64_t> element = type.sizes();
  const Name count = list_size(to, call.in(0)), first = model.integers({element[0]});
  const Name sizes =
      to.concat({to.add("Mul", {count, first}),
                 model.integers(std::vector<std::int64_t>(element.begin() + 1, element.end()))},
                0);
  return {to.add("Reshape", {call.in(0), sizes}, {{"allowzero", integer(1)}}),
          reads_lengths ? to.cast(to.add("Expand", {first, count}), i32) : ""};
}
Names write_split(const WriteCall& call) {
  return {recorded(call.to, split(call.to, call.in(0), call.type_in(0), call.in(1)))};
}
Names write_join(const WriteCall& call) {
  return {joined(call.to, uneven(call), list_type(call), call.in(1))};
}

const Writer kWriters[] = {
    {"list_concat", write_concat},
    {"list_split", write_split},
    {"list_join", write_join},
    {"list_new", write_new},
    {"list_write", write_write},
    {"list_drop", write_drop},
    {"list_read", write_read},
    {"list_read_like", write_read_like},
    {"list_one_hot", write_one_hot},
    {"list_index", write_index},
    {"list_stack", write_stack},
    {"list_unstack", write_first},
    {"list_retype", write_first},
    {"list_size", write_size},
    {"list_zeros_like", write_zeros_like},
    {"list_add", write_add},
    {"list_gather", write_gather},
    {"list_scatter", write_scatter},
    {"list_spread", write_spread},
    {"list_extend", write_extend},
    {"list_part", write_part},
};

}  // namespace

std::span<const Writer> list_writers() { return kWriters; }

}  // namespace reel::exported
