// frontend/optimisers/optimiser.h — Optimiser, the base of all optimisers: step count, learning
// rate, and the walk over the parameters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/elementwise.h"
#include "reel/frontend/optimisers/clip.h"
#include "reel/frontend/sparse/embedding_table.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/taken_leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// Some of the parameters of an optimiser, with options of their own.
struct ParameterGroup {
  /// Returns true for a parameter of the group, given its path in the tree ("encoder.bias") and its
  /// value. Called once for each floating tensor, when the optimiser is made.
  std::function<bool(const std::string& path, const Tensor& parameter)> contains{};
  double rate = 1;                       ///< times the learning rate
  std::optional<double> weight_decay{};  ///< in place of the optimiser's, which must have one
};

namespace detail {

/// The options of one parameter.
struct LeafOptions {
  double rate = 1;
  double weight_decay = 0;
  bool operator==(const LeafOptions&) const = default;
};

/// One moment of an optimiser for each parameter, as leaves, with its name in errors.
struct MomentLeaves {
  const char* name;
  TreeLeaves leaves;
  PathsFn paths;
};

/// The gradient of a table leaf, if it is rows.
struct LeafRows {
  std::size_t leaf;
  EmbeddingTable rows;
};

/// The trees of one step, as leaves. If the gradient of a table is rows, the gradient's leaf has
/// the table's type and is not read.
struct OptimiserLeaves {
  TreeLeaves parameters, gradient;
  PathsFn parameter_paths, gradient_paths;
  std::vector<MomentLeaves> moments;
  std::vector<LeafRows> rows = {};
};

/// Updates one parameter and its moments, which are in the optimiser's order, by one step.
using UpdateRule = std::function<void(Tensor& parameter, const Tensor& gradient,
                                      std::span<Tensor> moments, const LeafOptions& options)>;

/// The options that an optimiser has for each floating tensor of the parameters, in their order; a
/// single one if all are equal. A tree.
struct GroupOptions {
  std::vector<double> rates{1}, weight_decays{0};
  LeafOptions of(std::size_t tensor) const {
    const std::size_t i = rates.size() == 1 ? 0 : tensor;
    return {rates[i], weight_decays[i]};
  }
};
/// weight_decay: the optimiser's; nullopt if it has none. A parameter belongs to the first group
/// that contains it. Throws ArgumentError for options out of range, and for a group without
/// parameters.
GroupOptions group_options(const char* optimiser, const TreeLeaves& parameters,
                           const PathsFn& paths, const std::vector<ParameterGroup>& groups,
                           std::optional<double> weight_decay);

/// A scalar of a step, computed in f64. It is cast once to a parameter's dtype, at the first
/// request.
class StepScalar {
 public:
  explicit StepScalar(Tensor value) : in_f64_(std::move(value)) {}
  const Tensor& in(DType dtype);

 private:
  Tensor in_f64_, in_f32_;
};

/// The learning rate of a step for each group.
class GroupRates {
 public:
  explicit GroupRates(Tensor learning_rate) : learning_rate_(std::move(learning_rate)) {}
  const Tensor& of(const LeafOptions& options, DType dtype);

 private:
  Tensor learning_rate_;
  std::map<double, StepScalar> by_factor_;
};

/// The results of the rule for one leaf and its moments: whole tensors, or rows to be written into
/// them.
struct NewValues {
  std::size_t leaf;
  Tensor numbers;  ///< of the rows; empty for whole tensors
  Tensor parameter;
  Tensors moments;

  bool are_rows() const { return numbers.is_defined(); }
};

/// Applies the rule to every floating tensor. If the gradient of a table is rows, applies it to
/// these rows of the table and its moments. Returns the results and changes no leaf. Throws if the
/// trees differ in structure or types.
std::vector<NewValues> optimise(const char* optimiser, OptimiserLeaves& leaves,
                                const UpdateRule& rule, const GroupOptions& options);
/// Writes new values into the leaves; rows in place if the leaf holds the only reference to its
/// table. Changes all leaves or, if it throws, none.
void put_new_values(OptimiserLeaves& leaves, std::vector<NewValues> values);
/// Returns moments of zero for floating tensors; other leaves have no moments.
TreeLeaves zero_moments(TreeLeaves parameters);

Tensor first_step();
Tensor learning_rate_tensor(const char* optimiser, double learning_rate);
void check_learning_rate(const char* optimiser, const Tensor& learning_rate);

// Checks of options. Throw ArgumentError, which names optimiser, option and value.
void check_below_one(const char* optimiser, const char* option, double value);  ///< in [0, 1)
void check_positive(const char* optimiser, const char* option, double value);
void check_not_negative(const char* optimiser, const char* option, double value);

}  // namespace detail

