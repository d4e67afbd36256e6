#include "reel/tests/fuzz/program/typing.h"

#include <deque>

#include "reel/tests/fuzz/program/slices.h"

namespace reel::fuzz {

const Rule* expression(Expression expression, int weight, Typing typing) {
  static std::deque<ExpressionRule> rules;
  return &rules.emplace_back(expression, weight, std::move(typing));
}

bool gives(Drafter& d, Instruction& in, const std::vector<int>& inputs, const ValueType& type) {
  in.inputs = inputs;
  in.outputs = {d.new_value(type)};
  return true;
}

int pick_real(Drafter& d, int least_rank) {
  return d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real && d.rank(v) >= least_rank;
  });
}

double draw_number(Drafter& d) { return d.random().between(-16, 16) / 8.; }

Typing unary(Element from, Element to) {
  return [=](Drafter& d, Instruction& in) {
    const int a = d.pick(from);
    if (a < 0) return false;
    in.constant = draw_number(d);
    return gives(d, in, {a}, {.element = to, .dims = d.type(a).dims});
  };
}

Typing binary(Element from, Element to) {
  return [=](Drafter& d, Instruction& in) {
    const int a = d.pick(from);
    if (a < 0) return false;
    const auto joined = [&](int v) {
      return joined_dims(d.program(), d.type(a).dims, d.type(v).dims);
    };
    const int b = d.pick([&](int v) {
      return !d.type(v).is_array && d.type(v).element == from && joined(v).has_value();
    });
    const bool swap = d.random().chance(50);
    return gives(d, in, swap ? std::vector{b, a} : std::vector{a, b},
                 {.element = to, .dims = *joined(b)});
  };
}

namespace {

/// Returns some axes of `a`, at least one.
std::vector<int> some_axes(Drafter& d, int a) {
  std::vector<int> axes;
  for (int i = 0; i < d.rank(a); ++i)
    if (d.random().chance(50)) axes.push_back(d.is_named() ? d.type(a).dims[i] : i);
  if (axes.empty()) axes.push_back(d.pick_axis(a, [](const DimInfo&) { return true; }));
  return axes;
}

int with_axes(Drafter& d, Element element) {
  return d.pick(
      [&](int v) { return !d.type(v).is_array && d.type(v).element == element && d.rank(v) > 0; });
}

}  // namespace

Typing reduction(Element from, Element to) {
  return [=](Drafter& d, Instruction& in) {
    const int a = with_axes(d, from);
    if (a < 0) return false;
    in.axes = some_axes(d, a);
    ValueType type{.element = to};
    for (int i = 0; i < d.rank(a); ++i)
      if (!contains(in.axes, d.is_named() ? d.type(a).dims[i] : i))
        type.dims.push_back(d.type(a).dims[i]);
    return gives(d, in, {a}, type);
  };
}

Typing along(Element element) {
  return [=](Drafter& d, Instruction& in) {
    const int a = with_axes(d, element);
    if (a < 0) return false;
    in.axes = {d.pick_axis(a, [](const DimInfo&) { return true; })};
    in.numbers = {d.random().between(-2, 2)};
    return gives(d, in, {a}, d.type(a));
  };
}

Typing along_some(Element element) {
  return [=](Drafter& d, Instruction& in) {
    const int a = with_axes(d, element);
    if (a < 0) return false;
    in.axes = some_axes(d, a);
    return gives(d, in, {a}, d.type(a));
  };
}

bool expanded(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 0);
  if (a < 0) return false;
  in.dims = d.type(a).dims;
  for (const int dim : in.dims)
    if (!d.dim(dim).is_named() && !d.dim(dim).has_size()) return false;
  for (const int dim : d.pick_dims(2))
    if (!d.is_named() || !contains(in.dims, dim)) in.dims.insert(in.dims.begin(), dim);
  return in.dims.size() < 4 && !have_one_origin(d.program(), in.dims) &&
         gives(d, in, {a}, {.element = Element::real, .dims = in.dims});
}

}  // namespace reel::fuzz
