// frontend/optimiser.h — Optimiser, what all optimisers are: steps, a learning rate, and a walk
// over the parameters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/functions/elementwise.h"
#include "reel/frontend/embedding_table.h"
#include "reel/frontend/leaves.h"
#include "reel/frontend/taken_leaves.h"
#include "reel/frontend/tree.h"

namespace reel {
namespace detail {

/// What an optimiser keeps for each parameter, as leaves, and how errors call it.
struct MomentLeaves {
  const char* name;
  TreeLeaves leaves;
  PathsFn paths;
};

/// The gradient of the leaf that is a table, where it is rows.
struct LeafRows {
  std::size_t leaf;
  EmbeddingTable rows;
};

/// The trees that a step works on, as leaves. Of a table whose gradient is rows, the leaf of the
/// gradient has the type of the table, and is not read.
struct OptimiserLeaves {
  TreeLeaves parameters, gradient;
  PathsFn parameter_paths, gradient_paths;
  std::vector<MomentLeaves> moments;
  std::vector<LeafRows> rows = {};
};

/// One step of one parameter: replaces it and its moments, which come in the optimiser's order.
using UpdateRule =
    std::function<void(Tensor& parameter, const Tensor& gradient, std::span<Tensor> moments)>;

/// A scalar of a step, computed in f64; in the dtype of a parameter it is cast once, when asked
/// for.
class StepScalar {
 public:
  explicit StepScalar(Tensor value) : in_f64_(std::move(value)) {}
  const Tensor& in(DType dtype);

 private:
  Tensor in_f64_, in_f32_;
};

/// A step of some rows: what the rule made of them, to be put into the table and its moments.
struct NewRows {
  std::size_t leaf;
  Tensor numbers, parameters;
  Tensors moments;
};

/// Applies the rule to every floating tensor; of a table whose gradient is rows, to these rows of
/// it and its moments, which put_new_rows puts in. Throws before it changes anything when trees
/// differ.
std::vector<NewRows> optimise(const char* optimiser, OptimiserLeaves& leaves,
                              const UpdateRule& rule);
/// In place, where nobody but the leaves holds a table.
void put_new_rows(OptimiserLeaves& leaves, std::vector<NewRows> rows);
/// Zeros in place of floating tensors; what is not optimised has no moments.
TreeLeaves zero_moments(TreeLeaves parameters);

Tensor first_step();
Tensor learning_rate_tensor(const char* optimiser, double learning_rate);
void check_learning_rate(const char* optimiser, const Tensor& learning_rate);

// Checks of options: they throw ArgumentError, which names optimiser, option and value.
void check_below_one(const char* optimiser, const char* option, double value);  ///< in [0, 1)
void check_positive(const char* optimiser, const char* option, double value);
void check_not_negative(const char* optimiser, const char* option, double value);

}  // namespace detail

/// What every optimiser is, for a tree of parameters: a tree itself, so that a training step that
/// takes and returns it can be traced as a whole. The number of steps and the learning rate are
/// tensors: changing them traces nothing again. Other options are part of a trace's signature.
///
/// Integers, booleans, None and what else is no floating tensor stay as they are.
///
/// Of an EmbeddingTable whose gradient is rows, a step is that of these rows: the rows of equal
/// index are added up, and the table and the moments change there as if they were all there is. All
/// other rows, their moments too, stay as they are, where a gradient of zeros would let moments
/// fade, and with momentum, Adam or weight decay still move the parameters. The step is counted, so
/// that corrections of bias are those of all steps. Plain gradient descent gives the same either
/// way. That is tf.keras's LazyAdam and torch's SparseAdam, for every optimiser.
template <class Params>
class Optimiser {
 public:
  /// The number of updates so far, an i64 scalar.
  const Tensor& step() const { return step_; }
  /// An f64 scalar.
  const Tensor& learning_rate() const { return learning_rate_; }
  /// Of the steps to come. Throws ArgumentError when it is negative or not finite.
  void set_learning_rate(double learning_rate) {
    learning_rate_ = detail::learning_rate_tensor(name_, learning_rate);
  }
  /// From a tensor, as a Schedule gives it inside a trace. Throws DTypeError or ShapeError unless
  /// it is an f64 scalar.
  void set_learning_rate(const Tensor& learning_rate) {
    detail::check_learning_rate(name_, learning_rate);
    learning_rate_ = learning_rate;
  }

 protected:
  struct Moment {
    const char* name;
    Params* tree;
  };

  /// name: for errors; a literal.
  Optimiser(const char* name, double learning_rate)
      : name_(name),
        step_(detail::first_step()),
        learning_rate_(detail::learning_rate_tensor(name, learning_rate)) {}

  static Params zero_moments(const Params& parameters) {
    return unflatten(parameters, detail::zero_moments(flatten(parameters)));
  }

  /// One step of all parameters by a rule, and of the moments that belong to them.
  void apply(Params& parameters, const Params& gradient, const std::vector<Moment>& moments,
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
    std::vector<detail::NewRows> rows = detail::optimise(name_, leaves, rule);
    const Tensor step = next_step();
    const auto give_back = [&] {  // into the trees as they are, without memory: it never fails
      put_leaves(parameters, leaves.parameters);
      for (std::size_t i = 0; i < moments.size(); ++i)
        put_leaves(*moments[i].tree, leaves.moments[i].leaves);
    };
    if (!rows.empty()) {  // the leaves alone hold the tables
      detail::DropTensors drop;
      detail::walk<false>(parameters, {}, drop);
      for (const Moment& moment : moments) detail::walk<false>(*moment.tree, {}, drop);
      try {
        detail::put_new_rows(leaves, std::move(rows));
      } catch (...) {
        give_back();
        throw;
      }
    }
    step_ = step;
    give_back();
  }

  static void put_leaves(Params& tree, const TreeLeaves& leaves) {
    detail::Unflatten put{leaves};
    detail::walk<false>(tree, {}, put);
  }

  /// The gradient's leaves, with the parameter in the place of rows, which are listed.
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
      rows.push_back({tables[k].leaves + 1, *gradients[k].table});  // behind the optional's size
      *places[k].table = *tables[k].table;
    }
    return flatten(whole);
  }

  /// The number of the step that an update takes, from 1.
  Tensor next_step() const { return step_ + 1; }

  const char* name_;
  Tensor step_, learning_rate_;
};

}  // namespace reel
