#include "reel/frontend/optimisers/optimiser.h"

#include <algorithm>
#include <cmath>

#include "reel/core/base/update_mark.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/rows.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/runtime/memory.h"
#include "reel/frontend/optimisers/optimiser_leaves.h"
#include "reel/frontend/tree/refuse_arrays.h"

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

/// Returns true if ops see one type: in a trace, captured tensors have the dims of the arguments.
bool look_alike(const TensorType& a, const TensorType& b) {
  return a == b || a.with(a.dims()) == b.with(b.dims());
}

void check_types(const char* optimiser, const OptimiserLeaves& leaves) {
  std::string differences;
  bool dtypes_differ = false;
  for (std::size_t i = 0; i < leaves.parameters.size(); ++i) {
    if (!is_floating(leaves.parameters[i])) continue;
    const TensorType& parameter = leaves.parameters[i].tensor.type();
    const auto compare = [&](const char* role, const TensorType& type) {
      if (look_alike(type, parameter) ||
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

/// Throws unless the gradient's rows are rows of the parameter.
void check_rows(const char* optimiser, const OptimiserLeaves& leaves, const LeafRows& of) {
  const TensorType& table = leaves.parameters[of.leaf].tensor.type();
  const IndexedSlices& slices = of.rows.slices();
  const TensorType& values = slices.values.type();
  std::vector<std::int64_t> whole(values.sizes());
  if (!whole.empty()) whole[0] = of.rows.dims()[0].size();
  const bool fits = whole == table.sizes();
  if (fits && values.dtype() == table.dtype()) return;
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

/// One tensor of a leaf, a parameter or a moment, and its value after the step.
struct NewValue {
  Tensor* leaf;
  const Tensor& numbers;
  Tensor value;
  bool are_rows_in_place = false;
};

/// Returns the gradient's leaves; puts parameters in the place of rows, and lists the rows.
TreeLeaves gradient_leaves(const TreeRef& parameters, const TreeRef& gradient,
                           std::vector<LeafRows>& rows) {
  const std::vector<FoundTable> tables = tables_in(parameters), gradients = tables_in(gradient);
  TreeLeaves leaves = flatten_tree(gradient);
  if (tables.size() != gradients.size()) return leaves;
  TreeLeaves whole;
  auto next = leaves.begin();
  for (std::size_t k = 0; k < tables.size(); ++k) {
    if (!gradients[k].table->is_sparse() || !tables[k].table->is_dense()) continue;
    rows.push_back({tables[k].leaves + 1, *gradients[k].table});  // after the optional's size
    const auto table = leaves.begin() + static_cast<std::ptrdiff_t>(gradients[k].leaves);
    whole.insert(whole.end(), next, table);
    next = table + static_cast<std::ptrdiff_t>(count_leaves(TreeRef(*gradients[k].table)));
    const TreeLeaves parameter = flatten_tree(TreeRef(*tables[k].table));
    whole.insert(whole.end(), parameter.begin(), parameter.end());
  }
  whole.insert(whole.end(), next, leaves.end());
  return whole;
}

/// The gradient of a parameter that is not frozen.
struct LeafGradient {
  std::size_t leaf;
  const LeafOptions* options;
  Tensor numbers;  ///< of the rows, each once; empty for a whole gradient
  Tensor values;
};

/// Returns the gradients of the parameters that are not frozen. No other gradient is read, so that
/// a trace does not compute it.
std::vector<LeafGradient> trained_gradients(const char* optimiser, OptimiserLeaves& leaves,
                                            const GroupOptions& options) {
  for (const LeafRows& of : leaves.rows) {
    leaves.gradient[of.leaf].tensor = Tensor();
    check_rows(optimiser, leaves, of);
  }
  std::vector<LeafGradient> result;
  std::size_t tensors = 0;
  auto rows = leaves.rows.begin();
  for (std::size_t i = 0; i < leaves.parameters.size(); ++i) {
    if (!is_floating(leaves.parameters[i])) continue;
    const LeafOptions& own = options.of(tensors++);
    const bool are_rows = rows != leaves.rows.end() && rows->leaf == i;
    if (!own.frozen) {
      if (are_rows) {
        const EmbeddingTable once = rows->rows.coalesced();
        result.push_back({i, &own, once.slices().indices, once.slices().values});
      } else {
        result.push_back({i, &own, {}, leaves.gradient[i].tensor});
      }
    }
    if (are_rows) ++rows;
  }
  return result;
}

/// Calls fn. If DetectNan throws, adds the optimiser and `part` to its error.
template <class Fn, class Part>
void run_named(const char* optimiser, Fn fn, Part part) {
  try {
    fn();
  } catch (NumericsError& error) {
    error.add_line(str("in ", optimiser, "::update", part()));
    throw;
  }
}

void clip(const char* optimiser, std::vector<LeafGradient>& gradients, double max_norm) {
  std::vector<Tensor*> tensors;
  for (LeafGradient& of : gradients) tensors.push_back(&of.values);
  run_named(
      optimiser, [&] { clip_tensors(tensors, max_norm); }, [] { return " by clip_norm"; });
}

}  // namespace

UpdateScope::UpdateScope(const char* optimiser)
    : source_(is_tracing() ? in_update_of(source_here(), optimiser) : kNoSource) {}

const Tensor& StepScalar::in(DType dtype) {
  if (dtype == f64) return in_f64_;
  if (!in_f32_.is_defined()) in_f32_ = cast(in_f64_, f32);
  return in_f32_;
}

const Tensor& GroupRates::of(const LeafOptions& options, DType dtype) {
  auto of = by_factor_.find(options.rate);
  if (of == by_factor_.end())
    of = by_factor_
             .emplace(options.rate,
                      options.rate == 1 ? learning_rate_ : learning_rate_ * options.rate)
             .first;
  return of->second.in(dtype);
}

std::vector<NewValues> optimise(const char* optimiser, OptimiserLeaves& leaves,
                                const UpdateRule& rule, const GroupOptions& options,
                                double clip_norm) {
  refuse_arrays(optimiser, leaves.parameters, leaves.parameter_paths);
  check_structures(optimiser, leaves);
  check_groups(optimiser, leaves.parameters, options);
  check_types(optimiser, leaves);
  std::vector<LeafGradient> gradients = trained_gradients(optimiser, leaves, options);
  if (clip_norm > 0) clip(optimiser, gradients, clip_norm);
  std::vector<NewValues> result;
  result.reserve(gradients.size());
  for (const LeafGradient& of : gradients) {
    NewValues made{of.leaf, of.numbers, leaves.parameters[of.leaf].tensor, {}};
    made.moments.reserve(leaves.moments.size());
    for (const MomentLeaves& moment : leaves.moments)
      made.moments.push_back(moment.leaves[of.leaf].tensor);
    if (made.are_rows()) {
      made.parameter = take_rows(made.parameter, of.numbers);
      for (Tensor& moment : made.moments) moment = take_rows(moment, of.numbers);
    }
    run_named(
        optimiser, [&] { rule(made.parameter, of.values, made.moments, *of.options); },
        [&] {
          const std::string path = leaves.parameter_paths()[of.leaf];
          return path.empty() ? path : " of " + path;
        });
    if (!made.are_rows()) {
      count_as(made.parameter, MemoryClass::parameters);
      for (const Tensor& moment : made.moments) count_as(moment, MemoryClass::parameters);
    }
    result.push_back(std::move(made));
  }
  return result;
}

void put_new_values(OptimiserLeaves& leaves, std::vector<NewValues> values) {
  std::vector<NewValue> all;
  all.reserve(values.size() * (1 + leaves.moments.size()));
  for (NewValues& of : values) {
    all.push_back({&leaves.parameters[of.leaf].tensor, of.numbers, std::move(of.parameter)});
    for (std::size_t m = 0; m < of.moments.size(); ++m)
      all.push_back(
          {&leaves.moments[m].leaves[of.leaf].tensor, of.numbers, std::move(of.moments[m])});
  }
  // A copy of a table may find no memory: all are made before any leaf changes.
  for (NewValue& of : all) {
    if (!of.numbers.is_defined()) continue;
    of.are_rows_in_place = may_overwrite_rows(*of.leaf, of.numbers, of.value);
    if (of.are_rows_in_place) continue;
    of.value = put_rows(*of.leaf, of.numbers, of.value);
    count_as(of.value, MemoryClass::parameters);
  }
  for (NewValue& of : all)
    if (of.are_rows_in_place)
      overwrite_rows(*of.leaf, of.numbers, of.value);
    else
      *of.leaf = std::move(of.value);
}

void apply_rule(const char* optimiser, const TreeSlot& parameters, const TreeRef& gradient,
                const std::vector<Moment>& moments, const UpdateRule& rule,
                const GroupOptions& options, double clip_norm, Tensor& step) {
  OptimiserLeaves leaves{
      flatten_tree(parameters), {}, paths_fn(parameters), paths_fn(gradient), {}};
  leaves.gradient = gradient_leaves(parameters, gradient, leaves.rows);
  for (const Moment& moment : moments)
    leaves.moments.push_back({moment.name, flatten_tree(moment.tree), paths_fn(moment.tree)});
  std::vector<NewValues> values = optimise(optimiser, leaves, rule, options, clip_norm);
  const Tensor next_step = step + 1;
  const auto give_back = [&] {  // into the trees as they are, without allocation: never fails
    fill_tree(parameters, std::move(leaves.parameters));
    for (std::size_t i = 0; i < moments.size(); ++i)
      fill_tree(moments[i].tree, std::move(leaves.moments[i].leaves));
  };
  if (std::any_of(values.begin(), values.end(), [](const auto& of) { return of.are_rows(); })) {
    // The leaves must hold the only references to the tables.
    drop_tensors(parameters);
    for (const Moment& moment : moments) drop_tensors(moment.tree);
  }
  try {
    put_new_values(leaves, std::move(values));
  } catch (...) {
    give_back();
    throw;
  }
  step = next_step;
  give_back();
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
