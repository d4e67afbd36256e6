// core/ops/shape/iteration_batching.h — IterationBatch, an op of a loop's body applied to all
// iterations at once.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "reel/core/op/bind.h"
#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Arguments of a rule that applies an op to many iterations of a loop at once.
///
/// The rule applies ops while a graph is being recorded. It returns the outputs with the loop's dim
/// in front, then the dims of one iteration in their order; if is_summed, their sums over the
/// iterations. It returns nothing if the op cannot be applied so. If is_vmap, an output that all
/// rows have in common may have the dims of one row.
struct IterationBatch {
  const Op& op;
  const AttrsRef& attrs;
  std::span<const Tensor> in;             ///< with the loop's dim in front if is_many
  std::span<const std::uint8_t> is_many;  ///< by input: differs between iterations
  std::span<const TensorType> step_out;   ///< the types of the outputs of one iteration
  Dim time;
  bool is_summed = false;
  bool is_vmap = false;  ///< the iterations are rows of vmap, whose results are all kept

  template <class T>
  const T& attr() const {
    return get<T>(attrs.get());
  }
  /// Returns the dims of one iteration with the loop's dim in front.
  Dims with_time(const Dims& step) const;
  /// Returns input i with the loop's dim in front; repeated if it is equal in all iterations.
  Tensor many(std::size_t i) const;
  bool only_first_is_many() const;
};

/// Returns axes of one iteration as axes behind the loop's dim.
std::vector<int> behind_time(std::vector<int> axes);

/// Batches an op along one axis, the attribute `axis`: the axis behind the loop's dim.
template <class Attrs>
Tensors axis_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  Attrs attrs = at.attr<Attrs>();
  ++attrs.axis;
  Tensors in;
  for (std::size_t i = 0; i < at.in.size(); ++i) in.push_back(at.many(i));
  return bind_all(at.op, in, make_attrs(std::move(attrs)));
}

/// Batches a pointwise op. Broadcasts operands as each iteration does.
Tensors pointwise_across_iterations(const IterationBatch& at);

/// Returns the op's own rule, or the rule of pointwise ops; null if there is none.
inline IterationBatchingRule iteration_batching_rule(const Op& op) {
  return op.iteration_batching ? op.iteration_batching
         : op.pointwise        ? pointwise_across_iterations
                               : nullptr;
}

}  // namespace reel
