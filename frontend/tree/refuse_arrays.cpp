#include "reel/frontend/tree/refuse_arrays.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::detail {

void refuse_arrays(const char* function, const TreeLeaves& leaves, const PathsFn& paths) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].kind != TreeLeaf::Kind::tensor || !leaves[i].tensor.is_defined()) continue;
    const TensorType& type = leaves[i].tensor.type();
    if (!type.is_list() || !is_float(type.dtype())) continue;
    const std::string path = paths()[i];
    throw ArgumentError(str(function, ": ", path.empty() ? "the tree" : path, " is a TensorArray, ",
                            type, "; stack() it, or hold its elements in a std::vector<Tensor>"));
  }
}

}  // namespace reel::detail
