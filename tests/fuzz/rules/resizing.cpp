// Rules that add axes, drop axes, put the elements into other rows, or compute with dims.
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

bool expanded_by_one(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 0);
  if (a < 0 || d.rank(a) > 2) return false;
  const std::vector<int> fresh = d.pick_dims(1);
  if (fresh.empty()) return false;
  in.dims = {fresh[0]};
  ValueType type = d.type(a);
  if (!d.is_named() || !contains(type.dims, fresh[0]))
    type.dims.insert(type.dims.begin(), fresh[0]);
  return !have_one_origin(d.program(), type.dims) && gives(d, in, {a}, type);
}

/// Splits the elements of a plain tensor into other rows.
bool reshaped(Drafter& d, Instruction& in) {
  if (d.is_named()) return false;
  const int a = pick_real(d, 0);
  if (a < 0) return false;
  int count = 1;
  for (const int dim : d.type(a).dims) {
    if (!d.dim(dim).has_size()) return false;
    count *= d.dim(dim).size;
  }
  const int rows = count % 3 == 0 ? 3 : count % 2 == 0 ? 2 : 1;
  if (count > 36) return false;
  in.numbers = {rows, count / rows};
  return gives(d, in, {a}, {.element = real, .dims = {d.plain(rows), d.plain(count / rows)}});
}

bool squeezed(Drafter& d, Instruction& in) { return !d.is_named() && reduction(real, real)(d, in); }

/// Operand a, and a dim for a computed one.
bool with_dim(Drafter& d, Instruction& in) {
  in.dims = d.is_named() ? d.pick_dims(1) : std::vector<int>{};
  const int a = in.dims.empty() ? -1 : pick_real(d, 0);
  in.constant = draw_number(d);
  return a >= 0 && gives(d, in, {a}, {});
}

/// Operand a, and two dims for a computed one: the lengths of the second run over dims of the
/// first's. The lengths of a slice run over rows, too, which another ragged dim may lack.
bool with_two_dims(Drafter& d, Instruction& in) {
  if (!with_dim(d, in)) return false;
  const DimInfo& first = d.dim(in.dims[0]);
  const auto fits = [&](const DimInfo& second) {
    const bool is_slice = first.whole >= 0 || second.whole >= 0;
    return is_subset(second.over, first.over) &&
           !(is_slice && (first.is_ragged() || second.is_ragged()));
  };
  std::vector<int> fitting;
  for (const int dim : d.visible_dims())
    if (dim == in.dims[0] || fits(d.dim(dim))) fitting.push_back(dim);
  if (fitting.empty()) return false;
  in.dims.push_back(fitting[d.random().below(fitting.size())]);
  return true;
}

/// Operand a with plain axes, and an index of the first one.
bool first_indexed(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? -1 : pick_real(d, 1);
  const int size = a < 0 ? 0 : d.dim(d.type(a).dims[0]).size;
  if (size <= 0) return false;
  in.numbers = {d.random().between(-size, size - 1)};
  ValueType type = d.type(a);
  type.dims.erase(type.dims.begin());
  return gives(d, in, {a}, type);
}

/// Operand a with named dims, and an index of one along which no lengths run.
bool indexed_by_name(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? pick_real(d, 1) : -1;
  const int dim = a < 0 ? -1 : d.pick_axis(a, [](const DimInfo& info) { return info.size > 0; });
  if (dim < 0 || !dims_running_over(d.program(), d.type(a).dims, dim).empty()) return false;
  in.dims = {dim};
  in.numbers = {d.random().between(-d.dim(dim).size, d.dim(dim).size - 1)};
  ValueType type = d.type(a);
  std::erase(type.dims, dim);
  return gives(d, in, {a}, type);
}

}  // namespace

Rules resizing_rules() {
  return {
      expression(REEL_EXPRESSION(sum(a) * sum(full({ceildiv(to + 1, 2) * 3 - 1}, x, real))), 1,
                 with_dim),
      expression(REEL_EXPRESSION(sum(a) + sum(full({(to + to) / 3}, x, real))), 1, with_dim),
      expression(REEL_EXPRESSION(sum(a) - 0.5 * sum(cast(range(to - Dims(dims)[1]), real))), 1,
                 with_two_dims),
      expression(REEL_EXPRESSION(
                     sum(a) * sum(cos(cast(range(to + Dims(dims)[1] * 2 - Dims(dims)[1]), real)))),
                 1, with_two_dims),
      expression(
          REEL_EXPRESSION(sum(a) + sum(sin(cast(range(ceildiv(to * Dims(dims)[1], 3)), real)))), 1,
          with_two_dims),
      expression(
          REEL_EXPRESSION(
              sum(a) * sum(full({(to - 1) * (Dims(dims)[1] + 1) / (Dims(dims)[1] + 1)}, x, real))),
          1, with_two_dims),
      expression(REEL_EXPRESSION(a[n]), 2, first_indexed),
      expression(REEL_EXPRESSION(a.at(to, n)), 2, indexed_by_name),
      expression(REEL_EXPRESSION(broadcast_to(a, dims)), 2, expanded),
      expression(REEL_EXPRESSION(expand(a, to)), 2, expanded_by_one),
      expression(REEL_EXPRESSION(reshape(a, {n, m})), 2, reshaped),
      expression(REEL_EXPRESSION(squeeze(sum(a, axes, Keep::yes), axes)), 2, squeezed),
  };
}

}  // namespace reel::fuzz
