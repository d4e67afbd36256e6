// Rules for TensorArrays: making, writing, reading and stacking them. Loops carry them.
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

/// True for reals if each dim has a name or a known size.
bool can_be_element(const Drafter& d, int value) {
  if (d.type(value).is_array || d.type(value).element != Element::real) return false;
  for (const int dim : d.type(value).dims)
    if (!d.dim(dim).is_named() && !d.dim(dim).has_size()) return false;
  return true;
}

int pick_array(Drafter& d, int least) {
  return d.pick([&](int v) { return d.type(v).is_array && d.type(v).least >= least; });
}

bool made(Drafter& d, Instruction& in) {
  const int like = d.pick([&](int v) { return can_be_element(d, v); });
  if (like < 0) return false;
  const int size = d.random().between(0, 2);
  in.numbers = {size};
  in.dims = d.type(like).dims;
  return gives(d, in, {}, {.dims = in.dims, .is_array = true, .least = size});
}

bool unstacked(Drafter& d, Instruction& in) {
  const int a = d.pick([&](int v) { return can_be_element(d, v) && d.rank(v) > 0; });
  if (a < 0) return false;
  // Along a ragged axis, elements would contain padding.
  in.axes = {d.pick_axis(a, [](const DimInfo& dim) { return !dim.is_ragged(); })};
  if (in.axes[0] < 0) return false;
  ValueType type{.is_array = true, .least = std::max(d.dim(d.dim_at(a, in.axes[0])).size, 0)};
  for (int i = 0; i < d.rank(a); ++i)
    if ((d.is_named() ? d.type(a).dims[i] : i) != in.axes[0])
      type.dims.push_back(d.type(a).dims[i]);
  return gives(d, in, {a}, type);
}

int pick_element(Drafter& d, int list) {
  return d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real &&
           same_dims(d.program(), d.type(v).dims, d.type(list).dims);
  });
}

int pick_index(Drafter& d) {
  return d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::i32 && d.rank(v) == 0;
  });
}

bool pushed(Drafter& d, Instruction& in) {
  const int list = pick_array(d, 0);
  const int x = list < 0 ? -1 : pick_element(d, list);
  if (x < 0) return false;
  ValueType type = d.type(list);
  ++type.least;
  return gives(d, in, {list, x}, type);
}

bool written(Drafter& d, Instruction& in) {
  const int list = pick_array(d, 1);
  const int x = list < 0 ? -1 : pick_element(d, list), index = pick_index(d);
  if (x < 0 || index < 0) return false;
  in.numbers = {d.type(list).least};
  return gives(d, in, {list, index, x}, d.type(list));
}

bool read(Drafter& d, Instruction& in) {
  const int list = pick_array(d, 1), index = pick_index(d);
  if (list < 0 || index < 0) return false;
  in.numbers = {d.type(list).least};
  return gives(d, in, {list, index}, {.dims = d.type(list).dims});
}

bool read_last(Drafter& d, Instruction& in) {
  const int list = pick_array(d, 1);
  return list >= 0 && gives(d, in, {list}, {.dims = d.type(list).dims});
}

bool stacked(Drafter& d, Instruction& in) {
  const int list = pick_array(d, 0);
  if (list < 0) return false;
  in.found = {d.new_dim({.kind = DimInfo::Kind::found, .name = d.is_named() ? "list" : ""})};
  ValueType type{.dims = d.type(list).dims};
  type.dims.insert(type.dims.begin(), in.found[0]);
  return gives(d, in, {list}, type);
}

Typing stacked_as(bool is_named) {
  return [=](Drafter& d, Instruction& in) { return d.is_named() == is_named && stacked(d, in); };
}

