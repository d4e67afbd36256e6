// Rules for set_at, set_slice, and access by position.
#include "reel/core/functions/updates.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

int pick_scalar_index(Drafter& d) {
  return d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::i32 && d.rank(v) == 0;
  });
}

/// Operand a, and an axis with a size of at least one, which is n. No lengths run over the axis.
bool at_axis(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1);
  if (a < 0) return false;
  const int axis = d.pick_axis(a, [](const DimInfo& dim) { return dim.size > 0; });
  if (axis < 0 || !dims_running_over(d.program(), d.type(a).dims, axis).empty()) return false;
  in.axes = {axis};
  in.numbers = {d.dim(d.dim_at(a, axis)).size};
  in.constant = draw_number(d);
  return gives(d, in, {a}, d.type(a));
}

/// Operands a and a scalar index.
bool at_one(Drafter& d, Instruction& in) {
  const int index = pick_scalar_index(d);
  if (index < 0 || !at_axis(d, in)) return false;
  in.inputs.push_back(index);
  return true;
}

/// Operands a and indices. A dim of the indices is a dim of a as well, so that every entry has its
/// own place, or one dim stands for several places.
bool at_many(Drafter& d, Instruction& in) {
  const int indices = d.pick(Element::i32);
  if (indices < 0 || !at_axis(d, in)) return false;
  in.inputs.push_back(indices);
  const std::vector<int>& dims = d.type(in.inputs[0]).dims;
  std::vector<int> all = dims;
  for (const int dim : d.type(indices).dims)
    if (!d.is_named() || !contains(dims, dim)) all.push_back(dim);
  // Lengths of values do not run over their places.
  for (const int dim : all)
    if (!contains(dims, dim) && !dims_running_over(d.program(), all, dim).empty()) return false;
  const bool has_own = d.is_named() && contains(d.type(indices).dims, in.axes[0]);
  return all.size() + has_own <= dims.size() + 1 && all.size() <= 4 &&
         !have_one_origin(d.program(), all);
}

/// Operand a, and a part of an axis, the first of `axes`: begin n, size m. `to`: the dim of the
/// part. A plain axis is the first one.
bool part(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1);
  if (a < 0) return false;
  ValueType type = d.type(a);
  const int dim = d.is_named() ? d.pick_axis(a, [](const DimInfo&) { return true; }) : type.dims[0];
  const int size = d.dim(dim).size;
  if (size < 1 || !dims_running_over(d.program(), type.dims, dim).empty()) return false;
  if (d.is_named()) {
    std::erase(type.dims, dim);
    type.dims.insert(type.dims.begin(), dim);
    in.axes = type.dims;
  } else {
    in.axes = {0};
  }
  const int begin = d.random().between(0, size - 1), length = d.random().between(0, size - begin);
  in.numbers = {begin, length};
  in.dims = {d.sized(length)};
  return gives(d, in, {a}, type);
}

/// Operands a and a scalar index along `to`, of size n. A plain axis is the first one.
bool indexed(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1), index = pick_scalar_index(d);
  if (a < 0 || index < 0) return false;
  ValueType type = d.type(a);
  const int dim = d.is_named() ? d.pick_axis(a, [](const DimInfo&) { return true; }) : type.dims[0];
  if (d.dim(dim).size < 1) return false;
  in.dims = {dim};
  in.numbers = {d.dim(dim).size};
  in.sliced = make_slices(d, dims_running_over(d.program(), type.dims, dim), dim, {});
  type.dims.erase(std::find(type.dims.begin(), type.dims.end(), dim));
  type.dims = to_slices(type.dims, in.sliced);
  return gives(d, in, {a, index}, type);
}

/// Operand a and a ragged dim, `to`, in which every entry has an element.
bool at_ragged(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? pick_real(d, 2) : -1;
  if (a < 0) return false;
  const int axis = d.pick_axis(a, [&](const DimInfo& dim) {
    const auto none_is_empty = [](const std::vector<int>& lengths) {
      return !lengths.empty() &&
             std::none_of(lengths.begin(), lengths.end(), [](int length) { return !length; });
    };
    return dim.kind == DimInfo::Kind::ragged && none_is_empty(dim.lengths) &&
           none_is_empty(dim.elsewhere) && is_subset(dim.over, d.type(a).dims);
  });
  if (axis < 0) return false;
  in.dims = {axis};
  in.axes = {axis};
  const std::vector<int> wholes = dims_running_over(d.program(), d.type(a).dims, axis);
  in.sliced = make_slices(d, wholes, axis, {});
  ValueType type = d.type(a);
  std::erase(type.dims, axis);
  type.dims = to_slices(type.dims, in.sliced);
  return gives(d, in, {a}, type);
}

Typing only(bool is_named, Typing typing) {
  return [=](Drafter& d, Instruction& in) { return d.is_named() == is_named && typing(d, in); };
}

}  // namespace

Rules update_rules() {
  return {
      expression(REEL_EXPRESSION(set_at(a, mod(b, n), x, axis)), 3, at_one),
      expression(REEL_EXPRESSION(set_at(0.5 * a, -1 - mod(b, n), x, axis)), 3, at_many),
      expression(REEL_EXPRESSION(set_at(a, mod(b, n), sin(gather(a, mod(b + 1, n), axis)), axis)),
                 4, at_many),
      // set_slice counts axes of named dims, too, by position.
      expression(REEL_EXPRESSION(set_slice(transpose(a, axes), n,
                                           slice(cos(transpose(a, axes)), axis, 0, m, to))),
                 3, only(true, part)),
      expression(REEL_EXPRESSION(set_slice(a, n, slice(cos(a), axis, 0, m))), 3, only(false, part)),
      expression(REEL_EXPRESSION(a.at(to, mod(b, n))), 4, only(true, indexed)),
      expression(REEL_EXPRESSION(a[mod(b, n)]), 3, only(false, indexed)),
      expression(REEL_EXPRESSION(a.at(-1 - mod(b, n))), 2, only(false, indexed)),
      expression(REEL_EXPRESSION(a.at(to, -1)), 5, at_ragged),
      expression(REEL_EXPRESSION(a.at(to, 0)), 3, at_ragged),
  };
}

}  // namespace reel::fuzz
