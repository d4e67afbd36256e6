#include "reel/frontend/adam.h"

#include <cmath>
#include <optional>

#include "reel/core/ops.h"

namespace reel::detail {
namespace {

bool is_optimised(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
         !leaf.tensor.type().is_list() && is_float(leaf.tensor.dtype());
}

/// What a leaf is, for a comparison: sizes of containers are fixed leaves.
bool same_structure(const TreeLeaves& a, const TreeLeaves& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].kind != b[i].kind || a[i].fixed != b[i].fixed ||
        is_optimised(a[i]) != is_optimised(b[i]))
      return false;
  return true;
}

void check_trees(const AdamLeaves& leaves, const std::function<std::vector<std::string>()>& paths) {
  if (!same_structure(leaves.parameters, leaves.gradient))
    throw StructureError("adam: the gradient has another structure than the parameters");
  if (!same_structure(leaves.parameters, leaves.first))
    throw StructureError(
        "adam: the parameters have another structure than those that the optimiser was made for");
  std::string differences;
  bool dtypes_differ = false;
  for (std::size_t i = 0; i < leaves.parameters.size(); ++i) {
    if (!is_optimised(leaves.parameters[i])) continue;
    const TensorType& parameter = leaves.parameters[i].tensor.type();
    const auto compare = [&](const char* role, const TensorType& type) {
      if (type == parameter ||
          (type.dtype() == parameter.dtype() && !(type.is_known() && parameter.is_known())))
        return;
      dtypes_differ = dtypes_differ || type.dtype() != parameter.dtype();
      differences += str("\n  ", paths()[i], ": ", parameter, ", its ", role, ' ', type);
    };
    compare("gradient", leaves.gradient[i].tensor.type());
    compare("moment", leaves.first[i].tensor.type());
  }
  if (differences.empty()) return;
  const std::string message =
      "adam: gradients and moments must have the types of their parameters" + differences;
  if (dtypes_differ) throw DTypeError(message);
  throw ShapeError(message);
}

/// Scalars of one step in the dtype of a parameter, made when first asked for.
class StepScalars {
 public:
  StepScalars(const Tensor& step, const Tensor& learning_rate, const AdamOptions& options) {
    const Tensor t = cast(step, f64);
    rate_ = learning_rate / (1.0 - pow(options.beta1, t));
    root_ = 1.0 / sqrt(1.0 - pow(options.beta2, t));
  }
  struct Pair {
    Tensor rate, root;  ///< η/(1-β₁ᵗ) and 1/√(1-β₂ᵗ)
  };
  const Pair& in(DType dtype) {
    std::optional<Pair>& pair = dtype == f64 ? as_f64_ : as_f32_;
    if (!pair)
      pair = dtype == f64 ? Pair{rate_, root_} : Pair{cast(rate_, dtype), cast(root_, dtype)};
    return *pair;
  }

 private:
  Tensor rate_, root_;
  std::optional<Pair> as_f32_, as_f64_;
};

}  // namespace

void check_adam_options(const AdamOptions& options) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  if (!is_beta(options.beta1))
    throw ArgumentError(str("adam: beta1 must be in [0, 1), got ", options.beta1));
  if (!is_beta(options.beta2))
    throw ArgumentError(str("adam: beta2 must be in [0, 1), got ", options.beta2));
  if (!(options.epsilon > 0) || !std::isfinite(options.epsilon))
    throw ArgumentError(str("adam: epsilon must be positive, got ", options.epsilon));
}

TreeLeaves zero_moments(TreeLeaves parameters) {
  for (TreeLeaf& leaf : parameters)
    if (is_optimised(leaf)) leaf.tensor = zeros_like(leaf.tensor);
  return parameters;
}

Tensor first_step() { return scalar(0, i64); }

Tensor learning_rate_tensor(double learning_rate) {
  if (!(learning_rate >= 0) || !std::isfinite(learning_rate))
    throw ArgumentError(
        str("adam: learning_rate must be a number that is not negative, got ", learning_rate));
  return scalar(learning_rate, f64);
}

void check_learning_rate(const Tensor& learning_rate) {
  if (learning_rate.dtype() != f64)
    throw DTypeError(
        str("adam: a learning rate is an f64 scalar, got ", learning_rate.type(), "; cast it"));
  if (learning_rate.rank())
    throw ShapeError(str("adam: a learning rate is an f64 scalar, got ", learning_rate.type()));
}

void adam_update(AdamLeaves& leaves, Tensor& step, const Tensor& learning_rate,
                 const AdamOptions& options,
                 const std::function<std::vector<std::string>()>& paths) {
  check_trees(leaves, paths);
  step = step + 1;
  StepScalars scalars(step, learning_rate, options);
  for (std::size_t i = 0; i < leaves.parameters.size(); ++i) {
    if (!is_optimised(leaves.parameters[i])) continue;
    Tensor& parameter = leaves.parameters[i].tensor;
    Tensor &m = leaves.first[i].tensor, &v = leaves.second[i].tensor;
    const Tensor& gradient = leaves.gradient[i].tensor;
    const auto& [rate, root] = scalars.in(parameter.dtype());
    m = m * options.beta1 + gradient * (1 - options.beta1);
    v = v * options.beta2 + square(gradient) * (1 - options.beta2);
    parameter = parameter - m * rate / (sqrt(v) * root + options.epsilon);
  }
}

}  // namespace reel::detail
