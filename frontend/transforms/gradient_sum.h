// frontend/transforms/gradient_sum.h — GradientSum, the gradient of a batch from its micro-batches.
#pragma once

#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/frontend/sparse/embedding_table.h"
#include "reel/frontend/transforms/grad.h"

REEL_API_BEGIN
namespace reel {

namespace detail {
/// Throws DTypeError unless a total and a weight have the dtype of the sums.
void check_dtype_of_sum(DType sums, const Tensor& total, const Tensor& weight);
/// Returns the leaves of a gradient of zeros. Throws ArgumentError for an array of floats.
TreeLeaves zero_sums(const TreeRef& parameters);
template <class Params>
Params zero_sums_like(const Params& parameters) {
  return unflatten(parameters, zero_sums(TreeRef(parameters)));
}
}  // namespace detail

/// The sums of losses and of gradients over micro-batches, the parts of a batch that is too large
/// for memory. A tree: pass it through a jitted function, so that one micro-batch after the other
/// needs memory.
///
///   const auto add = jit([](GradientSum<Model> sum, const Model& model, const Batch& part) {
///     sum.add([](const Model& m, const Batch& b) { return log_loss(m(b.x), b.y, classes); },
///             model, part);
///     return sum;
///   });
///   GradientSum<Model> sum(model);
///   for (const Batch& part : parts) sum = add(std::move(sum), model, part);
///   auto [loss, gradient] = sum.mean();
///
/// The result is the mean of the whole batch, also if the parts differ in the number of elements
/// that count. It has the bits of one batch if all sums over the batch are exact, in any order; up
/// to rounding otherwise, since one batch is summed in the order of its kernels, often in f64. For
/// the same parts it has the same bits in every run and on any number of threads.
template <class Params>
struct GradientSum {
  Params gradient;       ///< of the total
  Tensor total, weight;  ///< sums over the micro-batches, as in Weighted

  /// Sums of nothing, as large as the parameters. dtype: of the losses. Throws ArgumentError for a
  /// TensorArray of floating elements among the parameters.
  explicit GradientSum(const Params& parameters, DType dtype = f32)
      : gradient(detail::zero_sums_like(with_dense_tables(parameters))),
        total(scalar(0, dtype)),
        weight(scalar(0, dtype)) {}

  /// Adds a part. f: (parameters, rest...) -> the sum of its losses and the number of its terms, as
  /// Weighted in losses/metrics.h: {total, weight}. Gradients of table rows become dense. Gradients
  /// of frozen parameters are sums too, unless f begins with Optimiser::stop_frozen_gradients.
  /// Throws DTypeError if a loss has another dtype than the sums, and as value_and_grad does; the
  /// sums are then unchanged.
  template <class F, class... Rest>
  void add(F&& f, const Params& parameters, const Rest&... rest) {
    const auto of_total = [&](const Params& p, const Rest&... others) {
      const auto loss = f(p, others...);
      return std::pair{loss.total, loss.weight};
    };
    auto [loss, own] = value_and_grad(of_total)(parameters, rest...);
    detail::check_dtype_of_sum(total.dtype(), loss.first, loss.second);
    const auto plus = [](const Tensor& a, const Tensor& b) {
      return is_float(a.dtype()) ? a + b : a;
    };
    Params next = tree_map(plus, gradient, with_dense_tables(own));
    Tensor next_weight = weight + loss.second;
    total = total + loss.first;
    weight = std::move(next_weight);
    gradient = std::move(next);
  }

  /// Returns std::pair{mean loss, its gradient}; both are 0 if nothing counted.
  std::pair<Tensor, Params> mean() const {
    const Tensor count = where(weight > 0, weight, 1);
    const auto over = [&](const Tensor& x) {
      return is_float(x.dtype()) ? x / (x.dtype() == count.dtype() ? count : cast(count, x.dtype()))
                                 : x;
    };
    return {over(total), tree_map(over, gradient)};
  }

  auto members() { return std::tie(gradient, total, weight); }
  static constexpr std::array<std::string_view, 3> member_names() {
    return {"gradient", "total", "weight"};
  }
};

}  // namespace reel
REEL_API_END
