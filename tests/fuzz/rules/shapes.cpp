// Rules that change dims, join tensors, or select elements.
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;
using Kind = DimInfo::Kind;

bool has_size(const DimInfo& dim) { return dim.has_size(); }

/// Returns the type with other dims in place of an axis; without dims, the axis is removed.
ValueType with(const Drafter& d, ValueType type, int axis, std::vector<int> dims) {
  const auto place =
      d.is_named() ? std::find(type.dims.begin(), type.dims.end(), axis) - type.dims.begin() : axis;
  type.dims.erase(type.dims.begin() + place);
  type.dims.insert(type.dims.begin() + place, dims.begin(), dims.end());
  return type;
}

/// Returns true if lengths of a dim of the value run over the axis. Functions then make slices. Not
/// drawn are functions with slices of several whole dims or axes.
bool has_lengths_along(Drafter& d, int value, int axis) {
  return !dims_running_over(d.program(), d.type(value).dims, axis).empty();
}

/// Lengths that run over an axis: they move with the elements, or there must be none.
enum class Lengths { move, none };

/// Replaces an axis by one with the size that change() returns. A negative size means that the
/// instruction does not fit.
template <class Change>
Typing resized(Change change, Lengths lengths) {
  return [=](Drafter& d, Instruction& in) {
    const int a = pick_real(d, 1);
    if (a < 0) return false;
    const int axis = d.pick_axis(a, has_size);
    if (axis < 0) return false;
    if (lengths == Lengths::none && has_lengths_along(d, a, axis)) return false;
    in.axes = {axis};
    const int size = change(d, in, d.dim(d.dim_at(a, axis)).size);
    if (size < 0) return false;
    const int to = d.sized(size);
    in.dims = {to};
    ValueType type = with(d, d.type(a), axis, {to});
    const std::vector<int> wholes = dims_running_over(d.program(), d.type(a).dims, axis);
    in.sliced = make_slices(d, wholes, axis, {to});
    type.dims = to_slices(type.dims, in.sliced);
    return gives(d, in, {a}, type);
  };
}

/// Returns two rules: `named` for named dims, which are given, and `plain` for plain sizes.
Rules both(Expression named, Expression plain, int weight, const Typing& typing) {
  const auto only = [&](bool is_named) -> Typing {
    return [=](Drafter& d, Instruction& in) { return d.is_named() == is_named && typing(d, in); };
  };
  return {expression(named, weight, only(true)), expression(plain, weight, only(false))};
}

bool transposed(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 2);
  if (a < 0) return false;
  ValueType type = d.type(a);
  std::vector<int> left;
  for (int i = 0; i < d.rank(a); ++i) left.push_back(i);
  type.dims.clear();
  while (!left.empty()) {
    const int at = d.random().below(left.size());
    const int dim = d.type(a).dims[left[at]];
    in.axes.push_back(d.is_named() ? dim : left[at]);
    type.dims.push_back(dim);
    left.erase(left.begin() + at);
  }
  return gives(d, in, {a}, type);
}

bool renamed(Drafter& d, Instruction& in) {
  if (!d.is_named()) return false;
  return resized([](Drafter&, Instruction&, int size) { return size; }, Lengths::move)(d, in);
}

bool begins_later(Drafter& d, Instruction& in) {
  return resized(
      [](Drafter& d, Instruction& in, int size) {
        const int begin = d.random().between(0, size), end = d.random().between(begin, size);
        in.numbers = {begin, end};
        return end - begin;
      },
      Lengths::move)(d, in);
}

bool padded(Drafter& d, Instruction& in) {
  return resized(
      [](Drafter& d, Instruction& in, int size) {
        in.numbers = {d.random().between(0, 2), d.random().between(0, 2)};
        in.constant = draw_number(d);
        return static_cast<int>(size + in.numbers[0] + in.numbers[1]);
      },
      Lengths::move)(d, in);
}

/// Selects every second element.
bool halved(Drafter& d, Instruction& in) {
  return resized([](Drafter&, Instruction&, int size) { return (size + 1) / 2; }, Lengths::move)(
      d, in);
}

bool doubled(Drafter& d, Instruction& in) {
  return resized([](Drafter&, Instruction&, int size) { return 2 * size; }, Lengths::none)(d, in);
}

