// core/ops/reductions/reduce.h — code that reductions share: axes as attributes, type rules,
// kernels, samples, and the inverse spread().
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/axis.h"
#include "reel/core/functions/operands.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/op.h"
#include "reel/core/ops/kernels/reduction_table.h"

namespace reel {

const ReductionTable& reduction_table();

// Defined in reductions.cpp, extremes.cpp, averages.cpp and softmax.cpp.
extern const Op sum_op, prod_op, max_op, min_op, argmax_op, argmin_op, any_op, all_op, axes_size_op;
extern const Op logsumexp_op, softmax_op, log_softmax_op;

struct ReduceAttrs {
  std::vector<int> axes;  ///< positions, ascending
  template <class F>
  static void fields(F&& f) {
    f("axes", &ReduceAttrs::axes);
  }
};
/// Returns make_attrs(ReduceAttrs{axes}); a shared object for common lists.
AttrsRef reduce_attrs(const std::vector<int>& axes);

/// Repeats the input along new axes: the cotangent of a sum.
struct SpreadAttrs {
  std::vector<int> axes;  ///< of the result, ascending
  Dims dims;              ///< their dims
  template <class F>
  static void fields(F&& f) {
    f("axes", &SpreadAttrs::axes);
    f("dims", &SpreadAttrs::dims);
  }
};
extern const Op spread_op;

/// Return the positions in x of the axes, or of all axes, ascending.
std::vector<int> positions(const Tensor& x, const Axes& axes, std::string_view op);
std::vector<int> all_positions(std::string_view op, const Tensor& x);

bool has(const std::vector<int>& axes, int axis);
Axes axes_of(const std::vector<int>& positions);

/// Returns x with `value` in its padding if a reduction over the axes would read any.
Tensor without_padding(const Tensor& x, const std::vector<int>& axes, const NestedList& value);
/// Applies the op over the axes; padding counts as `neutral`.
Tensor reduce(const Op& op, const Tensor& x, const std::vector<int>& axes,
              const NestedList& neutral);

/// Returns the smallest value of the dtype: max over no elements.
NestedList lowest(DType dtype);
/// Returns the number that adds nothing to the op's result if it stands in padding (Op::neutral).
/// Returns nothing if there is none for this dtype.
std::optional<NestedList> neutral_number(const Op& op, DType dtype);

/// Throw DTypeError unless x holds floats, or numbers. repair: the advice in the message.
void check_float(std::string_view op, const TensorType& x, std::string_view repair);
void check_number(std::string_view op, const TensorType& x, std::string_view repair);
/// Check the tensor's type. Also throw ArgumentError if the tensor is empty.
void check_float(std::string_view op, const Tensor& x, std::string_view repair);
void check_number(std::string_view op, const Tensor& x, std::string_view repair);

/// Returns the type of x without the axes.
REEL_API TensorType reduced_type(const TensorType& x, const std::vector<int>& axes);
void reduced_rule(TypeArgs& a);
/// Implement `fails` and `makes_view` of reductions.
Failures reduction_fails(const Attrs* attrs);
bool keeps_count(const OpCall& call);

/// Batches a reduction over the iterations of a loop: the same axes, behind the loop's dim.
Tensors reduction_across_iterations(const IterationBatch& at);

/// Batches another op over axes over the iterations of a loop, as reduction_across_iterations.
Tensors axes_across_iterations(const IterationBatch& at);

/// Axes that are not reduced stay, in their order. Results depend on reduced axes as a whole.
void reduced_axes(const OpCall& call, AxisFactors& f);
/// As reduced_axes(), but reduced axes have factors of this role.
template <Role role>
void reduced_axes_as(const OpCall& call, AxisFactors& f) {
  reduced_axes(call, f);
  for (const int axis : call.attr<ReduceAttrs>().axes) f.in(0, axis) = f.add(role);
}
/// The axes over which the op runs are whole; the result has all axes of the operand.
void axes_beside_reduced(const OpCall& call, AxisFactors& f);

/// Reduces one group of neighbouring axes after the other, the last first.
void run_reduction(KernelArgs& args, ReductionLoop loop);
template <ReductionLoop (ReductionTable::*kLoops)[5]>
void reduction_kernel(KernelArgs& args) {
  run_reduction(args, (reduction_table().*kLoops)[static_cast<int>(args.input(0).dtype())]);
}

/// Returns samples for any reduction; integers and booleans lie between low and high.
OpSamples reduction_samples(DType dtype, double low, double high, bool over_nothing);
/// Returns the samples that reduce one axis.
OpSamples one_axis_samples(DType dtype, double low, double high, bool over_nothing);

/// Views x around adjacent axes as [outer, n, inner].
Reduced view_axes(const TensorType& x, const std::vector<int>& axes);

/// Repeats x along `dims`, which become axes `axes` of the result: the transpose of a sum.
Tensor spread(const Tensor& x, const std::vector<int>& axes, const Dims& dims);
/// Expand y, made by reducing axes of a tensor of type x. spread_like() returns it with x's dims,
/// broadcastable() so that it broadcasts to them.
Tensor spread_like(const Tensor& y, const std::vector<int>& axes, const TensorType& x);
Tensor broadcastable(const Tensor& y, const std::vector<int>& axes, const TensorType& x);

/// Throws ArgumentError if the dims of x are named.
void check_may_keep(std::string_view op, const TensorType& x);
/// Returns reduce(axes), with axes of size 1 in their places for Keep::yes.
template <class Fn>
Tensor over(std::string_view op, const Tensor& x, const Axes& axes, Keep keep, const Fn& reduce) {
  const std::vector<int> at = positions(x, axes, op);
  if (keep == Keep::no || at.empty()) return reduce(at);
  check_may_keep(op, x.type());
  return spread(reduce(at), at, Dims(at.size(), Dim(1)));
}

}  // namespace reel
