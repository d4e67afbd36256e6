#include "reel/frontend/transforms/jvp.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::detail {
namespace {

bool is_differentiable(const Tensor& tensor) {
  return tensor.is_defined() && is_float(tensor.dtype());
}

/// Compares known sizes and names only; the run checks sizes that are not known yet.
bool may_be_equal(const Dims& a, const Dims& b) {
  const auto says_something = [](const Dim& dim) { return dim.is_named() || dim.has_size(); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Dim& a, const Dim& b) {
    return a == b || !says_something(a) || !says_something(b);
  });
}

}  // namespace

void check_tangents(const char* what, const TreeLeaves& primals, const PathsFn& primal_paths,
                    const TreeLeaves& tangents, const PathsFn& tangent_paths) {
  enum { fine, shape, dtype, structure } worst = fine;
  std::string lines =
      structure_differences(primals, primal_paths, tangents, tangent_paths, "its tangent");
  if (!lines.empty()) worst = structure;
  for (std::size_t i = 0; lines.empty() || worst != structure; ++i) {
    if (i >= primals.size()) break;
    const Tensor &primal = primals[i].tensor, &tangent = tangents[i].tensor;
    if (!is_differentiable(primal) || primal.type() == tangent.type()) continue;
    if (is_unranked(primal)) check_ranked(primal);
    const auto complain = [&](auto severity, const std::string& why) {
      worst = std::max(worst, severity);
      lines += str("\n  ", primal_paths()[i], ": ", print(primals[i]), ", its tangent ",
                   print(tangents[i]), " (", why, ")");
    };
    if (primal.type().is_list() != tangent.type().is_list())
      complain(dtype, "one is a list");
    else if (primal.dtype() != tangent.dtype())
      complain(dtype, "dtypes differ");
    else if (!may_be_equal(primal.dims(), tangent.dims()))
      complain(shape, dims_differ(primal.type(), tangent.type()));
  }
  if (worst == fine) return;
  const std::string text =
      str(what, ": the tangents are not of the types of the primals", lines,
          "\nGive every floating tensor a tangent of its own type, zeros if it is constant.");
  if (worst == structure) throw StructureError(text);
  if (worst == dtype) throw DTypeError(text);
  throw ShapeError(text);
}

Tensors pushed_forward(RecordingTape& tape, const Tensors& sources, const Tensors& tangents,
                       const Tensors& targets) {
  // The pullback is linear in its cotangent: any cotangent will do, as the vjp of the pullback does
  // not read it.
  Tensors from, cotangents, to;
  RecordingTape of_pullback;
  for (const Tensor& target : targets) {
    if (!is_differentiable(target)) continue;
    from.push_back(target);
    cotangents.push_back(zero_gradient(target));
    of_pullback.watch(cotangents.back());
  }
  Tensors pulled = tape.gradient(from, cotangents, sources), directions;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!pulled[i].is_defined() || !is_differentiable(sources[i])) continue;
    to.push_back(pulled[i]);
    directions.push_back(tangents[i]);
  }
  const Tensors pushed = of_pullback.gradient(to, directions, cotangents);
  Tensors result;
  std::size_t next = 0;
  for (const Tensor& target : targets)
    result.push_back(is_differentiable(target) ? pushed[next++] : Tensor());
  return result;
}

}  // namespace reel::detail
