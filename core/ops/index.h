// core/ops/index.h — what gather, scatter and sort share: which elements an index means.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reel/core/functions/indices.h"
#include "reel/core/op.h"
#include "reel/core/ops/dims.h"
#include "reel/core/ops/new_dims.h"
#include "reel/core/ops/strided.h"

namespace reel {

/// What an index means that is no position 0, 1, ... size-1 along the axis.
enum class IndexRule {
  from_end,  ///< negative ones count from the end, of a ragged axis from the entry's own
  strict,    ///< none of them means anything
  clip,      ///< the nearest position; along a ragged axis within the entry's own length
  optional,  ///< negative ones mean no element: gather gives 0, scatter leaves them out
};

struct GatherAttrs {
  int axis = 0;
  /// For every axis of the indices the axis of x that goes along with it, or -1.
  std::vector<int> matched = {};
  /// An index counts the elements of so many axes, from `axis` on, in row-major order.
  int count = 1;
  IndexRule rule = IndexRule::from_end;
  std::string function = "gather";  ///< that the user called: whose an index out of range is
  template <class F>
  static void fields(F&& f) {
    f("axis", &GatherAttrs::axis);
    f("matched", &GatherAttrs::matched);
    f("count", &GatherAttrs::count);
    f("rule", &GatherAttrs::rule);
    f("function", &GatherAttrs::function);
  }
  bool is_indexed(int i) const { return i >= axis && i < axis + count; }
};

extern const Op gather_op;
/// gather from a tensor with plain sizes that only a run knows: its vjp asks x for them.
extern const Op gather_unknown_op;
/// Updates added to a tensor where gather takes them from.
extern const Op scatter_add_op;

/// Named dims of the indices go along with the same dims of x, but for those that are indexed:
/// there they stand for new places.
GatherAttrs match_dims(const TensorType& x, const TensorType& indices, GatherAttrs attrs);
/// The indices with the dims that the axis' lengths run over: in every entry they may mean others.
Tensor with_length_dims(const Tensor& indices, const TensorType& x, const GatherAttrs& attrs);
/// The dims of x, those of the indices that are not matched in the place of the indexed axes.
Dims gathered_dims(const TensorType& x, const TensorType& indices, const GatherAttrs& attrs);
/// For type rules: throws DTypeError or ShapeError unless the indices fit x.
void check_indices(std::string_view op, const TensorType& x, const TensorType& indices,
                   const GatherAttrs& attrs);

/// gather, as a part of another function: errors name that.
Tensor gather_for(std::string function, const Tensor& x, const Tensor& indices, const Axis& axis,
                  const GatherOptions& options = {});
/// Elements of x at positions, as an op whose vjp is scatter_positions.
Tensor gather_positions(const Tensor& x, const Tensor& indices, const AttrsRef& attrs);
/// `to` with updates added, padding of the updates left out.
Tensor scatter_positions(Tensor to, const Tensor& indices, const Tensor& updates,
                         const AttrsRef& attrs);
/// Elements along one axis, each line of x in the order that the indices, of x's dims, give.
Tensor take_along(const Tensor& x, const Tensor& indices, int axis);

/// x and indices for the ops of this family.
OpSamples gather_samples();

// ---- For kernels --------------------------------------------------------------------------------

/// For messages: " at [1,0] of i32[2,3]"; nothing for a scalar.
std::string place_of_element(std::int64_t flat, const TensorType& type);

inline constexpr std::int64_t kNoPlace = -1;
using Places = boost::container::small_vector<std::int64_t, 16>;
/// The indices as positions along the indexed axes of x; kNoPlace where an index lies in the
/// padding of its own tensor, or means no element. Throws IndexError before anything is written.
Places places_of(std::string_view op, const Tensor& indices, const TensorType& x,
                 const GatherAttrs& attrs);

/// Where the elements of a result of gather lie: a loop over its axes, with steps in x and in the
/// indices, around runs of elements that are contiguous in both.
class GatherWalk {
 public:
  GatherWalk(const TensorType& x, const TensorType& indices, const GatherAttrs& attrs);
  std::int64_t run() const { return run_; }

  /// Calls fn(first element of x's run, or kNoPlace) for every run of the result, in order.
  template <class Fn>
  void each(const Places& places, Fn&& fn) const {
    if (run_) walk(0, 0, 0, places, fn);
  }

 private:
  struct Axis {
    std::int64_t size, in_x, in_indices;
  };
  void push(const Axis& axis);

  template <class Fn>
  void walk(std::size_t depth, std::int64_t in_x, std::int64_t in_indices, const Places& places,
            Fn& fn) const {
    const auto visit_run = [&] {
      const std::int64_t at = places[static_cast<std::size_t>(in_indices)];
      fn(at == kNoPlace ? kNoPlace : in_x + at * axis_step_);
    };
    if (depth == axes_.size()) return visit_run();
    const Axis& axis = axes_[depth];
    const auto each = [&](const auto& visit_one) {
      for (std::int64_t i = 0; i < axis.size; ++i, in_x += axis.in_x, in_indices += axis.in_indices)
        visit_one();
    };
    if (depth + 1 == axes_.size())
      each(visit_run);
    else
      each([&] { walk(depth + 1, in_x, in_indices, places, fn); });
  }

  boost::container::small_vector<Axis, 8> axes_;
  std::int64_t axis_step_ = 1, run_ = 1;
};

/// Calls fn(first, count) for every run of elements of the type that are padding.
template <class Fn>
void for_each_padding(const TensorType& type, Fn&& fn) {
  for (int axis = 0; type.is_ragged() && axis < type.rank(); ++axis) {
    if (!is_masked(type, axis)) continue;
    const AxisView view = view_axis(type, axis);
    for_each_entry(
        type, axis, Tensor(dim_at(type, axis).node()->lengths),
        [&](std::int64_t outer, std::int64_t first, std::int64_t count, std::int64_t length) {
          for (std::int64_t p = length; p < view.size; ++p)
            fn((outer * view.size + p) * view.inner + first, count);
        });
  }
}

}  // namespace reel
