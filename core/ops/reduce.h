// core/ops/reduce.h — what reductions and softmax share: axes as attributes, and cotangents spread
// along them again.
#pragma once

#include <string_view>
#include <vector>

#include "reel/core/axis.h"
#include "reel/core/op.h"
#include "reel/core/ops/reduction_table.h"

namespace reel {

const ReductionTable& reduction_table();

// The ops of softmax.cpp.
extern const Op logsumexp_op, softmax_op, log_softmax_op;

struct ReduceAttrs {
  std::vector<int> axes;  ///< positions, ascending
  template <class F>
  static void fields(F&& f) {
    f("axes", &ReduceAttrs::axes);
  }
};
/// make_attrs(ReduceAttrs{axes}), one shared object for the lists that are common.
AttrsRef reduce_attrs(const std::vector<int>& axes);

/// The positions of the axes in x, ascending; of all axes.
std::vector<int> positions(const Tensor& x, const Axes& axes, std::string_view op);
std::vector<int> all_positions(const Tensor& x);

/// x with `value` in its padding if a reduction over the axes would read any.
Tensor without_padding(const Tensor& x, const std::vector<int>& axes, double value);

/// Throws DTypeError unless x holds floats; `repair` says what to do about it.
void check_float(std::string_view op, const TensorType& x, std::string_view repair);

/// x lies around adjacent axes as [outer, n, inner].
Reduced view_axes(const TensorType& x, const std::vector<int>& axes);

/// The reverse of a sum over axes: x repeated along `dims`, which become axes `axes` of the result.
Tensor spread(const Tensor& x, const std::vector<int>& axes, const Dims& dims);
/// y, made by reducing axes of a tensor of type x, with x's dims; and such that it broadcasts to
/// them.
Tensor spread_like(const Tensor& y, const std::vector<int>& axes, const TensorType& x);
Tensor broadcastable(const Tensor& y, const std::vector<int>& axes, const TensorType& x);

}  // namespace reel