/// Stacks a and b along a new axis.
bool beside(Drafter& d, Instruction& in) {
  const int a = pick_real(d, d.is_named() ? 0 : 1);
  if (a < 0 || d.rank(a) > 2) return false;
  const int b = d.pick([&](int v) { return d.type(v) == d.type(a); });
  const int to = d.sized(2);
  in.dims = {to};
  ValueType type = d.type(a);
  type.dims.insert(type.dims.begin(), to);
  return gives(d, in, {a, b}, type);
}

/// Merges two axes.
bool merged(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 2);
  if (a < 0) return false;
  const int first = d.pick_axis(a, has_size);
  const int second = d.pick_axis(a, has_size);
  if (first < 0 || second < 0 || first == second || (!d.is_named() && second != first + 1))
    return false;
  if (has_lengths_along(d, a, first) || has_lengths_along(d, a, second)) return false;
  const int x = d.dim_at(a, first), y = d.dim_at(a, second);
  in.axes = {first, second};
  in.dims = {d.sized(d.dim(x).size * d.dim(y).size)};
  ValueType type{.element = real};
  for (int i = 0; i < d.rank(a); ++i) {
    const int axis = d.is_named() ? d.type(a).dims[i] : i;
    if (axis == second) continue;
    type.dims.push_back(axis == first ? in.dims[0] : d.type(a).dims[i]);
  }
  return gives(d, in, {a}, type);
}

/// Splits an axis of even size into two.
bool parted(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1);
  if (a < 0 || d.rank(a) > 2) return false;
  const int axis =
      d.pick_axis(a, [](const DimInfo& dim) { return dim.size > 0 && dim.size % 2 == 0; });
  if (axis < 0 || has_lengths_along(d, a, axis)) return false;
  const int size = d.dim(d.dim_at(a, axis)).size;
  in.axes = {axis};
  in.dims = {d.sized(size / 2), d.sized(2)};
  return gives(d, in, {a}, with(d, d.type(a), axis, in.dims));
}

/// Moves elements along any axis, ragged ones too; the result has the same dims.
bool moved(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1);
  if (a < 0) return false;
  in.axes = {d.pick_axis(a, [](const DimInfo&) { return true; })};
  if (has_lengths_along(d, a, in.axes[0])) return false;
  in.numbers = {d.random().between(-2, 2)};
  in.constant = draw_number(d);
  return gives(d, in, {a}, d.type(a));
}

/// Reverses an axis, and the lengths that run over it.
bool reversed(Drafter& d, Instruction& in) {
  if (!along(real)(d, in)) return false;
  ValueType& type = d.program().values[in.outputs[0]];
  const std::vector<int> wholes = dims_running_over(d.program(), type.dims, in.axes[0]);
  in.sliced = make_slices(d, wholes, in.axes[0], {in.axes[0]});
  type.dims = to_slices(type.dims, in.sliced);
  return true;
}

}  // namespace

Rules shape_rules() {
  Rules rules{
      expression(REEL_EXPRESSION(transpose(a, axes)), 5, transposed),
      expression(REEL_EXPRESSION(expand(a, dims)), 4, expanded),
      expression(REEL_EXPRESSION(rename(a, axis, to)), 3, renamed),
      expression(REEL_EXPRESSION(reverse(a, axis)), 4, reversed),
      expression(REEL_EXPRESSION(shift(a, axis, n)), 3, moved),
      expression(REEL_EXPRESSION(shift(a, axis, n, x)), 2, moved),
      expression(REEL_EXPRESSION(stack({a, b}, to)), 3, beside),
      expression(REEL_EXPRESSION(split_dim(a, axis, dims)), 3, parted),
      expression(REEL_EXPRESSION(merge_dims(a, axes, to)), 3, merged),
  };
  for (const Rules& pair : {
           both(REEL_EXPRESSION(slice(a, axis, n, m, to)), REEL_EXPRESSION(slice(a, axis, n, m)), 4,
                begins_later),
           both(REEL_EXPRESSION(slice(a, axis, 0, {}, 2, to)),
                REEL_EXPRESSION(slice(a, axis, 0, {}, 2)), 3, halved),
           both(REEL_EXPRESSION(pad(a, axis, n, m, x, to)), REEL_EXPRESSION(pad(a, axis, n, m, x)),
                3, padded),
           both(REEL_EXPRESSION(concat({a, 0.5 * a}, axis, to)),
                REEL_EXPRESSION(concat({a, 0.5 * a}, axis)), 3, doubled),
       })
    rules.insert(rules.end(), pair.begin(), pair.end());
  return rules;
}

}  // namespace reel::fuzz
