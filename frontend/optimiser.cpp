#include "reel/frontend/optimiser.h"

#include <cmath>

#include "reel/core/memory.h"
#include "reel/core/ops.h"

namespace reel::detail {
namespace {

void check_structures(const char* optimiser, const OptimiserLeaves& leaves) {
  const std::string of_gradient =
      structure_differences(leaves.parameters, leaves.parameter_paths, leaves.gradient,
                            leaves.gradient_paths, "in the gradient");
  if (!of_gradient.empty())
    throw StructureError(
        str(optimiser, ": the gradient has another structure than the parameters", of_gradient));
  for (const MomentLeaves& moment : leaves.moments) {
    const std::string of_moment = structure_differences(
        leaves.parameters, leaves.parameter_paths, moment.leaves, moment.paths, "when it was made");
    if (!of_moment.empty())
      throw StructureError(
          str(optimiser, ": the parameters have another structure than those that it was made for",
              of_moment));
  }
}

void check_types(const char* optimiser, const OptimiserLeaves& leaves) {
  std::string differences;
  bool dtypes_differ = false;
  for (std::size_t i = 0; i < leaves.parameters.size(); ++i) {
    if (!is_floating(leaves.parameters[i])) continue;
    const TensorType& parameter = leaves.parameters[i].tensor.type();
    const auto compare = [&](const char* role, const TensorType& type) {
      if (type == parameter ||
          (type.dtype() == parameter.dtype() && !(type.is_known() && parameter.is_known())))
        return;
      dtypes_differ = dtypes_differ || type.dtype() != parameter.dtype();
      const std::string path = leaves.parameter_paths()[i];
      differences += str("\n  ", path.empty() ? "the tensor" : path, ": ", parameter, ", its ",
                         role, ' ', type);
    };
    compare("gradient", leaves.gradient[i].tensor.type());
    for (const MomentLeaves& moment : leaves.moments)
      compare(moment.name, moment.leaves[i].tensor.type());
  }
  if (differences.empty()) return;
  const std::string message =
      str(optimiser, ": types differ from those of the parameters", differences);
  if (dtypes_differ) throw DTypeError(message);
  throw ShapeError(message);
}

[[noreturn]] void refuse(const char* optimiser, const char* option, const char* rule,
                         double value) {
  throw ArgumentError(str(optimiser, ": ", option, " must be ", rule, ", got ", value));
}

}  // namespace

const Tensor& StepScalar::in(DType dtype) {
  if (dtype == f64) return in_f64_;
  if (!in_f32_.is_defined()) in_f32_ = cast(in_f64_, f32);
  return in_f32_;
}

void optimise(const char* optimiser, OptimiserLeaves& leaves, const UpdateRule& rule) {
  check_structures(optimiser, leaves);
  check_types(optimiser, leaves);
  std::vector<Tensor> moments(leaves.moments.size());
  for (std::size_t i = 0; i < leaves.parameters.size(); ++i) {
    if (!is_floating(leaves.parameters[i])) continue;
    for (std::size_t m = 0; m < moments.size(); ++m)
      moments[m] = leaves.moments[m].leaves[i].tensor;
    rule(leaves.parameters[i].tensor, leaves.gradient[i].tensor, moments);
    count_as(leaves.parameters[i].tensor, MemoryClass::parameters);
    for (const Tensor& moment : moments) count_as(moment, MemoryClass::parameters);
    for (std::size_t m = 0; m < moments.size(); ++m)
      leaves.moments[m].leaves[i].tensor = moments[m];
  }
}

TreeLeaves zero_moments(TreeLeaves parameters) {
  for (TreeLeaf& leaf : parameters) {
    if (!is_floating(leaf)) continue;
    count_as(leaf.tensor, MemoryClass::parameters);
    leaf.tensor = zeros_like(leaf.tensor);
    count_as(leaf.tensor, MemoryClass::parameters);
  }
  return parameters;
}

Tensor first_step() { return scalar(0, i64); }

Tensor learning_rate_tensor(const char* optimiser, double learning_rate) {
  if (!(learning_rate >= 0) || !std::isfinite(learning_rate))
    throw ArgumentError(str(
        optimiser, ": learning_rate must be a number that is not negative, got ", learning_rate));
  return scalar(learning_rate, f64);
}

void check_learning_rate(const char* optimiser, const Tensor& learning_rate) {
  if (learning_rate.dtype() != f64)
    throw DTypeError(str(optimiser, ": a learning rate is an f64 scalar, got ",
                         learning_rate.type(), "; cast it"));
  if (learning_rate.rank())
    throw ShapeError(
        str(optimiser, ": a learning rate is an f64 scalar, got ", learning_rate.type()));
}

void check_below_one(const char* optimiser, const char* option, double value) {
  if (!(value >= 0 && value < 1)) refuse(optimiser, option, "in [0, 1)", value);
}
void check_positive(const char* optimiser, const char* option, double value) {
  if (!(value > 0) || !std::isfinite(value)) refuse(optimiser, option, "positive", value);
}
void check_not_negative(const char* optimiser, const char* option, double value) {
  if (!(value >= 0) || !std::isfinite(value))
    refuse(optimiser, option, "a number that is not negative", value);
}

}  // namespace reel::detail