/// Operands list and indices along a dim that elements lack.
bool at_many(Drafter& d, Instruction& in) {
  const int list = pick_array(d, 1);
  if (list < 0 || d.rank(list) > 2) return false;
  const int indices = d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::i32 && d.rank(v) == 1 &&
           (!d.is_named() || !contains(d.type(list).dims, d.type(v).dims[0]));
  });
  if (indices < 0) return false;
  in.numbers = {d.type(list).least};
  return gives(d, in, {list, indices}, d.type(list));
}

bool gathered(Drafter& d, Instruction& in) {
  if (!at_many(d, in)) return false;
  ValueType& type = d.program().values[in.outputs[0]];
  type = {.dims = type.dims};
  type.dims.insert(type.dims.begin(), d.type(in.inputs[1]).dims[0]);
  return !have_one_origin(d.program(), type.dims);
}

bool grown_by_write(Drafter& d, Instruction& in) {
  const int a = d.pick([&](int v) { return can_be_element(d, v); }), index = pick_index(d);
  if (a < 0 || index < 0) return false;
  in.dims = d.type(a).dims;
  in.numbers = {d.random().between(0, 2)};
  return gives(
      d, in, {a, index},
      {.dims = in.dims, .is_array = true, .least = std::max(static_cast<int>(in.numbers[0]), 1)});
}

bool joined(Drafter& d, Instruction& in) {
  const int list =
      d.is_named() ? -1 : d.pick([&](int v) { return d.type(v).is_array && d.rank(v) > 0; });
  if (list < 0) return false;
  in.found = {d.new_dim({.kind = DimInfo::Kind::found})};
  ValueType type{.dims = d.type(list).dims};
  type.dims[0] = in.found[0];
  return gives(d, in, {list}, type);
}

/// Operand a with a first axis of size n + m.
bool parted(Drafter& d, Instruction& in) {
  const int a =
      d.is_named() ? -1 : d.pick([&](int v) { return can_be_element(d, v) && d.rank(v) > 0; });
  if (a < 0) return false;
  const int size = d.dim(d.type(a).dims[0]).size, first = d.random().between(0, size);
  in.numbers = {first, size - first};
  ValueType type = d.type(a);
  type.dims.erase(type.dims.begin());
  return gives(d, in, {a}, type);
}

bool measured(Drafter& d, Instruction& in) {
  const int list = pick_array(d, 0);
  return list >= 0 && gives(d, in, {list}, {.element = Element::i32});
}

}  // namespace

// The weights are high, since most of these rules fit only if there is an array already.
Rules array_rules() {
  return {
      expression(REEL_EXPRESSION(TensorArray(TensorType{real, dims}, {.size = n})), 3, made),
      expression(REEL_EXPRESSION(TensorArray::unstack(a, axis)), 3, unstacked),
      expression(REEL_EXPRESSION(list.push_back(b)), 15, pushed),
      expression(REEL_EXPRESSION(list.write(mod(b, n), c)), 12, written),
      expression(REEL_EXPRESSION(list.read(mod(b, n))), 12, read),
      expression(REEL_EXPRESSION(list.read(-1)), 8, read_last),
      expression(REEL_EXPRESSION(list.stack(Dim("listed", list.size()))), 12, stacked_as(true)),
      expression(REEL_EXPRESSION(list.stack()), 20, stacked_as(false)),
      expression(REEL_EXPRESSION(list.size()), 5, measured),
      expression(REEL_EXPRESSION(list.gather(mod(b, n))), 8, gathered),
      expression(REEL_EXPRESSION(list.scatter(mod(b, n), sin(list.gather(mod(b + 1, n))))), 8,
                 at_many),
      expression(REEL_EXPRESSION(list.concat()), 12, joined),
      expression(REEL_EXPRESSION(
                     TensorArray(a.type(), {.size = n, .dynamic_size = true}).write(mod(b, 4), a)),
                 3, grown_by_write),
      expression(REEL_EXPRESSION(
                     sum(TensorArray::split(a, tensor({n, m})).push_back(sin(a)).concat(), {0})),
                 3, parted),
  };
}

}  // namespace reel::fuzz
