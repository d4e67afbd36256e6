// core/over_time.h — OverTime, an op of a loop's body applied to all steps at once.
#pragma once

#include <cstdint>
#include <span>

#include "reel/core/op.h"
#include "reel/core/tensor.h"

namespace reel {

/// What a rule sees that says how an op is done for many steps of a loop at once.
///
/// The rule applies ops (while a graph is being recorded) and returns the outputs with the dim of
/// the steps in front, then the dims of one step in their order; or, where is_summed, their sums
/// over the steps. It returns nothing where the op cannot be done so.
struct OverTime {
  const Op& op;
  const AttrsRef& attrs;
  std::span<const Tensor> in;             ///< with the dim of the steps in front where is_many
  std::span<const std::uint8_t> is_many;  ///< by input: another one in every step
  std::span<const TensorType> step_out;   ///< the types of the outputs of one step
  Dim time;
  bool is_summed = false;

  template <class T>
  const T& attr() const {
    return get<T>(attrs.get());
  }
  Dims with_time(const Dims& step) const;
  /// Input i with the dim of the steps in front, repeated if it is the same in every step.
  Tensor many(std::size_t i) const;
  bool only_first_is_many() const;
};

/// Axes of one step as they are counted behind the dim of the steps.
std::vector<int> behind_time(std::vector<int> axes);

/// The rule of pointwise ops: operands are broadcast as in each step.
Tensors pointwise_over_time(const OverTime& at);

/// How the op of a record is done over time: its own rule, or that of pointwise ops; null if it
/// cannot.
inline OverTimeRule over_time_rule(const Op& op) {
  return op.over_time ? op.over_time : op.pointwise ? pointwise_over_time : nullptr;
}

}  // namespace reel