/// The base of all optimisers, for a tree of parameters. An optimiser is a tree itself, so that a
/// training step that takes and returns it can be traced as a whole. The number of steps and the
/// learning rate are tensors, so changing them does not record again. Other options are part of a
/// trace's signature.
///
/// Leaves that are not floating tensors (integers, booleans, None, ...) stay unchanged.
///
/// Sparse gradients: if the gradient of an EmbeddingTable is rows, a step updates these rows only.
/// Rows with equal indices are summed first; then the rule is applied to those rows of the table
/// and its moments. All other rows and their moments stay unchanged. A dense gradient of zeros
/// would let their moments decay, and with momentum, Adam or weight decay still move the
/// parameters. The step counts for all rows, so bias corrections use the total number of steps.
/// Plain gradient descent gives the same result either way. This is tf.keras's LazyAdam and torch's
/// SparseAdam, for every optimiser.
///
/// Options of every optimiser: `groups` gives some parameters another learning rate, or another
/// weight decay; with `clip_norm`, an update clips the gradient by its global norm first, as
/// clip_by_global_norm does.
///
///   const auto is_bias = [](const std::string& path, const Tensor&) {
///     return path.ends_with("bias");
///   };
///   AdamW adam(model, {.weight_decay = 0.1,
///                      .groups = {{.contains = is_bias, .weight_decay = 0}},
///                      .clip_norm = 1});
template <class Params>
class Optimiser {
 public:
  /// Returns the number of updates so far, an i64 scalar.
  const Tensor& step() const { return step_; }
  /// Returns the learning rate, an f64 scalar.
  const Tensor& learning_rate() const { return learning_rate_; }
  /// Sets the learning rate of the following steps. Throws ArgumentError if it is negative or not
  /// finite.
  void set_learning_rate(double learning_rate) {
    learning_rate_ = detail::learning_rate_tensor(name_, learning_rate);
  }
  /// Sets the learning rate from a tensor, for example a Schedule's inside a trace. Throws
  /// DTypeError or ShapeError unless it is an f64 scalar.
  void set_learning_rate(const Tensor& learning_rate) {
    detail::check_learning_rate(name_, learning_rate);
    learning_rate_ = learning_rate;
  }

 protected:
  struct Moment {
    const char* name;
    Params* tree;
  };

  /// name: for errors. Requires a string literal. options: has learning_rate, clip_norm and groups.
  /// weight_decay: nullopt for an optimiser without one.
  template <class Options>
  Optimiser(const char* name, const Params& parameters, const Options& options,
            std::optional<double> weight_decay = {})
      : name_(name),
        step_(detail::first_step()),
        learning_rate_(detail::learning_rate_tensor(name, options.learning_rate)),
        groups_(detail::group_options(
            name, flatten(parameters), [&] { return leaf_paths(parameters); }, options.groups,
            weight_decay)),
        clip_norm_(options.clip_norm) {
    detail::check_not_negative(name, "clip_norm", clip_norm_);
  }

  static Params zero_moments(const Params& parameters) {
    return unflatten(parameters, detail::zero_moments(flatten(parameters)));
  }

  /// Applies the rule once to all parameters and their moments; clips the gradient before.
  void apply(Params& parameters, const Params& gradient, const std::vector<Moment>& moments,
             const detail::UpdateRule& rule) {
    if (clip_norm_ > 0)
      apply_clipped(parameters, clip_by_global_norm(gradient, clip_norm_).first, moments, rule);
    else
      apply_clipped(parameters, gradient, moments, rule);
  }

  static void put_leaves(Params& tree, const TreeLeaves& leaves) {
    detail::Unflatten put{leaves};
    detail::walk<false>(tree, {}, put);
  }

  /// Returns the number of the next update, counted from 1.
  Tensor next_step() const { return step_ + 1; }

  const char* name_;
  Tensor step_, learning_rate_;
  detail::GroupOptions groups_;
  double clip_norm_;

 private:
  void apply_clipped(Params& parameters, const Params& gradient, const std::vector<Moment>& moments,
                     const detail::UpdateRule& rule) {
    detail::OptimiserLeaves leaves{flatten(parameters),
                                   {},
                                   [&] { return leaf_paths(parameters); },
                                   [&] { return leaf_paths(gradient); },
                                   {}};
    leaves.gradient = gradient_leaves(parameters, gradient, leaves.rows);
    for (const Moment& moment : moments)
      leaves.moments.push_back(
          {moment.name, flatten(*moment.tree), [tree = moment.tree] { return leaf_paths(*tree); }});
    std::vector<detail::NewValues> values = detail::optimise(name_, leaves, rule, groups_);
    const Tensor step = next_step();
    const auto give_back = [&] {  // into the trees as they are, without allocation: never fails
      put_leaves(parameters, leaves.parameters);
      for (std::size_t i = 0; i < moments.size(); ++i)
        put_leaves(*moments[i].tree, leaves.moments[i].leaves);
    };
    if (std::any_of(values.begin(), values.end(), [](const auto& of) { return of.are_rows(); })) {
      detail::DropTensors drop;  // the leaves must hold the only references to the tables
      detail::walk<false>(parameters, {}, drop);
      for (const Moment& moment : moments) detail::walk<false>(*moment.tree, {}, drop);
    }
    try {
      detail::put_new_values(leaves, std::move(values));
    } catch (...) {
      give_back();
      throw;
    }
    step_ = step;
    give_back();
  }

  /// Returns the gradient's leaves; puts parameters in the place of rows, and lists the rows.
  static TreeLeaves gradient_leaves(Params& parameters, const Params& gradient,
                                    std::vector<detail::LeafRows>& rows) {
    const auto tables = detail::tables_of(parameters);
    const auto gradients = detail::tables_of(gradient);
    const auto is_rows = [](const detail::FoundTable& found) { return found.table->is_sparse(); };
    if (tables.size() != gradients.size() ||
        std::none_of(gradients.begin(), gradients.end(), is_rows))
      return flatten(gradient);
    Params whole = gradient;
    const auto places = detail::tables_of(whole);
    for (std::size_t k = 0; k < tables.size(); ++k) {
      if (!is_rows(gradients[k]) || !tables[k].table->is_dense()) continue;
      rows.push_back({tables[k].leaves + 1, *gradients[k].table});  // after the optional's size
      *places[k].table = *tables[k].table;
    }
    return flatten(whole);
  }
};

}  // namespace reel
REEL_API_END
