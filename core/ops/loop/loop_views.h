// core/ops/loop/loop_views.h — the leaves of a loop among the operands and results of the op,
// and among the inputs and outputs of its graphs. Only this file and LoopBuilder know their order.
#pragma once

#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

#include "reel/core/ops/loop/loop_attrs.h"

namespace reel {

/// The kind of an operand or result of a loop, or of an input or output of its graphs.
enum class LeafKind : std::uint8_t {
  bound,
  lengths,  ///< an operand or a result
  chunk,
  position,
  carry,
  slice,
  capture,
  stack,
  sum,
  trips,
  token,
};
/// A leaf, and its index among the leaves of its kind.
struct LoopLeaf {
  LeafKind kind;
  std::size_t index = 0;
  bool is(LeafKind other) const { return kind == other; }
};

/// Operands of the op. T: const TensorType, Tensor, const ValueId, ...
template <class T>
struct LoopOperands {
  T* bound;  ///< null if absent, as the next two
  T* lengths;
  T* chunk;
  std::span<T> carries, slices, captures;
};
/// Inputs of the body; captures in the order of body_captures.
template <class T>
struct BodyInputs {
  T& position;
  std::span<T> carries, slices, captures;
};
/// Inputs of the condition; captures in the order of cond_captures.
template <class T>
struct CondInputs {
  T& trips;
  std::span<T> carries, captures;
};
template <class T>
struct BodyOutputs {
  std::span<T> carries, stacks, sums;
};
/// Results of the op.
template <class T>
struct LoopResults {
  std::span<T> carries, stacks, sums;
  T& trips;
  T* lengths;  ///< null if absent
  T* token;    ///< null if absent: the token of a new dim
};

namespace detail {
template <class R>
using ElementOf = std::remove_reference_t<std::ranges::range_reference_t<R>>;

/// Takes consecutive parts of a list of leaves.
template <class T>
class LeafCursor {
 public:
  explicit LeafCursor(std::span<T> all) : rest_(all) {}
  std::span<T> take(std::size_t count) {
    const std::span<T> result = rest_.first(count);
    rest_ = rest_.subspan(count);
    return result;
  }
  T& one() { return take(1)[0]; }
  T* one_if(bool is_present) { return is_present ? take(1).data() : nullptr; }
  std::span<T> rest() const { return rest_; }

 private:
  std::span<T> rest_;
};
}  // namespace detail

// Each takes a contiguous range with an element for every operand, result, input or output, in the
// order of the op or graph. The result refers to the elements of the range.

template <std::ranges::contiguous_range R>
auto operands_of(const LoopAttrs& attrs, R&& all) {
  using T = detail::ElementOf<R>;
  detail::LeafCursor<T> next{std::span<T>(all)};
  LoopOperands<T> result{};
  result.bound = next.one_if(attrs.trips.has_bound);
  result.lengths = next.one_if(attrs.trips.has_lengths);
  result.chunk = next.one_if(attrs.chunking.within_chunk);
  result.carries = next.take(attrs.carries.size());
  result.slices = next.take(attrs.slices.size());
  result.captures = next.rest();
  return result;
}

template <std::ranges::contiguous_range R>
auto body_inputs_of(const LoopAttrs& attrs, R&& all) {
  using T = detail::ElementOf<R>;
  detail::LeafCursor<T> next{std::span<T>(all)};
  T& position = next.one();
  const auto carries = next.take(attrs.carries.size()), slices = next.take(attrs.slices.size());
  return BodyInputs<T>{position, carries, slices, next.rest()};
}

template <std::ranges::contiguous_range R>
auto cond_inputs_of(const LoopAttrs& attrs, R&& all) {
  using T = detail::ElementOf<R>;
  detail::LeafCursor<T> next{std::span<T>(all)};
  T& trips = next.one();
  const auto carries = next.take(attrs.carries.size());
  return CondInputs<T>{trips, carries, next.rest()};
}

template <std::ranges::contiguous_range R>
auto body_outputs_of(const LoopAttrs& attrs, R&& all) {
  using T = detail::ElementOf<R>;
  detail::LeafCursor<T> next{std::span<T>(all)};
  const auto carries = next.take(attrs.carries.size()), stacks = next.take(attrs.stacks.size());
  return BodyOutputs<T>{carries, stacks, next.take(attrs.sums.size())};
}

template <std::ranges::contiguous_range R>
auto results_of(const LoopAttrs& attrs, R&& all) {
  using T = detail::ElementOf<R>;
  detail::LeafCursor<T> next{std::span<T>(all)};
  const auto carries = next.take(attrs.carries.size()), stacks = next.take(attrs.stacks.size()),
             sums = next.take(attrs.sums.size());
  T& trips = next.one();
  T* const lengths = next.one_if(attrs.makes_lengths());
  return LoopResults<T>{carries, stacks, sums, trips, lengths, next.one_if(attrs.trips.makes_dim)};
}

/// Return a view of a graph's own inputs or outputs: value numbers.
inline auto body_inputs(const LoopAttrs& attrs) {
  return body_inputs_of(attrs, attrs.body.graph->inputs);
}
inline auto body_outputs(const LoopAttrs& attrs) {
  return body_outputs_of(attrs, attrs.body.graph->outputs);
}
inline auto cond_inputs(const LoopAttrs& attrs) {
  return cond_inputs_of(attrs, attrs.cond.graph->inputs);
}

// Numbers of leaves, for interfaces that take a number (Vjp::input, Graph::inputs).

/// Returns the number of an operand. Requires that the leaf exists.
std::size_t operand_number(const LoopAttrs& attrs, LoopLeaf leaf);
/// Returns the number of an input of the body. A capture's index is among body_captures.
std::size_t body_input_number(const LoopAttrs& attrs, LoopLeaf leaf);
/// Returns the number of an output of the body: of a carry, stack or sum.
std::size_t body_output_number(const LoopAttrs& attrs, LoopLeaf leaf);
/// Returns the number of a result. Carries, stacks and sums have their numbers as outputs of the
/// body.
std::size_t result_number(const LoopAttrs& attrs, LoopLeaf leaf);

/// Return the leaf of a number; captures of a body are numbered as in body_captures.
LoopLeaf operand_at(const LoopAttrs& attrs, std::size_t number);
LoopLeaf body_input_at(const LoopAttrs& attrs, std::size_t number);
LoopLeaf body_output_at(const LoopAttrs& attrs, std::size_t number);
LoopLeaf result_at(const LoopAttrs& attrs, std::size_t number);

/// Returns the number of operands, and of results.
std::size_t operand_count(const LoopAttrs& attrs);
std::size_t result_count(const LoopAttrs& attrs);

/// Returns the values that finished entries read of an input of the body: a carry, slice or
/// capture of body_captures.
FinishedFill fill_of(const LoopAttrs& attrs, LoopLeaf body_input);
/// Returns true if values of finished entries are added to the first running entry in an output of
/// the body.
bool adds_finished(const LoopAttrs& attrs, LoopLeaf body_output);

}  // namespace reel
