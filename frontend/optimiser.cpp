#include "reel/frontend/optimiser.h"

#include <cmath>

#include "reel/core/memory.h"
#include "reel/core/ops.h"
#include "reel/core/ops/rows.h"
#include "reel/core/same_name.h"

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
                         role, ' ', type, one_dim_hint(parameter.dims(), type.dims()));
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

/// Returns the rows of a gradient, each once. Throws unless they are rows of the parameter.
EmbeddingTable checked_rows(const char* optimiser, const OptimiserLeaves& leaves,
                            const LeafRows& of) {
  const TensorType& table = leaves.parameters[of.leaf].tensor.type();
  const IndexedSlices& slices = of.rows.slices();
  const TensorType& values = slices.values.type();
  std::vector<std::int64_t> whole(values.sizes());
  if (!whole.empty()) whole[0] = of.rows.dims()[0].size();
  const bool fits = whole == table.sizes();
  if (fits && values.dtype() == table.dtype()) return of.rows.coalesced();
  const std::string path = leaves.parameter_paths()[of.leaf];
  const std::string message =
      str(optimiser, ": types differ from those of the parameters\n  ",
          path.empty() ? "the table" : path, ": ", table, ", its gradient is rows ", values,
          " of a table with the dims ", of.rows.dims());
  if (fits) throw DTypeError(message);
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

std::vector<NewRows> optimise(const char* optimiser, OptimiserLeaves& leaves,
                              const UpdateRule& rule) {
  check_structures(optimiser, leaves);
  check_types(optimiser, leaves);
  // Check all indices before the first step, so that a plan can update arguments in place.
  std::vector<EmbeddingTable> once(leaves.gradient.size());
  for (const LeafRows& of : leaves.rows) {
    leaves.gradient[of.leaf].tensor = Tensor();
    once[of.leaf] = checked_rows(optimiser, leaves, of);
  }
  std::vector<NewRows> result;
  Tensors moments(leaves.moments.size());
  for (std::size_t i = 0; i < leaves.parameters.size(); ++i) {
    if (!is_floating(leaves.parameters[i])) continue;
    for (std::size_t m = 0; m < moments.size(); ++m)
      moments[m] = leaves.moments[m].leaves[i].tensor;
    if (!once[i].is_sparse()) {
      rule(leaves.parameters[i].tensor, leaves.gradient[i].tensor, moments);
      count_as(leaves.parameters[i].tensor, MemoryClass::parameters);
      for (const Tensor& moment : moments) count_as(moment, MemoryClass::parameters);
      for (std::size_t m = 0; m < moments.size(); ++m)
        leaves.moments[m].leaves[i].tensor = moments[m];
      continue;
    }
    const IndexedSlices& slices = once[i].slices();
    NewRows rows{i, slices.indices, take_rows(leaves.parameters[i].tensor, slices.indices), {}};
    for (const Tensor& moment : moments) rows.moments.push_back(take_rows(moment, slices.indices));
    rule(rows.parameters, slices.values, rows.moments);
    result.push_back(std::move(rows));
  }
  return result;
}

void put_new_rows(OptimiserLeaves& leaves, std::vector<NewRows> rows) {
  const auto put = [](Tensor& table, const Tensor& numbers, const Tensor& values) {
    // A shared table is copied, which may fail: it is kept until then.
    const bool is_ours = table.ref().unique();
    table =
        is_ours ? put_rows(std::move(table), numbers, values) : put_rows(table, numbers, values);
    count_as(table, MemoryClass::parameters);
  };
  for (const NewRows& of : rows) {
    put(leaves.parameters[of.leaf].tensor, of.numbers, of.parameters);
    for (std::size_t m = 0; m < of.moments.size(); ++m)
      put(leaves.moments[m].leaves[of.leaf].tensor, of.numbers, of.moments[m]);
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
