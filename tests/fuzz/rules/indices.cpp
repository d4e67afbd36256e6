// Rules for indexing, sorting and matrix products.
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

std::vector<int> without(const Drafter& d, int value, int axis) {
  std::vector<int> dims;
  for (int i = 0; i < d.rank(value); ++i)
    if ((d.is_named() ? d.type(value).dims[i] : i) != axis) dims.push_back(d.type(value).dims[i]);
  return dims;
}

/// Returns the dims of a gather: the dims of indices in place of the axis. Dims that x has too are
/// matched.
std::vector<int> gathered(const Drafter& d, int a, int axis, const std::vector<int>& indices) {
  std::vector<int> dims;
  for (int i = 0; i < d.rank(a); ++i) {
    const int dim = d.type(a).dims[i];
    if ((d.is_named() ? dim : i) != axis)
      dims.push_back(dim);
    else
      for (const int index : indices)
        if (!d.is_named() || index == axis || !contains(d.type(a).dims, index))
          dims.push_back(index);
  }
  return dims;
}

/// True if each dim of the indices is a dim of x, or has another origin than all dims of x.
bool have_dims_apart(Drafter& d, int a, int axis, int indices, const std::vector<int>& sliced) {
  if (!d.is_named()) return true;
  for (const int index : d.type(indices).dims)
    for (const int dim : d.type(a).dims)
      if (dim != axis && (index != dim || contains(sliced, dim)) &&
          origin_of(d.program(), index) == origin_of(d.program(), dim))
        return false;
  return true;
}

/// Operands a and indices. Indices may be any integers, and are brought into the range of the axis;
/// if its size is unknown, by clip.
Typing gather_along(bool clips) {
  return [=](Drafter& d, Instruction& in) {
    const int a = pick_real(d, 1), indices = d.pick(Element::i32);
    if (a < 0 || indices < 0) return false;
    const int axis = d.pick_axis(
        a, [&](const DimInfo& dim) { return dim.size > 0 || (clips && dim.is_ragged()); });
    if (axis < 0) return false;
    in.axes = {axis};
    in.numbers = {d.dim(d.dim_at(a, axis)).size};
    const std::vector<int> wholes = dims_running_over(d.program(), d.type(a).dims, axis);
    const std::vector<int> dims = gathered(d, a, axis, d.type(indices).dims);
    if (dims.size() > 3 || !have_dims_apart(d, a, axis, indices, wholes)) return false;
    in.sliced = make_slices(d, wholes, axis, d.type(indices).dims);
    return gives(d, in, {a, indices}, {.element = real, .dims = to_slices(dims, in.sliced)});
  };
}

/// Operands like, indices, updates. The updates are gathered from like.
bool scattered(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1), indices = d.pick(Element::i32);
  if (a < 0 || indices < 0) return false;
  const int axis = d.pick_axis(a, [](const DimInfo& dim) { return dim.size > 0; });
  if (axis < 0) return false;
  in.axes = {axis};
  in.numbers = {d.dim(d.dim_at(a, axis)).size};
  // Gathered updates must have no slices among their dims.
  const std::vector<int> wholes = dims_running_over(d.program(), d.type(a).dims, axis);
  if (!wholes.empty() || !have_dims_apart(d, a, axis, indices, wholes)) return false;
  if (gathered(d, a, axis, d.type(indices).dims).size() > 3) return false;
  return gives(d, in, {a, indices}, d.type(a));
}

bool one_of(Drafter& d, Instruction& in) {
  const int a = d.pick(Element::i32);
  if (a < 0 || d.rank(a) > 2) return false;
  const int size = d.random().between(1, 3);
  in.numbers = {size};
  in.dims = {d.sized(size)};
  ValueType type{.element = real, .dims = d.type(a).dims};
  type.dims.push_back(in.dims[0]);
  return gives(d, in, {a}, type);
}

bool largest(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1);
  if (a < 0) return false;
  const int axis = d.pick_axis(a, [](const DimInfo& dim) { return dim.size > 0; });
  if (axis < 0 || !dims_running_over(d.program(), d.type(a).dims, axis).empty()) return false;
  in.axes = {axis};
  in.dims = {d.sized(d.random().between(1, d.dim(d.dim_at(a, axis)).size))};
  return gives(d, in, {a},
               {.element = real,
                .dims = gathered(d, a, axis, d.is_named() ? in.dims : std::vector{in.dims[0]})});
}

bool order(Drafter& d, Instruction& in) {
  if (!along(real)(d, in)) return false;
  d.program().values[in.outputs[0]].element = Element::i32;
  return true;
}

/// A product over a dim that both have; other common dims are batch dims.
bool contracted(Drafter& d, Instruction& in) {
  if (!d.is_named()) return false;
  const int a = pick_real(d, 1);
  if (a < 0) return false;
  const int axis = d.pick_axis(a, [](const DimInfo&) { return true; });
  const int b = d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == real && contains(d.type(v).dims, axis);
  });
  in.dims = {axis};
  ValueType type{.element = real, .dims = without(d, a, axis)};
  for (const int dim : without(d, b, axis))
    if (!contains(type.dims, dim)) type.dims.push_back(dim);
  std::vector<int> all = type.dims;
  all.push_back(axis);
  return type.dims.size() < 4 && !have_one_origin(d.program(), all) && gives(d, in, {a, b}, type);
}

/// A product of matrices and vectors by NumPy's rules.
bool multiplied(Drafter& d, Instruction& in) {
  if (d.is_named()) return false;
  const int a = pick_real(d, 1);
  if (a < 0 || d.rank(a) > 2) return false;
  const int inner = d.type(a).dims.back();
  const int b = d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == real && (d.rank(v) == 1 || d.rank(v) == 2) &&
           d.type(v).dims[0] == inner;
  });
  if (b < 0) return false;
  ValueType type{.element = real};
  if (d.rank(a) == 2) type.dims.push_back(d.type(a).dims[0]);
  if (d.rank(b) == 2) type.dims.push_back(d.type(b).dims[1]);
  return gives(d, in, {a, b}, type);
}

}  // namespace

Rules index_rules() {
  return {
      expression(REEL_EXPRESSION(gather(a, mod(b, n), axis)), 5, gather_along(false)),
      expression(REEL_EXPRESSION(gather(a, b, axis, {.clip = true})), 4, gather_along(true)),
      expression(REEL_EXPRESSION(scatter_add(a, mod(b, n), gather(sin(a), mod(b, n), axis), axis)),
                 3, scattered),
      expression(REEL_EXPRESSION(scatter_max(a, mod(b, n), gather(cos(a), mod(b, n), axis), axis)),
                 2, scattered),
      expression(REEL_EXPRESSION(one_hot(mod(a, n), to, real)), 3, one_of),
      expression(REEL_EXPRESSION(sort(a, axis)), 3, along(real)),
      expression(REEL_EXPRESSION(sort(a, axis, true)), 2, along(real)),
      expression(REEL_EXPRESSION(argsort(a, axis)), 2, order),
      expression(REEL_EXPRESSION(top_k(a, axis, to).values), 3, largest),
      expression(REEL_EXPRESSION(matmul(a, b, to)), 10, contracted),
      expression(REEL_EXPRESSION(matmul(a, b)), 10, multiplied),
  };
}

}  // namespace reel::fuzz
