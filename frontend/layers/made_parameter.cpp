#include "reel/frontend/layers/made_parameter.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::detail {

DType made_dtype(std::string_view layer, std::string_view parameter, const Tensor& value) {
  if (value.is_defined()) return value.dtype();
  throw ArgumentError(str(layer, ": its parameter ", parameter,
                          " is an empty Tensor; make it with ", layer,
                          "::init, and do not call a layer that was moved"));
}

}  // namespace reel::detail
