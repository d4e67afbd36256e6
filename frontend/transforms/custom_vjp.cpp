#include "reel/frontend/transforms/custom_vjp.h"

#include <algorithm>

#include "reel/autodiff/tape.h"
#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/functions/unranked.h"

namespace reel::detail {

CustomArguments custom_arguments(const TreeLeaves& leaves, const std::vector<std::string>& paths) {
  CustomArguments result;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].kind != TreeLeaf::Kind::tensor) continue;
    const TensorType& type = leaves[i].tensor.type();
    result.types.push_back(type.with(type.dims()));  // as the body around the call sees it
    result.paths.push_back(paths[i]);
  }
  return result;
}

Tensors custom_cotangents(const TreeLeaves& given, const CustomArguments& expected) {
  Tensors cotangents;
  for (const TreeLeaf& leaf : given)
    if (leaf.kind == TreeLeaf::Kind::tensor || leaf.kind == TreeLeaf::Kind::none)
      cotangents.push_back(leaf.tensor);
  if (cotangents.size() != expected.types.size())
    throw StructureError(str("custom_vjp: backward returned ", cotangents.size(),
                             " cotangents, but the arguments have ", expected.types.size(),
                             " tensors; return a tuple with the cotangent of each argument"));
  std::string lines;
  bool is_dtype = false;
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    const TensorType type = type_here(expected.types[i]);
    if (!is_float(type.dtype())) cotangents[i] = Tensor();
    if (!cotangents[i].is_defined()) continue;
    if (type.is_unranked())
      cotangents[i] = as_unranked(cotangents[i]);
    else
      check_ranked(cotangents[i]);
    const TensorType& is = cotangents[i].type();
    const bool same_dtype = is.dtype() == type.dtype();
    if (is == type || (same_dtype && !(is.is_known() && type.is_known()))) continue;
    is_dtype = is_dtype || !same_dtype;
    lines += str("\n  argument ", expected.paths[i], ": ", is, " for ", type,
                 one_dim_hint(is.dims(), type.dims()));
  }
  if (lines.empty()) return cotangents;
  const std::string text =
      str("custom_vjp: backward returned cotangents of other types than the arguments", lines,
          "\nReturn a cotangent of the type of each argument.");
  if (is_dtype) throw DTypeError(text);
  throw ShapeError(text);
}

void check_custom_tangents(const TreeLeaves& tangents, const PathsFn& tangent_paths,
                           const TreeLeaves& cotangents, const PathsFn& cotangent_paths) {
  if (!same_structure(tangents, cotangents))
    throw StructureError(str(
        "custom_jvp: the tangent has another structure than the result",
        structure_differences(tangents, tangent_paths, cotangents, cotangent_paths, "the result")));
  std::string lines;
  bool is_dtype = false;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    if (!tangents[i].tensor.is_defined() || !cotangents[i].tensor.is_defined()) continue;
    const TensorType &is = tangents[i].tensor.type(), &type = cotangents[i].tensor.type();
    const bool same_dtype = is.dtype() == type.dtype();
    if (is == type || (same_dtype && !(is.is_known() && type.is_known()))) continue;
    is_dtype = is_dtype || !same_dtype;
    lines += str("\n  ", tangent_paths()[i], ": ", is, " for ", type,
                 one_dim_hint(is.dims(), type.dims()));
  }
  if (lines.empty()) return;
  const std::string text = str("custom_jvp: the tangent has another type than the result", lines,
                               "\nReturn a tangent of the type of the result.");
  if (is_dtype) throw DTypeError(text);
  throw ShapeError(text);
}

}  // namespace reel::detail
