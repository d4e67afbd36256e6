// frontend/optimisers/optimiser.h — Optimiser, the base of all optimisers: step count, learning
// rate, and the walk over the parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/base/source.h"
#include "reel/core/base/visibility.h"
#include "reel/core/functions/elementwise.h"
#include "reel/frontend/optimisers/clip.h"
#include "reel/frontend/optimisers/parameter_group.h"
#include "reel/frontend/sparse/embedding_table.h"
#include "reel/frontend/tree/leaves.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

/// Updates one parameter and its moments, which are in the optimiser's order, by one step.
using UpdateRule = std::function<void(Tensor& parameter, const Tensor& gradient,
                                      std::span<Tensor> moments, const LeafOptions& options)>;

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

/// For functions that leave out the gradients of frozen parameters.
struct OptimiserGroups {
  template <class Optimiser>
  static const GroupOptions& of(const Optimiser& optimiser) {
    return optimiser.groups_;
  }
};

/// Marks ops that a trace records during its lifetime as one update; pictures draw a box around
/// them. optimiser: a string literal.
class UpdateScope {
 public:
  explicit UpdateScope(const char* optimiser);

 private:
  SourceScope source_;
};

/// One moment of an optimiser for each parameter, with its name in errors.
struct Moment {
  const char* name;
  TreeSlot tree;
};

/// Applies the rule once to all parameters and their moments, and replaces `step` by the next one.
/// If the gradient of a table is rows, applies it to these rows of the table and its moments.
/// Frozen parameters and their moments keep their tensors. clip_norm: the largest global norm of
/// the other parameters' gradient; 0: not clipped. Throws, and changes nothing, if the trees differ
/// in structure or types.
void apply_rule(const char* optimiser, const TreeSlot& parameters, const TreeRef& gradient,
                const std::vector<Moment>& moments, const UpdateRule& rule,
                const GroupOptions& options, double clip_norm, Tensor& step);
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
/// Leaves that are not floating tensors (integers, booleans, None, ...) stay unchanged. A
/// TensorArray of floating elements is refused, with an ArgumentError.
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
/// weight decay, or freezes them; with `clip_norm`, an update clips the gradient by its global norm
/// first, as clip_by_global_norm does.
///
/// Frozen parameters, in a group with `frozen`, keep their bits in every step, and so do their
/// moments. Their gradient is not read, even if it is NaN: it neither counts in the norm nor is
/// scaled, and a trace does not compute it unless something else reads it. stop_frozen_gradients
/// spares it elsewhere. (A group of rate 0 is not frozen: its gradient counts in the norm, its
/// moments change, and NaN reaches the parameters.) Moments of frozen parameters are zeros, so that
/// checkpoints load whatever is frozen.
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

  /// Returns the parameters with stop_gradient of the frozen ones. A loss function that begins with
  /// it has a gradient of zeros there, or of no table rows, which is not computed in eager mode
  /// either, nor by GradientSum::add. Throws StructureError if the parameters
  /// differ in structure from the constructor's.
  ///
  ///   const auto loss_of = [&](const Model& model, const Batch& batch) {
  ///     return loss(adam.stop_frozen_gradients(model)(batch.x), batch.y);
  ///   };
  Params stop_frozen_gradients(const Params& parameters) const {
    return unflatten(parameters,
                     detail::stop_frozen_gradients(name_, flatten(parameters), groups_));
  }

 protected:
  /// name: for errors. Requires a string literal. options: has learning_rate, clip_norm and groups.
  /// weight_decay: nullopt for an optimiser without one.
  template <class Options>
  Optimiser(const char* name, const Params& parameters, const Options& options,
            std::optional<double> weight_decay = {})
      : name_(name),
        step_(detail::first_step()),
        learning_rate_(detail::learning_rate_tensor(name, options.learning_rate)),
        groups_(detail::group_options(name, flatten(parameters),
                                      detail::paths_fn(detail::TreeRef(parameters)), options.groups,
                                      weight_decay)),
        clip_norm_(options.clip_norm) {
    detail::check_not_negative(name, "clip_norm", clip_norm_);
  }

  static Params zero_moments(const Params& parameters) {
    return unflatten(parameters, detail::zero_moments(flatten(parameters)));
  }

  /// Applies the rule once to all parameters and their moments; clips the gradient before.
  void apply(Params& parameters, const Params& gradient, const std::vector<detail::Moment>& moments,
             const detail::UpdateRule& rule) {
    detail::apply_rule(name_, detail::TreeSlot(parameters), detail::TreeRef(gradient), moments,
                       rule, groups_, clip_norm_, step_);
  }

  /// Returns the number of the next update, counted from 1.
  Tensor next_step() const { return step_ + 1; }

  friend struct detail::OptimiserGroups;

  const char* name_;
  Tensor step_, learning_rate_;
  detail::GroupOptions groups_;
  double clip_norm_;
};

}  // namespace reel
REEL_API_END
