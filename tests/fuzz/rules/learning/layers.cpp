// Rules for layers and cells. The program draws their parameters: a statement for each, since the
// order in which a call makes its arguments is the compiler's.
#include "reel/frontend/layers.h"

#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// True if the value has all dims of a dim's lengths, and no lengths run over the dim.
bool has_alone(Drafter& d, int value, int dim) {
  return is_subset(d.dim(dim).over, d.type(value).dims) &&
         dims_running_over(d.program(), d.type(value).dims, dim).empty();
}

bool has_elements(const DimInfo& dim) { return dim.size > 0; }

/// Operand a, and features of it with a size, which are `to`.
bool of_features(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? pick_real(d, 1) : -1;
  const int features = a < 0 ? -1 : d.pick_axis(a, has_elements);
  if (features < 0 || !has_alone(d, a, features)) return false;
  in.dims = {features};
  return gives(d, in, {a}, d.type(a));
}

/// As of_features; the result lacks the features.
bool without_features(Drafter& d, Instruction& in) {
  if (!of_features(d, in)) return false;
  std::erase(d.program().values[in.outputs[0]].dims, in.dims[0]);
  return true;
}

/// Operand a; dims: features with a size, and time. The result lacks both.
bool of_sequences(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? pick_real(d, 2) : -1;
  if (a < 0) return false;
  const int features = d.pick_axis(a, has_elements);
  const int time = d.pick_axis(a, [](const DimInfo&) { return true; });
  if (features < 0 || time == features || !has_alone(d, a, features) || !has_alone(d, a, time))
    return false;
  in.dims = {features, time};
  in.policy = d.policy();
  ValueType type = d.type(a);
  std::erase(type.dims, features);
  std::erase(type.dims, time);
  return gives(d, in, {a}, type);
}

/// Operand a: integers. The result has its dims.
bool of_symbols(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? d.pick(Element::i32) : -1;
  return a >= 0 && gives(d, in, {a}, {.element = real, .dims = d.type(a).dims});
}

}  // namespace

Rules layer_rules() {
  return {
      expression(REEL_EXPRESSION(LayerNorm::init(to, {.dtype = real})(a)), 4, of_features),
      expression(REEL_EXPRESSION(RmsNorm::init(to, {.dtype = real})(a)), 2, of_features),
      expression(REEL_EXPRESSION(GroupNorm::init(1, to, {.dtype = real})(a)), 2, of_features),
      expression(REEL_EXPRESSION([&] {
                   const Dim units("units", 2);
                   return sum(Linear::init(to, units, {.dtype = real})(a), units);
                 }()),
                 3, without_features),
      expression(REEL_EXPRESSION([&] {
                   const Dim units("units", 2);
                   const auto table = Embedding::init(Dim("symbols", 3), units, {.dtype = real});
                   return sum(table(mod(a, 3)), units);
                 }()),
                 2, of_symbols),
      expression(REEL_EXPRESSION([&] {
                   const Dim units("units", 2);
                   const auto table =
                       SparseEmbedding::init(Dim("symbols", 3), units, {.dtype = real});
                   return sum(table(mod(a, 3)), units);
                 }()),
                 2, of_symbols),
      expression(REEL_EXPRESSION([&] {
                   const Dim units("units", 2), time = Dims(dims)[1];
                   const auto cell = LstmCell::init(to, units, {.dtype = real});
                   return sum(
                       recur(cell, a, time, {.checkpoint = keep, .swap_memory = swap}).state.h,
                       units);
                 }()),
                 5, of_sequences),
      expression(REEL_EXPRESSION([&] {
                   const Dim units("units", 2), time = Dims(dims)[1];
                   const auto cell = GruCell::init(to, units, {.dtype = real});
                   return sum(recur(cell, a, time,
                                    {.reverse = true, .checkpoint = keep, .swap_memory = swap})
                                  .outputs,
                              {units, time});
                 }()),
                 5, of_sequences),
      expression(REEL_EXPRESSION([&] {
                   const Dim units("units", 2), upper("upper", 3), time = Dims(dims)[1];
                   const auto first = RnnCell::init(to, units, {.dtype = real});
                   const auto second = GruCell::init(units, upper, {.dtype = real});
                   return sum(recur(stack_cells(with_dropout(first, 0.25), second), a, time,
                                    {.checkpoint = keep, .swap_memory = swap})
                                  .outputs,
                              {upper, time});
                 }()),
                 4, of_sequences),
      expression(REEL_EXPRESSION([&] {
                   const Dim units("units", 2), both("both", 4), time = Dims(dims)[1];
                   const auto forward = RnnCell::init(to, units, {.dtype = real});
                   const auto backward = LstmCell::init(to, units, {.dtype = real});
                   return sum(bidirectional(forward, backward, a, time, {.out = both}).outputs,
                              {both, time});
                 }()),
                 4, of_sequences),
      expression(
          REEL_EXPRESSION([&] {
            const Dim units("units", 1), both("both", 2), top("top", 2), time = Dims(dims)[1];
            const auto forward = RnnCell::init(to, units, {.dtype = real});
            const auto backward = RnnCell::init(to, units, {.dtype = real});
            const auto upper = RnnCell::init(both, units, {.dtype = real});
            return sum(bidirectional_stack(
                           std::vector{std::pair{forward, backward}, std::pair{upper, upper}}, a,
                           time, {.out = top, .checkpoint = keep, .swap_memory = swap})
                           .outputs,
                       {top, time});
          }()),
          3, of_sequences),
  };
}

}  // namespace reel::fuzz
