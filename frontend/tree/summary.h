// frontend/tree/summary.h — summary, a table of a model's parameters, and their number.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// One parameter of a model: a floating tensor, of the tensors that optimisers update.
struct ParameterSummary {
  std::string name;    ///< its path by names of fields, as in checkpoints
  TensorType type;     ///< dtype and dims
  std::int64_t count;  ///< number of elements
};

/// The parameters of a model. Prints as a table with the columns name, type and count, and their
/// sum in the last line.
struct Summary {
  std::vector<ParameterSummary> parameters;  ///< in the order of the model's fields
  std::int64_t count = 0;                    ///< number of elements of all parameters
};
std::ostream& operator<<(std::ostream& out, const Summary& summary);

namespace detail {
Summary summary_of(const TreeRef& model);
}  // namespace detail

/// Returns the parameters of a model or of any other tree. A tensor that is in two places counts
/// twice: optimisers change each place by its own gradient.
///
///   std::cout << summary(model);
///
///   name                  type                 count
///   cell.input_weight     f32[in=8,gate=64]      512
///   cell.recurrent_weight f32[hidden=16,gate=64] 1024
template <class Model>
Summary summary(const Model& model) {
  return detail::summary_of(detail::TreeRef(model));
}

/// Returns the number of elements of all parameters, which summary counts.
template <class Model>
std::int64_t parameter_count(const Model& model) {
  return summary(model).count;
}

}  // namespace reel
REEL_API_END
