// core/ops/indexing/index.h — index rules and kernels' helpers that gather, scatter and sort share.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/indices.h"
#include "reel/core/op/op.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/strided.h"

namespace reel {

/// The meaning of an index outside 0 ... size-1 of the axis.
enum class IndexRule {
  from_end,  ///< negative ones count from the end; along a ragged axis from the entry's own end
  strict,    ///< IndexError
  clip,      ///< clamped to the nearest position; along a ragged axis within the entry's own length
  optional,  ///< negative ones mean no element: gather returns 0, scatter skips them
};

struct GatherAttrs {
  int axis = 0;
  /// For each axis of the indices, the axis of x that it is paired with, or -1.
  std::vector<int> matched = {};
  /// An index counts the elements of `count` axes from `axis` on, in row-major order.
  int count = 1;
  IndexRule rule = IndexRule::from_end;
  std::string function = "gather";  ///< function that the user called, for IndexError messages
  bool reads_shape = false;  ///< see reads_shape(); follows from the operand, so it is no field
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

/// Implement `fails` and `reads_lengths` of ops with GatherAttrs: the indices, operand 1, are
/// checked unless they are clipped, may count from the end of the indexed axes, and have no effect
/// in padding.
Failures index_fails(const Attrs* attrs);
bool index_reads_lengths(const OpCall& call, std::size_t in, int axis);

extern const Op gather_op;
/// Axes of the indices without a pair are the result's in place of the indexed axes.
void gathered_axes(const OpCall& call, AxisFactors& f);
/// Adds updates to a tensor at the elements that gather would read.
extern const Op scatter_add_op;

/// Returns attrs with `matched` filled in. Named dims of the indices are paired with the same dims
/// of x, except for indexed dims: these dims of the indices are new axes.
GatherAttrs match_dims(const TensorType& x, const TensorType& indices, GatherAttrs attrs);
/// Returns the indices expanded by the dims over which the axis' lengths run: an index may mean
/// another position in every entry.
Tensor with_length_dims(const Tensor& indices, const TensorType& x, const GatherAttrs& attrs);
/// Returns the dims of gather's result: dims of x, with the unmatched dims of the indices in place
/// of the indexed axes.
REEL_API Dims gathered_dims(const TensorType& x, const TensorType& indices,
                            const GatherAttrs& attrs);
/// For type rules: throws DTypeError or ShapeError unless the indices fit x.
void check_indices(std::string_view op, const TensorType& x, const TensorType& indices,
                   const GatherAttrs& attrs);

/// Returns gather(...). Messages begin with the name of the function that calls it.
Tensor gather_for(std::string function, const Tensor& x, const Tensor& indices, const Axis& axis,
                  const GatherOptions& options = {});
/// Returns the elements of x at positions. The vjp of its op is scatter_positions.
Tensor gather_positions(const Tensor& x, const Tensor& indices, const AttrsRef& attrs);
/// Returns `to` with updates added. Padding of the updates is skipped.
Tensor scatter_positions(Tensor to, const Tensor& indices, const Tensor& updates,
                         const AttrsRef& attrs);
/// Reorders each line of x along one axis by the indices, which have x's dims.
Tensor take_along(const Tensor& x, const Tensor& indices, int axis);

/// Returns samples of x and indices for the ops of this family.
OpSamples gather_samples();

// ---- For kernels --------------------------------------------------------------------------------

/// For messages: returns " at [1,0] of i32[2,3]"; empty for a scalar.
std::string place_of_element(std::int64_t flat, const TensorType& type);

inline constexpr std::int64_t kNoPlace = -1;
using Places = boost::container::small_vector<std::int64_t, 16>;
/// Converts the indices to positions along the indexed axes of x. Returns kNoPlace for an index in
/// the padding of its own tensor, and for one that means no element. Throws IndexError before the
/// caller writes anything.
Places places_of(std::string_view op, const Tensor& indices, const TensorType& x,
                 const GatherAttrs& attrs);

/// The kernel of gather.
void gather_kernel(KernelArgs& a);

/// Iterates over the result of gather: a loop over its axes, with steps in x and in the indices.
/// The innermost unit is a run of elements that is contiguous in both.
class GatherWalk {
 public:
  GatherWalk(const TensorType& x, const TensorType& indices, const GatherAttrs& attrs);
  std::int64_t run() const { return run_; }
  /// Returns the step in x from one position along the indexed axes to the next.
  std::int64_t axis_step() const { return axis_step_; }

  struct Axis {
    std::int64_t size, in_x, in_indices;
  };
  /// Calls fn(axis, x, indices) for every line along the innermost axis, in order, with the line's
  /// first elements in x, apart from its positions along the indexed axes, and in the indices.
  template <class Fn>
  void each_line(Fn&& fn) const {
    if (!run_) return;
    if (axes_.empty()) return fn(Axis{1, 0, 0}, std::int64_t{0}, std::int64_t{0});
    walk_lines(0, 0, 0, fn);
  }

  /// Calls fn(first element of x's run, or kNoPlace) for every run of the result, in order.
  template <class Fn>
  void each(const Places& places, Fn&& fn) const {
    if (run_) walk(0, 0, 0, places, fn);
  }

 private:
  void push(const Axis& axis);

  template <class Fn>
  void walk_lines(std::size_t depth, std::int64_t in_x, std::int64_t in_indices, Fn& fn) const {
    const Axis& axis = axes_[depth];
    if (depth + 1 == axes_.size()) return fn(axis, in_x, in_indices);
    for (std::int64_t i = 0; i < axis.size; ++i, in_x += axis.in_x, in_indices += axis.in_indices)
      walk_lines(depth + 1, in_x, in_indices, fn);
  }
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

}  // namespace reel
