// Rules for losses and paths over frames and classes. Labels and pointers are made from the
// operand.
#include <algorithm>

#include "reel/frontend/loops/backtrack.h"
#include "reel/frontend/losses/ctc_loss.h"
#include "reel/frontend/losses/transducer_loss.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// Operand a; dims: time, and a dim of classes with a size of at least two. The result has no dims.
bool of_frames(Drafter& d, Instruction& in) {
  if (!d.is_named()) return false;
  const int a = pick_real(d, 2);
  if (a < 0) return false;
  const int classes = d.pick_axis(a, [](const DimInfo& dim) { return dim.size > 1; });
  const int time = d.pick_axis(a, [](const DimInfo&) { return true; });
  if (classes < 0 || time == classes) return false;
  for (const int dim : {time, classes})
    if (!dims_running_over(d.program(), d.type(a).dims, dim).empty() ||
        !is_subset(d.dim(dim).over, d.type(a).dims))
      return false;
  in.axes = {classes};
  in.dims = {time, classes};
  in.numbers = {d.dim(classes).size};
  return gives(d, in, {a}, {});
}

}  // namespace

Rules alignment_rules() {
  return {
      expression(REEL_EXPRESSION([&] {
                   const Dim spelled("labels");
                   const Tensor labels =
                       slice(1 + mod(argmax(cos(3.0 * a), axis), n - 1), to, 0, 2, spelled);
                   return ctc_loss(a, labels, {to, labels.dim("labels"), Dims(dims)[1]},
                                   {.zero_infinity = true});
                 }()),
                 12, of_frames),
      expression(REEL_EXPRESSION([&] {
                   const Dim spelled("labels");
                   const Tensor labels =
                       slice(1 + mod(argmax(cos(3.0 * a), axis), n - 1), to, 0, 2, spelled);
                   const Dim prefix = labels.dim("labels") + 1;
                   Dims all = a.dims();
                   all.push_back(prefix);
                   const Tensor places = cast(range(prefix), a.dtype());
                   return transducer_loss(expand(a, all) * cos(expand(places, all)), labels,
                                          {to, labels.dim("labels"), prefix, Dims(dims)[1]},
                                          {.zero_infinity = true});
                 }()),
                 12, of_frames),
      expression(
          REEL_EXPRESSION(sum(square(backtrack(a, argsort(sin(a), axis), to, Dims(dims)[1])))), 8,
          of_frames),
  };
}

}  // namespace reel::fuzz
